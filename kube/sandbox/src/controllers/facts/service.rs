//! Services, the slices of their endpoints, and nodes.

use super::{Meta, StringMap, list, text, words};
use serde_json::Value;
use std::net::IpAddr;

/// A Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Service {
    pub(crate) meta: Meta,
    /// None where another controller looks after the endpoints.
    pub(crate) selector: Option<StringMap>,
    pub(crate) headless: bool,
    /// Unready pods are published as ready.
    pub(crate) publish_unready: bool,
    /// `IPv4`, `IPv6`.
    pub(crate) families: Vec<String>,
    pub(crate) ports: Vec<ServicePort>,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServicePort {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) application: Option<String>,
    pub(crate) target: TargetPort,
}

/// Where a Service's port leads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TargetPort {
    Number(u16),
    /// The port of that name, which pods may have under different numbers.
    Named(String),
}

impl Default for TargetPort {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// An EndpointSlice of ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Slice {
    pub(crate) meta: Meta,
    /// The Service that it belongs to, by its uid.
    pub(crate) service_uid: String,
    pub(crate) family: String,
    /// As they stand in the object, in order.
    pub(crate) ports: Vec<Value>,
    pub(crate) endpoints: Vec<Value>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    pub(crate) meta: Meta,
}

impl Service {
    pub(crate) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let selector = words(&spec["selector"]);
        let address = text(&spec["clusterIP"]);
        let mut families: Vec<String> = list(&spec["ipFamilies"]).map(text).collect();
        if families.is_empty() {
            let v6 = matches!(address.parse(), Ok(IpAddr::V6(_)));
            families.push(if v6 { "IPv6" } else { "IPv4" }.to_owned());
        }
        let external = spec["type"] == "ExternalName";
        Self {
            meta: Meta::read(object),
            selector: Some(selector).filter(|selector| !selector.is_empty() && !external),
            headless: address.is_empty() || address == "None",
            publish_unready: spec["publishNotReadyAddresses"] == true,
            families,
            ports: list(&spec["ports"]).map(ServicePort::read).collect(),
        }
    }

    /// Are pods with these labels behind it?
    pub(crate) fn selects(&self, labels: &StringMap) -> bool {
        let wanted =
            |selector: &StringMap| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
        self.selector.as_ref().is_some_and(wanted)
    }
}

impl ServicePort {
    fn read(port: &Value) -> Self {
        let number = |value: &Value| value.as_u64().and_then(|value| u16::try_from(value).ok());
        let target = &port["targetPort"];
        let target = match (target.as_str(), number(target).filter(|number| *number != 0)) {
            (Some(name), _) => TargetPort::Named(name.to_owned()),
            (None, Some(number)) => TargetPort::Number(number),
            (None, None) => TargetPort::Number(number(&port["port"]).unwrap_or(0)),
        };
        Self {
            name: text(&port["name"]),
            protocol: port["protocol"].as_str().unwrap_or("TCP").to_owned(),
            application: port["appProtocol"].as_str().map(str::to_owned),
            target,
        }
    }
}

impl Slice {
    pub(crate) fn read(object: &Value) -> Self {
        let owner = list(&object["metadata"]["ownerReferences"]).find(|owner| owner["kind"] == "Service");
        Self {
            meta: Meta::read(object),
            service_uid: owner.map(|owner| text(&owner["uid"])).unwrap_or_default(),
            family: text(&object["addressType"]),
            ports: list(&object["ports"]).cloned().collect(),
            endpoints: list(&object["endpoints"]).cloned().collect(),
        }
    }
}

impl Node {
    pub(crate) fn read(object: &Value) -> Self {
        Self { meta: Meta::read(object) }
    }

    pub(crate) fn zone(&self) -> Option<&String> {
        self.meta.labels.get("topology.kubernetes.io/zone").filter(|zone| !zone.is_empty())
    }
}
