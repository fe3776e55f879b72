//! A member as it would be if some of its objects were others: what it would then say to the hub.
//!
//! Objects pass the same edge as in a member that runs (`edge`), and what is told of them is decided by the same
//! [`Facts`]. Nothing is asked of the cluster.

use std::sync::Arc;

use atoll_api::names::kind::mcs;
use atoll_api::types::{ServiceExport, ServiceImport};
use atoll_engine::facts::{Capabilities, InternalTrafficPolicy, ServiceFact, ServiceType, SessionAffinity};
use atoll_engine::names::{ClusterId, Namespace, ServiceKey, ServiceName, SliceName};
use atoll_engine::time::Time;
use atoll_engine::world::{Change, World};
use atoll_link::Problem;
use k8s_openapi::api::core::v1::{Namespace as NamespaceObject, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::core::event::Seen;
use crate::core::facts::Facts;
use crate::edge::{Edge, Readable};
use crate::stale::rfc3339;

/// A member as it would be.
#[derive(Debug)]
pub struct Imagined {
    edge: Edge,
    facts: Facts,
    capabilities: Option<Capabilities>,
    now: Time,
    /// Exports made so far, so that each has a uid of its own.
    made: usize,
}

/// What an object means to Atoll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// It is a fact.
    Fact {
        /// What of it can't be represented.
        left_out: Vec<Problem>,
    },
    /// Atoll itself writes such an object.
    Ours,
    /// A ServiceImport that is not Atoll's: Atoll leaves the service alone there.
    ForeignImport(ServiceKey),
    /// A ServiceExport with a name that no Service can have.
    Misnamed,
    /// Of a Service: another multi-cluster controller wrote it, or its family is unknown.
    NoFact,
    /// Atoll does not read this kind in a member.
    NotRead,
}

/// An object that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unclear(String);

/// The kinds that are read in a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Namespace,
    Service,
    Slice,
    Export,
    Import,
}

impl Imagined {
    /// The member as the hub knows it. `hub`: the hub's uid.
    pub fn of(world: &World, id: &ClusterId, hub: Arc<str>, now: Time) -> Self {
        let edge = Edge { hub, interned: Arc::default() };
        let mut facts = Facts::default();
        let mut told = Vec::new(); // the hub knows it
        let cluster = world.clusters.get(id);
        for (name, state) in cluster.into_iter().flat_map(|cluster| &cluster.namespaces) {
            facts.namespace(name.clone(), *state, 0, &mut told);
        }
        for key in cluster.into_iter().flat_map(|cluster| &cluster.taken) {
            facts.service(key.clone(), of_another_owner(), true, 0, &mut told);
        }
        for (key, holding) in world.services.iter().filter_map(|(key, all)| Some((key, all.get(id)?))) {
            facts.follow(key, holding.followed, &mut told);
            if let Some(service) = &holding.service {
                facts.service(key.clone(), ServiceFact::clone(service), true, 0, &mut told);
            }
            for (name, slice) in &holding.slices {
                let at = (key.namespace.clone(), name.clone());
                facts.slice(at, key.clone(), Arc::clone(slice), 0, &mut told);
            }
            if let Some((export, _)) = &holding.export {
                facts.export(key.clone(), (**export).clone(), 0, &mut told);
            }
            told.clear();
        }
        Self { edge, facts, capabilities: cluster.and_then(|cluster| cluster.heard.clone()), now, made: 0 }
    }

    /// An object is there now, of which the hub may not have been told. What the hub was told of its service counts for more.
    pub fn is_there(&mut self, object: &Value) -> Result<(), Unclear> {
        let of = match known(object) {
            Some(Known::Service) => key(object),
            Some(Known::Slice) => slice_of(object),
            Some(Known::Namespace | Known::Export | Known::Import) | None => return Ok(()),
        };
        if of.is_some_and(|of| !self.facts.is_told(&of)) {
            self.seen(object, &mut Vec::new())?;
        }
        Ok(())
    }

    /// An object is applied.
    pub fn applied(&mut self, object: &Value, tell: &mut Vec<Change>) -> Result<Meaning, Unclear> {
        let object = self.completed(object);
        self.seen(&object, tell)
    }

    /// An object is deleted.
    pub fn deleted(&mut self, object: &Value, tell: &mut Vec<Change>) -> Result<Meaning, Unclear> {
        let fact = Meaning::Fact { left_out: Vec::new() };
        let Some(known) = known(object) else { return Ok(Meaning::NotRead) };
        let named = |what: &str| Unclear(format!("its names are not those of a {what}"));
        match known {
            Known::Namespace => {
                let name = text(object, "/metadata/name");
                let name = Namespace::parse(name).map_err(|error| Unclear(error.to_string()))?;
                self.facts.everything_in(&name, tell);
            }
            Known::Service => self.facts.whole_service(&key(object).ok_or_else(|| named("Service"))?, tell),
            Known::Slice => {
                let namespace = Namespace::parse(text(object, "/metadata/namespace"));
                let name = SliceName::parse(text(object, "/metadata/name"));
                let (Ok(namespace), Ok(name)) = (namespace, name) else { return Err(named("EndpointSlice")) };
                self.facts.no_slice(&(namespace, name), tell);
            }
            Known::Export => match key(object) {
                Some(key) => self.facts.no_export(&key, tell),
                None => return Ok(Meaning::Misnamed),
            },
            // Whatever becomes of one that is not ours: the hub does not know it.
            Known::Import => return Ok(Meaning::Ours),
        }
        Ok(fact)
    }

    fn seen(&mut self, object: &Value, tell: &mut Vec<Change>) -> Result<Meaning, Unclear> {
        let Some(known) = known(object) else { return Ok(Meaning::NotRead) };
        let mut left_out = Vec::new();
        let seen = match known {
            Known::Namespace => self.read::<NamespaceObject>(object, &mut left_out),
            Known::Service => self.read::<Service>(object, &mut left_out),
            Known::Slice => self.read::<EndpointSlice>(object, &mut left_out),
            Known::Export => self.read::<ServiceExport>(object, &mut left_out),
            Known::Import => self.read::<ServiceImport>(object, &mut left_out),
        }?;
        match seen {
            Some(Seen::Namespace(name, state)) => self.facts.namespace(name, state, 0, tell),
            Some(Seen::Service(key, fact)) => self.facts.service(key, fact, true, 0, tell),
            Some(Seen::Slice(namespace, name, of, fact)) => {
                self.facts.slice((namespace, name), of, fact.into(), 0, tell);
            }
            Some(Seen::Export(seen)) => self.facts.export(seen.key, seen.fact, 0, tell),
            Some(Seen::MisnamedExport(_)) => return Ok(Meaning::Misnamed),
            Some(Seen::Import(key)) => return Ok(Meaning::ForeignImport(key)),
            Some(Seen::OtherSlice(namespace, name)) => {
                self.facts.no_slice(&(namespace, name), tell);
                return Ok(Meaning::NoFact);
            }
            Some(Seen::OwnService(_) | Seen::OwnSlice(_) | Seen::OwnImport(_)) => return Ok(Meaning::Ours),
            Some(Seen::Node(..) | Seen::Property(_)) | None => return Ok(Meaning::NotRead),
        }
        Ok(Meaning::Fact { left_out })
    }

    fn read<K: Readable + DeserializeOwned>(
        &self,
        object: &Value,
        left_out: &mut Vec<Problem>,
    ) -> Result<Option<Seen>, Unclear> {
        let typed: K = serde_json::from_value(object.clone()).map_err(|error| Unclear(error.to_string()))?;
        typed.read(&self.edge, left_out).map_err(|error| Unclear(error.to_string()))
    }

    /// What an API server would add to a manifest.
    fn completed(&mut self, object: &Value) -> Value {
        let mut object = object.clone();
        if !object["metadata"].is_object() {
            return object; // it will be refused
        }
        let (name, kind) = (key(&object), known(&object));
        let known = name.as_ref().and_then(|name| self.facts.exported(name));
        let (uid, created) = match (kind, known) {
            (Some(Known::Export), Some(known)) => (known.uid.to_string(), known.created),
            _ => {
                self.made += 1;
                (format!("planned-{}", self.made), self.now)
            }
        };
        for (field, value) in [
            ("uid", Value::from(uid)),
            ("resourceVersion", "0".into()),
            ("creationTimestamp", rfc3339(created).into()),
        ] {
            if object["metadata"][field].is_null() {
                object["metadata"][field] = value;
            }
        }
        if kind == Some(Known::Service)
            && object["spec"].is_object()
            && object["spec"]["ipFamilies"].is_null()
        {
            let known = name.as_ref().and_then(|name| self.facts.served(name));
            let mut families: Vec<_> = match (known, &self.capabilities) {
                (Some(known), _) => known.families.clone(),
                (None, Some(capabilities)) => capabilities.families.clone(),
                (None, None) => Vec::new(),
            };
            let dual = text(&object, "/spec/ipFamilyPolicy").ends_with("DualStack");
            if known.is_none() && !dual {
                families.truncate(1);
            }
            if text(&object, "/spec/type") != "ExternalName" {
                object["spec"]["ipFamilies"] = families.iter().map(|family| family.as_str()).collect();
            }
        }
        object
    }
}

/// What is said of a Service of which only the name is known: that it has another owner.
fn of_another_owner() -> ServiceFact {
    ServiceFact {
        service_type: ServiceType::ClusterIp,
        headless: false,
        derived: false,
        ports: Vec::new(),
        session_affinity: SessionAffinity::None,
        client_ip_timeout: None,
        internal_traffic_policy: InternalTrafficPolicy::Cluster,
        traffic_distribution: None,
        families: Vec::new(),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn known(object: &Value) -> Option<Known> {
    let version = text(object, "/apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let of = (group, version, text(object, "/kind"));
    let in_mcs =
        |kind| [mcs::V1ALPHA1, mcs::V1BETA1].iter().any(|version| of == (mcs::GROUP, *version, kind));
    if of == built_in::<NamespaceObject>() {
        Some(Known::Namespace)
    } else if of == built_in::<Service>() {
        Some(Known::Service)
    } else if of == built_in::<EndpointSlice>() {
        Some(Known::Slice)
    } else if in_mcs(mcs::SERVICE_EXPORT) {
        Some(Known::Export)
    } else if in_mcs(mcs::SERVICE_IMPORT) {
        Some(Known::Import)
    } else {
        None
    }
}

/// Group, version and kind.
fn built_in<K: k8s_openapi::Resource>() -> (&'static str, &'static str, &'static str) {
    (K::GROUP, K::VERSION, K::KIND)
}

fn key(object: &Value) -> Option<ServiceKey> {
    ServiceKey::parse(text(object, "/metadata/namespace"), text(object, "/metadata/name")).ok()
}

/// The Service that a slice belongs to.
fn slice_of(object: &Value) -> Option<ServiceKey> {
    let labels = object.pointer("/metadata/labels")?;
    let name = labels.get(atoll_api::names::label::SERVICE_NAME)?.as_str()?;
    let namespace = Namespace::parse(text(object, "/metadata/namespace")).ok()?;
    Some(ServiceKey { namespace, name: ServiceName::parse(name).ok()? })
}
