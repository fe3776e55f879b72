//! Which services have a load balancer, and when the controller is told of them: once all providers have been heard, and again whenever
//! something about them is new. No socket, no clock.

use std::collections::BTreeMap;

use atoll_api::names::kind::networking;
use atoll_api::names::{
    condition::multi_cluster_service as conditions, finalizer, reason::multi_cluster_service as reasons,
};
use atoll_api::types::MultiClusterService;
use atoll_engine::names::ServiceKey;
use atoll_engine::plan::Balanced;
use atoll_lb::controller::{Event, Object};
use atoll_lb::provider::{Ingress, Key, Status};
use kube::ResourceExt;

use super::spec::spec;

#[derive(Debug)]
struct Item {
    key: Key,
    annotations: BTreeMap<String, String>,
    status: Status,
    nobody: bool,
    finalizer: bool,
    deleting: bool,
    /// What the controller was last told.
    told: Option<Object>,
}

/// The state machine.
#[derive(Debug)]
pub(crate) struct Desk {
    clusterset: String,
    items: BTreeMap<ServiceKey, Item>,
}

impl Desk {
    /// With no services yet.
    pub(crate) fn new(clusterset: &str) -> Self {
        Self { clusterset: clusterset.to_owned(), items: BTreeMap::new() }
    }

    /// A `MultiClusterService` was seen, with what its balancer leads to, if that is known.
    pub(crate) fn seen(
        &mut self,
        object: &MultiClusterService,
        balanced: Option<&Balanced>,
    ) -> Option<Event> {
        let place = ServiceKey::parse(&object.namespace()?, &object.name_any()).ok()?;
        if !object.spec.types.iter().any(|one| one == networking::LOAD_BALANCER) {
            return None;
        }
        let key = Key {
            clusterset: self.clusterset.clone(),
            namespace: object.namespace()?,
            name: object.name_any(),
            uid: object.uid()?,
        };
        let (status, nobody) = shown(object);
        let item = Item {
            key,
            annotations: object.annotations().clone(),
            status,
            nobody,
            finalizer: object.finalizers().iter().any(|one| one == finalizer::LOAD_BALANCER),
            deleting: object.metadata.deletion_timestamp.is_some(),
            told: None, // what it shows may have been changed by others: told again
        };
        self.items.insert(place.clone(), item);
        self.look_at(&place, balanced)
    }

    /// A `MultiClusterService` is gone.
    pub(crate) fn gone(&mut self, namespace: &str, name: &str) -> Option<Event> {
        let place = ServiceKey::parse(namespace, name).ok()?;
        self.items.remove(&place).map(|item| Event::Gone(item.key))
    }

    /// What the controller has to be told, now that the balancer of this service should lead to this.
    pub(crate) fn look_at(&mut self, place: &ServiceKey, balanced: Option<&Balanced>) -> Option<Event> {
        let item = self.items.get_mut(place)?;
        let object = object(item, balanced)?;
        if item.told.as_ref() == Some(&object) {
            return None;
        }
        item.told = Some(object.clone());
        Some(Event::Seen(item.key.clone(), object))
    }
}

/// The object as the controller knows it; none as long as it must not act on it.
fn object(item: &Item, balanced: Option<&Balanced>) -> Option<Object> {
    let spec = match (item.deleting, balanced) {
        (true, _) => None,
        // What has not been heard must not be taken for absent.
        (false, Some(balanced)) if balanced.awaited.is_empty() => Some(spec(balanced, &item.annotations)),
        (false, Some(_) | None) => return None,
    };
    let Item { status, nobody, finalizer, deleting, .. } = item;
    let (nobody, finalizer, deleting) = (*nobody, *finalizer, *deleting);
    Some(Object { spec, status: status.clone(), nobody, finalizer, deleting })
}

/// Where clients reach it, as the object shows it, and whether nobody answers there. One that is not shown as ready is shown anew.
fn shown(object: &MultiClusterService) -> (Status, bool) {
    let Some(status) = &object.status else { return (Status::default(), false) };
    let condition = status.conditions.iter().find(|one| one.type_ == conditions::LOAD_BALANCER_READY);
    let ready = condition.is_some_and(|one| one.status == "True");
    let nobody = !ready && condition.is_some_and(|one| one.reason == reasons::NOBODY_ANSWERS);
    if !ready && !nobody && object.metadata.deletion_timestamp.is_none() {
        return (Status::default(), false);
    }
    let ingress = status.load_balancer.iter().flat_map(|balancer| &balancer.ingress);
    let mut ingress: Vec<Ingress> = ingress
        .filter_map(|one| match (&one.ip, &one.hostname) {
            (Some(ip), _) => ip.parse().ok().map(Ingress::Ip),
            (None, Some(name)) => Some(Ingress::Hostname(name.clone())),
            (None, None) => None,
        })
        .collect();
    ingress.sort();
    (Status { ingress }, nobody)
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_engine::names::ClusterId;
    use serde_json::{Value, json};

    #[allow(clippy::needless_pass_by_value)] // a manifest is written where it is used
    fn mcs(more: Value) -> MultiClusterService {
        let mut object = json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u1"}, "spec": {"types": ["LoadBalancer"]}});
        for (part, value) in more.as_object().into_iter().flatten() {
            for (field, value) in value.as_object().into_iter().flatten() {
                object[part][field] = value.clone();
            }
        }
        serde_json::from_value(object).unwrap()
    }

    fn told(event: Option<Event>) -> Object {
        match event {
            Some(Event::Seen(key, object)) => {
                assert_eq!((key.to_string().as_str(), key.clusterset.as_str()), ("shop/web", "set"));
                object
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_controller_hears_of_a_service_when_its_providers_have_been_heard_and_of_a_deletion_at_once() {
        let mut desk = Desk::new("set");
        let place = ServiceKey::parse("shop", "web").unwrap();
        assert!(desk.seen(&mcs(json!({})), None).is_none(), "nothing is planned yet");
        let waits = Balanced { awaited: [ClusterId::parse("paris").unwrap()].into(), ..Balanced::default() };
        assert!(desk.look_at(&place, Some(&waits)).is_none());
        let heard = Balanced { affinity: Some(5), ..Balanced::default() };
        let object = told(desk.look_at(&place, Some(&heard)));
        assert!(object.spec.is_some() && !object.finalizer && !object.deleting);
        assert!(desk.look_at(&place, Some(&heard)).is_none(), "told once");

        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["karmada.io/multi-cluster-service-controller"]}});
        let object = told(desk.seen(&mcs(going), None));
        assert!(object.spec.is_none() && object.finalizer && object.deleting);
        assert!(matches!(desk.gone("shop", "web"), Some(Event::Gone(key)) if key.uid == "u1"));
        assert!(desk.gone("shop", "web").is_none());
    }

    #[test]
    fn another_type_is_not_ours_and_a_status_counts_only_while_it_is_shown_as_ready() {
        let mut desk = Desk::new("set");
        let heard = Balanced::default();
        assert!(desk.seen(&mcs(json!({"spec": {"types": ["CrossCluster"]}})), Some(&heard)).is_none());
        for (ready, reason, want, nobody) in [
            ("True", "Balanced", 1, false),
            ("False", "EnsureFailed", 0, false),
            ("False", "NobodyAnswers", 1, true),
        ] {
            let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}, "conditions": [{
                "type": "LoadBalancerReady", "status": ready, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
            let told = told(desk.seen(&mcs(status), Some(&heard)));
            assert_eq!((told.status.ingress.len(), told.nobody), (want, nobody));
        }
    }
}
