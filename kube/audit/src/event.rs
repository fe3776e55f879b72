//! One line of the log: who did what to which object, when, and how it ended. Never a body.

use jiff::Timestamp;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The longest URI and text that a line keeps: a client chooses both.
const MOST_TEXT: usize = 4096;
/// The longest name of a client.
const MOST_AGENT: usize = 1024;

/// An event of `audit.k8s.io/v1`, of level `Metadata`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    level: &'static str,
    #[serde(rename = "auditID")]
    audit_id: String,
    /// When this was noted.
    pub stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: String,
    /// As access is granted by it: `get`, `create`, …
    pub verb: &'static str,
    /// Who asked; no user if that was not established.
    pub user: UserInfo,
    /// In whose name, if in another's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonated_user: Option<UserInfo>,
    /// Where the connection came from; none within the process.
    #[serde(rename = "sourceIPs", skip_serializing_if = "Option::is_none")]
    source_ips: Option<[IpAddr; 1]>,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    /// What it was about; none for paths that are no resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectRef>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<Outcome>,
    #[serde(serialize_with = "micros")]
    request_received_timestamp: Timestamp,
    /// When the stage was reached.
    #[serde(serialize_with = "micros")]
    pub stage_timestamp: Timestamp,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, String>,
}

/// How far a request had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Stage {
    /// The answer's head is sent, and its body goes on: a watch, a log, a session.
    ResponseStarted,
    /// The answer is complete.
    ResponseComplete,
}

/// A user, as authentication knows them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct UserInfo {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What else is known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The object of a request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// `configmaps`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// Empty for what belongs to the whole cluster.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Empty for lists, and for creates whose name the path does not have.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Empty for the core group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// `v1`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// `status`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    metadata: Empty,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// The HTTP status; none if no answer came, and then it is not known what was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Empty {}

impl Outcome {
    /// It was answered with this HTTP status.
    pub fn answered(code: u16) -> Self {
        let status = (code >= 400).then_some("Failure");
        Self { metadata: Empty {}, status, message: String::new(), reason: String::new(), code: Some(code) }
    }

    /// No answer came.
    pub fn unanswered(why: &str) -> Self {
        let mut outcome = Self::answered(500);
        (outcome.code, outcome.message) = (None, clipped(why, MOST_TEXT));
        outcome
    }

    /// Why it failed, as the answer says.
    #[must_use]
    pub fn because(mut self, reason: &str, message: &str) -> Self {
        (self.reason, self.message) = (clipped(reason, MOST_AGENT), clipped(message, MOST_TEXT));
        self
    }
}

impl Event {
    /// A request that was received at `received`.
    pub fn new(verb: &'static str, uri: &str, received: Timestamp) -> Self {
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level: "Metadata",
            audit_id: uuid::Uuid::new_v4().to_string(),
            stage: Stage::ResponseComplete,
            request_uri: clipped(uri, MOST_TEXT),
            verb,
            user: UserInfo::default(),
            impersonated_user: None,
            source_ips: None,
            user_agent: String::new(),
            object_ref: None,
            response_status: None,
            request_received_timestamp: received,
            stage_timestamp: received,
            annotations: BTreeMap::new(),
        }
    }

    /// Where it came from.
    #[must_use]
    pub fn from(mut self, peer: Option<IpAddr>, agent: &str) -> Self {
        self.source_ips = peer.map(|peer| [peer.to_canonical()]);
        self.user_agent = clipped(agent, MOST_AGENT);
        self
    }

    /// Says something more.
    pub fn annotate(&mut self, name: &'static str, text: &str) {
        self.annotations.insert(name, clipped(text, MOST_TEXT));
    }
}

impl ObjectRef {
    /// The object that a path of an API leads to.
    pub fn of_path(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", version, rest),
            ["apis", group, version, rest @ ..] => (*group, version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", namespace, next, more @ ..] if !matches!(*next, "status" | "finalize") => {
                (*namespace, [&[*next], more].concat())
            }
            rest => ("", rest.to_vec()),
        };
        let part = |index: usize| rest.get(index).copied().unwrap_or_default().to_owned();
        let found = Self {
            resource: part(0),
            namespace: namespace.to_owned(),
            name: part(1),
            api_group: group.to_owned(),
            api_version: (*version).to_owned(),
            subresource: part(2),
        };
        (!found.resource.is_empty()).then_some(found)
    }
}

/// The verb of a request that changes something; none for those that only read.
pub fn verb(method: &str, object: &ObjectRef) -> Option<&'static str> {
    match method {
        "POST" => Some("create"),
        "PUT" => Some("update"),
        "PATCH" => Some("patch"),
        "DELETE" if object.name.is_empty() => Some("deletecollection"),
        "DELETE" => Some("delete"),
        _ => None,
    }
}

/// At most so many bytes, cut between letters.
fn clipped(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(most);
    format!("{}…", text.get(..end).unwrap_or_default())
}

fn micros<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&format_args!("{time:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn written(event: &Event) -> Value {
        serde_json::to_value(event).unwrap()
    }

    #[test]
    fn an_event_is_what_kubernetes_calls_one() {
        let received: Timestamp = "2026-11-16T10:00:00.123456Z".parse().unwrap();
        let mut event = Event::new("create", "/api/v1/namespaces/shop/configmaps?dryRun=All", received)
            .from(Some("::ffff:192.0.2.7".parse().unwrap()), "kubectl/1.36");
        event.user = UserInfo { username: "jane".into(), groups: vec!["dev".into()], ..UserInfo::default() };
        event.object_ref = ObjectRef::of_path("/api/v1/namespaces/shop/configmaps");
        event.response_status = Some(Outcome::answered(201));
        event.annotate("authorization.k8s.io/decision", "allow");
        let mut found = written(&event);
        assert!(found["auditID"].as_str().unwrap().len() == 36);
        found["auditID"] = "x".into();
        assert_eq!(
            found,
            json!({
                "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "x",
                "stage": "ResponseComplete", "requestURI": "/api/v1/namespaces/shop/configmaps?dryRun=All",
                "verb": "create", "user": {"username": "jane", "groups": ["dev"]}, "sourceIPs": ["192.0.2.7"],
                "userAgent": "kubectl/1.36",
                "objectRef": {"resource": "configmaps", "namespace": "shop", "apiVersion": "v1"},
                "responseStatus": {"metadata": {}, "code": 201},
                "requestReceivedTimestamp": "2026-11-16T10:00:00.123456Z",
                "stageTimestamp": "2026-11-16T10:00:00.123456Z",
                "annotations": {"authorization.k8s.io/decision": "allow"},
            })
        );
    }

    #[test]
    fn a_client_cannot_forge_a_line_or_fill_the_disk_with_its_own_words() {
        let long = format!("a\n{{\"kind\":\"Event\"}}\n{}", "é".repeat(9000));
        let mut event = Event::new("get", &long, Timestamp::UNIX_EPOCH).from(None, &long);
        event.response_status = Some(Outcome::answered(400).because("BadRequest", &long));
        event.annotate("x", &long);
        let line = serde_json::to_string(&event).unwrap();
        assert!(!line.contains('\n'));
        assert!(line.len() < 20_000, "{}", line.len());
    }

    #[test]
    fn a_path_names_an_object() {
        for (path, want) in [
            ("/api/v1/namespaces/a/services/b", Some(["", "v1", "a", "services", "b", ""])),
            ("/api/v1/namespaces/a", Some(["", "v1", "", "namespaces", "a", ""])),
            ("/api/v1/namespaces/a/finalize", Some(["", "v1", "", "namespaces", "a", "finalize"])),
            ("/apis/x.io/v1/namespaces/a/b/c/status", Some(["x.io", "v1", "a", "b", "c", "status"])),
            ("/apis/x.io/v1", None),
            ("/healthz", None),
        ] {
            let found = ObjectRef::of_path(path);
            let found = found.as_ref().map(|of| {
                [
                    of.api_group.as_str(),
                    &of.api_version,
                    &of.namespace,
                    &of.resource,
                    &of.name,
                    &of.subresource,
                ]
            });
            assert_eq!(found, want, "{path}");
        }
    }
}
