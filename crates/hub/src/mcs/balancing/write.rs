//! Writes what the controller decides onto `MultiClusterServices`: the finalizer, where clients reach it, a condition, events.

use atoll_api::names::kind::networking;
use atoll_api::names::{
    condition::multi_cluster_service as conditions, event::multi_cluster_service as events, finalizer,
    reason::multi_cluster_service as reasons,
};
use atoll_api::types::MultiClusterService;
use atoll_lb::controller::{Note, Services, Write};
use atoll_lb::provider::{Ingress, Key, Status, async_trait};
use atoll_member::Permit;
use atoll_member::events::{Events, Notice};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::api::conditions::{condition, dated};
use crate::mcs::write::about;
use crate::membership::connect::{code, why};

/// Whose fields these are.
const MANAGER: &str = "atoll-balancing";
/// Others may write the object between our reading and our writing it.
const TRIES: usize = 5;

/// Writes `MultiClusterServices`.
pub(super) struct Writer {
    client: Client,
    permit: Permit,
    told: Events,
}

impl Writer {
    pub(super) fn new(client: Client, permit: Permit, told: Events) -> Self {
        Self { client, permit, told }
    }

    fn api(&self, key: &Key) -> Api<MultiClusterService> {
        Api::namespaced(self.client.clone(), &key.namespace)
    }

    /// The object, if it is still there and still the same.
    async fn object(&self, key: &Key) -> Result<Option<MultiClusterService>, kube::Error> {
        let found = self.api(key).get_opt(&key.name).await?;
        Ok(found.filter(|object| object.uid().as_deref() == Some(&*key.uid)))
    }

    async fn finalizer(&self, key: &Key, wanted: bool) -> Result<(), kube::Error> {
        let Some(object) = self.object(key).await? else { return Ok(()) };
        let mut all = object.finalizers().to_vec();
        let there = all.iter().any(|one| one == finalizer::LOAD_BALANCER);
        // Nothing that is being deleted gets a finalizer.
        if there == wanted || (wanted && object.metadata.deletion_timestamp.is_some()) {
            return Ok(());
        }
        if wanted {
            all.push(finalizer::LOAD_BALANCER.to_owned());
        } else {
            all.retain(|one| one != finalizer::LOAD_BALANCER);
        }
        let meta = json!({ "uid": key.uid, "resourceVersion": object.resource_version(), "finalizers": all });
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.api(key).patch(&key.name, &params, &Patch::Merge(json!({ "metadata": meta }))).await.map(drop)
    }

    /// Shows the condition, and where clients reach it: as given, or as it is shown already.
    async fn show(&self, key: &Key, status: Option<&Status>, shown: Shown<'_>) -> Result<(), kube::Error> {
        let Some(object) = self.object(key).await? else { return Ok(()) };
        let before = object.status.as_ref().map(serde_json::to_value).transpose();
        let before = before.map_err(kube::Error::SerdeError)?.unwrap_or_default();
        let balancer = match status {
            Some(status) => ingress(status),
            None => before["loadBalancer"].clone(),
        };
        let generation = object.metadata.generation.unwrap_or_default();
        let now = format!("{:.0}", jiff::Timestamp::now());
        let mut written = json!({ "conditions": [shown.condition(&before, generation, &now)] });
        if !balancer.is_null() {
            written["loadBalancer"] = balancer;
        }
        let object = json!({
            "apiVersion": MultiClusterService::api_version(&()),
            "kind": networking::MULTI_CLUSTER_SERVICE,
            "metadata": { "name": key.name, "namespace": key.namespace, "uid": key.uid },
            "status": written,
        });
        let params = PatchParams::apply(MANAGER).force();
        self.api(key).patch_status(&key.name, &params, &Patch::Apply(object)).await.map(drop)
    }
}

/// What the condition says.
#[derive(Debug, Clone, Copy)]
struct Shown<'a> {
    ready: bool,
    reason: &'a str,
    message: &'a str,
}

impl Shown<'_> {
    /// The condition; it keeps its time while it stays.
    fn condition(&self, before: &Value, generation: i64, now: &str) -> Value {
        let condition = condition(conditions::LOAD_BALANCER_READY, self.ready, self.reason, self.message);
        let mut condition = dated(condition, before, now);
        condition["observedGeneration"] = generation.into();
        condition
    }
}

fn ingress(status: &Status) -> Value {
    if status.ingress.is_empty() {
        return Value::Null;
    }
    let each = status.ingress.iter().map(|one| match one {
        Ingress::Ip(ip) => json!({ "ip": ip.to_string() }),
        Ingress::Hostname(name) => json!({ "hostname": name }),
    });
    json!({ "ingress": each.collect::<Vec<_>>() })
}

/// Where clients reach it, for people.
fn places(status: &Status) -> String {
    let each = status.ingress.iter().map(|one| match one {
        Ingress::Ip(ip) => ip.to_string(),
        Ingress::Hostname(name) => name.clone(),
    });
    each.collect::<Vec<_>>().join(", ")
}

#[async_trait]
impl Services for Writer {
    async fn write(&self, key: &Key, write: &Write) -> Result<(), String> {
        for _ in 0..TRIES {
            if !self.permit.holds() {
                return Err("this hub no longer leads".to_owned());
            }
            let done = match write {
                Write::AddFinalizer => self.finalizer(key, true).await,
                Write::RemoveFinalizer => self.finalizer(key, false).await,
                Write::Status(status, _) if status.ingress.is_empty() => {
                    let message = "the load balancer has no address yet";
                    let shown = Shown { ready: false, reason: reasons::NO_ADDRESS_YET, message };
                    self.show(key, Some(status), shown).await
                }
                Write::Status(status, true) => {
                    let message = format!(
                        "it has the address {}, but no backends: no provider has a usable endpoint",
                        places(status)
                    );
                    let shown = Shown { ready: false, reason: reasons::NOBODY_ANSWERS, message: &message };
                    self.show(key, Some(status), shown).await
                }
                Write::Status(status, false) => {
                    let message = format!("the load balancer has the address {}", places(status));
                    let shown = Shown { ready: true, reason: reasons::BALANCED, message: &message };
                    self.show(key, Some(status), shown).await
                }
            };
            match done {
                Ok(()) => return Ok(()),
                Err(error) if code(&error) == Some(404) => return Ok(()), // it is gone
                Err(error) if code(&error) == Some(409) => {}             // it is another by now
                Err(error) => return Err(why(&error)),
            }
        }
        Err("others change it all the time".to_owned())
    }

    async fn note(&self, key: &Key, note: Note, text: &str) {
        if !self.permit.holds() {
            return;
        }
        let (good, reason) = match note {
            Note::Recovered => (true, reasons::BALANCED),
            Note::GetFailed => (false, reasons::GET_FAILED),
            Note::EnsureFailed | Note::Withdrawn => (false, reasons::ENSURE_FAILED),
            Note::DeleteFailed => (false, reasons::DELETE_FAILED),
            Note::WriteFailed => (false, reasons::WRITE_FAILED),
        };
        let shown = Shown { ready: good, reason, message: text };
        let nothing = Status::default();
        let status = (note == Note::Withdrawn).then_some(&nothing);
        if let Err(error) = self.show(key, status, shown).await {
            tracing::debug!(service = %key, why = why(&error), "cannot write the condition of its load balancer");
        }
        let about = about(&key.namespace, &key.name, &key.uid);
        let message = text.to_owned();
        self.told.tell(Notice { about, warning: !good, reason: events::LOAD_BALANCER, message });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_its_time_while_it_stays() {
        let shown = |ready| Shown { ready, reason: "R", message: "m" };
        let first = shown(false).condition(&json!({}), 1, "t1");
        let before = json!({ "conditions": [first] });
        assert_eq!(shown(false).condition(&before, 2, "t2")["lastTransitionTime"], "t1");
        assert_eq!(shown(true).condition(&before, 2, "t2")["lastTransitionTime"], "t2");
    }

    #[test]
    fn addresses_and_names_are_shown_as_kubernetes_does() {
        let status = Status {
            ingress: vec![
                Ingress::Ip("192.0.2.1".parse().unwrap()),
                Ingress::Hostname("lb.example.com".into()),
            ],
        };
        assert_eq!(
            ingress(&status),
            json!({"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]})
        );
        assert_eq!(places(&status), "192.0.2.1, lb.example.com");
        assert_eq!(ingress(&Status::default()), Value::Null);
    }
}
