//! Plays scenarios on a real API server.

use crate::scenario::{
    KindParts, Outcome, Recorded, Scenario, Step, Write, change, definitions, golden, mask, recorded, sorted,
    time_of,
};
use anyhow::{Context, bail, ensure};
use atoll_lab::{Cluster, Deadline, until};
use futures_util::StreamExt;
use futures_util::stream;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const JSON: &str = "application/json";
const NAMESPACE: &str = "scenarios";
const CLUSTER_SCOPED: [&str; 4] =
    ["ClusterRole", "PriorityClass", "StorageClass", "ValidatingAdmissionPolicy"];

/// Plays a file's scenarios and compares them with what was recorded, or records them.
pub(crate) async fn compare(cluster: &Cluster, file: &str, scenarios: &[Scenario]) -> anyhow::Result<()> {
    let client = cluster.client().await?;
    prepare(&client).await?;
    let played = stream::iter(scenarios.iter().map(|scenario| {
        let client = client.clone();
        async move {
            let outcomes =
                play(&client, scenario).await.with_context(|| format!("the scenario {:?}", scenario.name))?;
            anyhow::Ok((scenario.name.clone(), outcomes))
        }
    }));
    let played: Vec<_> = played.buffer_unordered(24).collect().await;
    let played: Recorded = played.into_iter().collect::<anyhow::Result<_>>()?;
    ensure!(played.len() == scenarios.len(), "two scenarios of {file} have the same name");
    if std::env::var_os("ATOLL_RECORD").is_some() {
        std::fs::write(golden(file), written(&played)?)?;
        return Ok(());
    }
    let known = recorded(file);
    let differing: Vec<_> =
        played.iter().filter(|(name, outcomes)| known.get(*name) != Some(outcomes)).collect();
    if let Some((name, outcomes)) = differing.first() {
        bail!(
            "{} of {} scenarios differ from what was recorded; {name:?} is now\n{}\n  hint: run with ATOLL_RECORD=1 to record anew",
            differing.len(),
            played.len(),
            serde_json::to_string_pretty(outcomes)?
        );
    }
    Ok(())
}

/// One line per outcome, so that a change shows as the lines that changed.
fn written(played: &Recorded) -> anyhow::Result<String> {
    let mut scenarios = Vec::new();
    for (name, outcomes) in played {
        let outcomes: Vec<_> = outcomes.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        scenarios.push(format!("{}: [\n{}\n]", json!(name), outcomes.join(",\n")));
    }
    Ok(format!("{{\n{}\n}}\n", scenarios.join(",\n")))
}

/// A namespace, and the custom resources as they are defined now.
async fn prepare(client: &kube::Client) -> anyhow::Result<()> {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    ignore_existing(send(client, "POST", "/api/v1/namespaces", JSON, &namespace).await?)?;
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for definition in definitions() {
        let name = definition.pointer("/metadata/name").and_then(Value::as_str).context("a name")?.to_owned();
        let kind = definition.pointer("/spec/names/kind").and_then(Value::as_str).context("a kind")?;
        send(client, "DELETE", &format!("{path}/{name}"), JSON, &Value::Null).await?;
        answers(client, "the old definition is gone", &format!("{path}/{name}"), 404).await?;
        ignore_existing(send(client, "POST", path, JSON, &definition).await?)?;
        let listed = format!("/apis/test.atoll.dev/v1/namespaces/{NAMESPACE}/{}", resource(kind));
        answers(client, "the custom resource is served", &listed, 200).await?;
    }
    Ok(())
}

async fn answers(client: &kube::Client, what: &'static str, path: &str, wanted: u16) -> anyhow::Result<()> {
    until(Deadline::after(Duration::from_secs(60), what), async || {
        let answer = send(client, "GET", path, JSON, &Value::Null).await;
        Ok(match answer {
            Ok((code, _)) if code == wanted => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await?;
    Ok(())
}

fn ignore_existing((code, answer): (u16, Value)) -> anyhow::Result<()> {
    ensure!(code < 300 || code == 409, "{answer}");
    Ok(())
}

async fn play(client: &kube::Client, scenario: &Scenario) -> anyhow::Result<Vec<Outcome>> {
    let name = scenario.object_name();
    let path = |step: &Step| {
        let parts = KindParts::of(scenario, step);
        let root = if parts.group.is_empty() { "/api" } else { "/apis" };
        let namespace = if CLUSTER_SCOPED.contains(&parts.kind.as_str()) {
            String::new()
        } else {
            format!("/namespaces/{NAMESPACE}")
        };
        format!("{root}/{}{namespace}/{}", parts.api_version(), resource(&parts.kind))
    };
    let first = scenario.steps.first().context("a scenario has steps")?;
    let object = format!("{}/{name}", path(first));
    send(client, "DELETE", &object, JSON, &json!({ "gracePeriodSeconds": 0 })).await?;
    let mut clock = Clock::default();
    let mut outcomes = Vec::new();
    for step in &scenario.steps {
        let collection = path(step);
        let object = format!("{collection}/{name}");
        let target = step.on.as_ref().map_or_else(|| object.clone(), |on| format!("{object}/{on}"));
        let options = format!("fieldManager={}", step.manager());
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        let (_, before) = send(client, "GET", &object, JSON, &Value::Null).await?;
        clock.next_second().await;
        let (code, answer) = match step.write() {
            Write::Create(body) => {
                let body = scenario.body(step, body);
                send(client, "POST", &format!("{collection}?{options}"), JSON, &body).await?
            }
            Write::Update(patch) => {
                let (_, live) = send(client, "GET", &target, JSON, &Value::Null).await?;
                let body = change(&live, patch);
                send(client, "PUT", &format!("{target}?{options}"), JSON, &body).await?
            }
            Write::Apply(body) => {
                let body = scenario.body(step, body);
                let uri = format!("{target}?{options}&force={}", step.force);
                send(client, "PATCH", &uri, "application/apply-patch+yaml", &body).await?
            }
            Write::Json(patch) => {
                let kind = "application/json-patch+json";
                send(client, "PATCH", &format!("{target}?{options}"), kind, patch).await?
            }
            Write::Merge(patch) => {
                let kind = "application/merge-patch+json";
                send(client, "PATCH", &format!("{target}?{options}"), kind, patch).await?
            }
            Write::Strategic(patch) => {
                let kind = "application/strategic-merge-patch+json";
                send(client, "PATCH", &format!("{target}?{options}"), kind, patch).await?
            }
        };
        clock.done();
        outcomes.push(if code < 300 {
            // A subresource may answer with something else than the object.
            let (_, mut after) = send(client, "GET", &object, JSON, &Value::Null).await?;
            let stored = version(&before) != version(&after);
            mask(&mut after);
            clock.mask(&mut after)?;
            Outcome::Object { stored, object: after }
        } else {
            let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let causes = answer.pointer("/details/causes").and_then(Value::as_array).cloned();
            Outcome::Error {
                code,
                reason: text("reason"),
                message: text("message").replace(&format!("{NAMESPACE}/"), "/"),
                causes: sorted(causes.unwrap_or_default()),
            }
        });
    }
    send(client, "DELETE", &object, JSON, &json!({ "gracePeriodSeconds": 0 })).await?;
    Ok(outcomes)
}

async fn send(
    client: &kube::Client,
    method: &str,
    uri: &str,
    kind: &str,
    body: &Value,
) -> anyhow::Result<(u16, Value)> {
    let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
    let request =
        http::Request::builder().method(method).uri(uri).header("content-type", kind).body(body.into())?;
    let answer = client.send(request).await?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect_bytes().await?;
    Ok((code, serde_json::from_slice(&bytes)?))
}

/// Which second each step was sent in: managedFields have no finer times.
#[derive(Default)]
struct Clock {
    spans: Vec<(u64, u64)>,
}

impl Clock {
    /// Waits until the second of the last step is over.
    async fn next_second(&mut self) {
        let last = self.spans.last().map_or(0, |(_, last)| *last);
        while seconds() <= last {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.spans.push((seconds(), seconds()));
    }

    fn done(&mut self) {
        if let Some((_, end)) = self.spans.last_mut() {
            *end = seconds();
        }
    }

    /// Puts the time of the step in the place of the server's.
    fn mask(&self, object: &mut Value) -> anyhow::Result<()> {
        let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            let Some(time) = entry.get("time").and_then(Value::as_str) else { continue };
            let at = parsed(time).with_context(|| format!("{time:?} is no time"))?;
            let step = self.spans.iter().position(|(start, end)| (*start..=*end).contains(&at));
            let step = step.with_context(|| format!("{time} is the time of no step"))?;
            entry["time"] = json!(time_of(step));
        }
        Ok(())
    }
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs()
}

fn parsed(time: &str) -> Option<u64> {
    let time: jiff::Timestamp = time.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

/// The plural of a kind, as its resource is called.
fn resource(kind: &str) -> String {
    let name = kind.to_lowercase();
    match name.strip_suffix('y') {
        _ if name == "endpoints" => name,
        Some(stem) => format!("{stem}ies"),
        None if name.ends_with('s') => format!("{name}es"),
        None => format!("{name}s"),
    }
}
