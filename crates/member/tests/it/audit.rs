//! Every write into a member is in the audit log, with the plan's reason.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::ensure;
use atoll_audit::{Log, Sink};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::clusters::Clusters;
use crate::stories::{NAMESPACE, two, writes};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Sink for Lines {
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(lines);
        Ok(())
    }
}

impl Lines {
    fn events(&self, log: &Log) -> Vec<Value> {
        assert!(log.flush(Duration::from_secs(10)));
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What was written into a member's namespace: what, and why.
    fn of(&self, log: &Log, cluster: &str) -> Vec<(String, String)> {
        let mut events = self.events(log);
        events.retain(|event| {
            event["annotations"]["atoll.dev/cluster"] == cluster
                && event["objectRef"]["namespace"] == NAMESPACE
        });
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let one = |event: &Value| {
            let of = &event["objectRef"];
            let sub = of["subresource"].as_str().map(|sub| format!("/{sub}")).unwrap_or_default();
            let what =
                format!("{} {}{sub} {}", text(&event["verb"]), text(&of["resource"]), text(&of["name"]));
            (what, text(&event["annotations"]["atoll.dev/reason"]))
        };
        events.iter().map(one).collect()
    }
}

#[tokio::test]
async fn every_write_into_a_member_is_in_the_log_with_the_reason_of_the_plan() -> anyhow::Result<()> {
    let lines = Lines::default();
    let log = Log::to(lines.clone(), "missing")?;
    let lab = &Clusters::start().await?.audited(&log);
    let (a, b, hub) = two(lab).await?;
    let recorder = lab.member(2).recorder();
    a.serve("web", "10.1.0.1").await?;
    b.addresses("web", &["10.1.0.1"]).await?;
    b.ready_import("web").await?;
    let noted = lines.of(&log, "member2");
    let what: Vec<&String> = noted.iter().map(|(what, _)| what).collect();
    ensure!(what == writes(&recorder).iter().collect::<Vec<_>>(), "{noted:#?}");
    for (what, why) in &noted {
        let want = match what.as_str() {
            "create endpointslices imported-member1-web-1" => "web-1 of member1: its cluster is reachable",
            _ => "exported by member1",
        };
        ensure!(why == want, "{what}: {why}");
    }

    let slices = a.api::<EndpointSlice>();
    let patch = json!({"endpoints": [{"addresses": ["10.1.0.2"], "conditions": {"ready": true}}]});
    slices.patch("web-1", &PatchParams::default(), &Patch::Merge(patch)).await?;
    b.addresses("web", &["10.1.0.2"]).await?;
    a.withdraw("web").await?;
    b.is_gone("web").await?;
    let later = lines.of(&log, "member2").split_off(noted.len());
    ensure!(later[0].0 == "update endpointslices imported-member1-web-1", "{later:#?}");
    ensure!(
        later
            .iter()
            .any(|(what, why)| what == "delete services derived-web"
                && why == "no cluster exports the service")
    );
    ensure!(
        later.iter().any(
            |(what, why)| what.starts_with("delete endpointslices") && why.contains("no cluster exports")
        ),
        "{later:#?}"
    );

    let events = lines.events(&log);
    ensure!(events.iter().all(|event| event["verb"] != "get" && event["user"]["username"] == "atoll-hub"));
    ensure!(events.iter().any(|event| event["responseStatus"]["code"] == 201), "{events:#?}");
    ensure!(!events.iter().any(|event| event["objectRef"]["resource"] == "selfsubjectaccessreviews"));
    hub.stop().await
}
