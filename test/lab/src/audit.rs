//! Which requests did an API server get? Read off its audit log.

use crate::cluster::Cluster;
use crate::error::{Doing, Error, Result};
use crate::request::ApiRequest;
use crate::until::{Deadline, until};
use serde::{Deserialize, Serialize};
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A request that an API server got and dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recorded {
    /// What was asked.
    #[serde(flatten)]
    pub request: ApiRequest,
    /// Who asked.
    pub user: String,
    /// With which program.
    pub agent: String,
    /// How it was answered; 0 for a watch that is still open.
    pub code: u16,
    /// When it came, as the server wrote it.
    pub at: String,
}

/// Watches one API server's requests from the moment it is made.
#[derive(Debug)]
pub struct Recorder {
    cluster: Cluster,
    log: PathBuf,
    from: u64,
}

impl Recorder {
    /// Records what the API of `cluster` gets from now on.
    pub fn of(cluster: &Cluster) -> Result<Self> {
        let log = cluster.dir().join("audit.log");
        let size = std::fs::metadata(&log).map_err(|_| {
            Error::refused(format!("{} keeps no audit log", cluster.name()), "start the lab with `audit` on")
        })?;
        Ok(Self { cluster: cluster.clone(), log, from: size.len() })
    }

    /// Every request so far. Asks the API for something unheard-of and waits until that is in the log, so
    /// what had been dealt with before this call is in the list. A killed API server may have carried out a
    /// request without a line.
    pub async fn requests(&self) -> Result<Vec<Recorded>> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("recorder-{}-{number}", std::process::id());
        let client = self.cluster.client().await?;
        let path = format!("/api/v1/namespaces/{mark}");
        let ask = http::Request::get(path).body(Vec::new()).expect("a plain path is well-formed");
        match client.request_text(ask).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error).doing(|| "mark the audit log".to_owned()),
        }
        let deadline = Deadline::after(Duration::from_secs(20), "the audit log has our mark");
        until(deadline, async || {
            let all = self.so_far()?;
            let seen = all.iter().any(|recorded| recorded.request.name == mark);
            Ok(if seen { Ok(all) } else { Err(format!("{} requests", all.len())) })
        })
        .await
        .map(|mut all| {
            let prefix = format!("recorder-{}-", std::process::id());
            all.retain(|recorded| !recorded.request.name.starts_with(&prefix));
            all
        })
    }

    /// What is in the log now; for when the API does not answer.
    pub fn so_far(&self) -> Result<Vec<Recorded>> {
        let doing = || format!("read {}", self.log.display());
        let mut file = std::fs::File::open(&self.log).doing(doing)?;
        file.seek(SeekFrom::Start(self.from)).doing(doing)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).doing(doing)?;
        // The last line may be half-written; it will be whole the next time.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &text[..end]);
        let lines = whole.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| parse(line).map_err(std::io::Error::other).doing(doing)).collect()
    }

    /// The requests with `verb` on `resource`.
    pub async fn of_verb(&self, verb: &str, resource: &str) -> Result<Vec<Recorded>> {
        let mut all = self.requests().await?;
        all.retain(|recorded| recorded.request.verb == verb && recorded.request.resource == resource);
        Ok(all)
    }
}

fn parse(line: &[u8]) -> Result<Recorded, serde_json::Error> {
    let event: Event = serde_json::from_slice(line)?;
    let object = event.object_ref.unwrap_or_default();
    Ok(Recorded {
        request: ApiRequest {
            verb: event.verb,
            group: object.api_group,
            resource: object.resource,
            subresource: object.subresource,
            namespace: object.namespace,
            name: object.name,
        },
        user: event.user.username,
        agent: event.user_agent,
        code: if event.stage == "ResponseStarted" { 0 } else { event.response_status.code },
        at: event.request_received_timestamp,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    stage: String,
    verb: String,
    user: User,
    #[serde(default)]
    user_agent: String,
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    response_status: ResponseStatus,
    request_received_timestamp: String,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ResponseStatus {
    code: u16,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_says_who_deleted_what() {
        let line = r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"1",
            "stage":"ResponseComplete","requestURI":"/x","verb":"delete","user":{"username":"admin","groups":[]},
            "sourceIPs":["10.200.0.254"],"userAgent":"kubectl","objectRef":{"resource":"endpointslices",
            "namespace":"shop","name":"web-1","apiGroup":"discovery.k8s.io","apiVersion":"v1"},
            "responseStatus":{"metadata":{},"status":"Success","code":200},
            "requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:00.1Z"}"#;
        let recorded = parse(line.as_bytes()).unwrap();
        assert_eq!((recorded.request.verb.as_str(), recorded.code), ("delete", 200));
        assert_eq!(recorded.request.name, "web-1");
        assert_eq!(recorded.user, "admin");
        assert!(parse(b"{\"half\":").is_err(), "an unreadable line is not passed over");
    }
}
