//! Services with a load balancer, and when the controller is told of them: once all providers have been heard, and again whenever
//! something about them is new. No socket, no clock.

use std::collections::BTreeMap;

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
    no_backends: bool,
    finalizer: bool,
    deleting: bool,
    /// What the controller was last told.
    told: Option<Object>,
}

/// The services with a load balancer.
#[derive(Debug)]
pub(crate) struct LoadBalancers {
    clusterset: String,
    items: BTreeMap<ServiceKey, Item>,
}

impl LoadBalancers {
    /// With no services yet.
    pub(crate) fn new(clusterset: &str) -> Self {
        Self { clusterset: clusterset.to_owned(), items: BTreeMap::new() }
    }

    /// A `MultiClusterService` of type `LoadBalancer` was seen, with what its balancer leads to, if that is known.
    pub(crate) fn seen(
        &mut self,
        service: &ServiceKey,
        object: &MultiClusterService,
        balanced: Option<&Balanced>,
    ) -> Option<Event> {
        let key = Key {
            clusterset: self.clusterset.clone(),
            namespace: service.namespace.to_string(),
            name: service.name.to_string(),
            uid: object.uid()?,
        };
        let (status, no_backends) = shown(object);
        let item = Item {
            key,
            annotations: object.annotations().clone(),
            status,
            no_backends,
            finalizer: object.finalizers().iter().any(|one| one == finalizer::LOAD_BALANCER),
            deleting: object.metadata.deletion_timestamp.is_some(),
            told: None, // what it shows may have been changed by others: told again
        };
        self.items.insert(service.clone(), item);
        self.look_at(service, balanced)
    }

    /// A `MultiClusterService` is gone.
    pub(crate) fn gone(&mut self, namespace: &str, name: &str) -> Option<Event> {
        let service = ServiceKey::parse(namespace, name).ok()?;
        self.items.remove(&service).map(|item| Event::Gone(item.key))
    }

    /// Where clients reach the balancer of a service, as its object shows it.
    pub(crate) fn ingress(&self, service: &ServiceKey) -> &[Ingress] {
        self.items.get(service).map_or(&[], |item| &item.status.ingress)
    }

    /// The service whose balancer has an address.
    pub(crate) fn at(&self, address: std::net::IpAddr) -> Option<&ServiceKey> {
        let has = |item: &Item| item.status.ingress.contains(&Ingress::Ip(address));
        self.items.iter().find(|(_, item)| has(item)).map(|(key, _)| key)
    }

    /// What the controller has to be told, now that the balancer of this service should lead to this.
    pub(crate) fn look_at(&mut self, service: &ServiceKey, balanced: Option<&Balanced>) -> Option<Event> {
        let item = self.items.get_mut(service)?;
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
    let Item { no_backends, finalizer, deleting, .. } = *item;
    Some(Object { spec, status: item.status.clone(), no_backends, finalizer, deleting })
}

/// Where clients reach it, as the object shows it, and whether no backend answers there. One that is not shown as ready is shown anew.
fn shown(object: &MultiClusterService) -> (Status, bool) {
    let Some(status) = &object.status else { return (Status::default(), false) };
    let condition = status.conditions.iter().find(|one| one.type_ == conditions::LOAD_BALANCER_READY);
    let ready = condition.is_some_and(|one| one.status == "True");
    let no_backends = !ready && condition.is_some_and(|one| one.reason == reasons::NOBODY_ANSWERS);
    if !ready && !no_backends && object.metadata.deletion_timestamp.is_none() {
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
    (Status { ingress }, no_backends)
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

    fn web() -> ServiceKey {
        ServiceKey::parse("shop", "web").unwrap()
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
        let mut balancers = LoadBalancers::new("set");
        let web = web();
        assert!(balancers.seen(&web, &mcs(json!({})), None).is_none(), "nothing is planned yet");
        let waits = Balanced { awaited: [ClusterId::parse("paris").unwrap()].into(), ..Balanced::default() };
        assert!(balancers.look_at(&web, Some(&waits)).is_none());
        let heard = Balanced { affinity: Some(5), ..Balanced::default() };
        let object = told(balancers.look_at(&web, Some(&heard)));
        assert!(object.spec.is_some() && !object.finalizer && !object.deleting);
        assert!(balancers.look_at(&web, Some(&heard)).is_none(), "told once");

        let going = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["karmada.io/multi-cluster-service-controller"]}});
        let object = told(balancers.seen(&web, &mcs(going), None));
        assert!(object.spec.is_none() && object.finalizer && object.deleting);
        assert!(matches!(balancers.gone("shop", "web"), Some(Event::Gone(key)) if key.uid == "u1"));
        assert!(balancers.gone("shop", "web").is_none());
    }

    #[test]
    fn a_status_counts_only_while_it_is_shown_as_ready() {
        let mut balancers = LoadBalancers::new("set");
        let heard = Balanced::default();
        for (ready, reason, want, no_backends) in [
            ("True", "Balanced", 1, false),
            ("False", "EnsureFailed", 0, false),
            ("False", "NobodyAnswers", 1, true),
        ] {
            let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}, "conditions": [{
                "type": "LoadBalancerReady", "status": ready, "reason": reason, "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
            let told = told(balancers.seen(&web(), &mcs(status), Some(&heard)));
            assert_eq!((told.status.ingress.len(), told.no_backends), (want, no_backends));
        }
    }
}
