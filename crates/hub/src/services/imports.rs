//! `ServiceImports` of the hub's API, as the engine knows them: where they go is the policies' word.
//!
//! ```text
//!   list, before anything is planned ──▶ which namespaces are explicit, which services have a template
//!   policies::core ──▶ News ──▶ engine        where each template goes, once that is known
//!   engine ──▶ why a cluster has no import ──▶ policies::core ──▶ event on the template
//! ```

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::names::annotation::{self, import};
use atoll_api::names::{condition, kind, label, reason};
use atoll_api::types::ServiceImport;
use atoll_engine::facts::Protocol;
use atoll_engine::intent::imports::{Asked, HubImports, ImportPort, ImportTo};
use atoll_engine::names::{ClusterId, Namespace as NamespaceName, PortName, ServiceKey};
use atoll_engine::placement::object::Kind;
use atoll_engine::plan::WhyAbsent;
use atoll_engine::reason::{ImportNote, ImportReady, text};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

/// Something about the hub's imports is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum News {
    /// The namespaces in which only what is asked for is imported.
    Explicit(BTreeSet<NamespaceName>),
    /// Where a template goes; none if there is none that goes anywhere.
    To(ServiceKey, Option<ImportTo>),
    /// It has been said of every template where it goes.
    Placed,
}

/// Why clusters that should import a service have no derived Service.
pub(crate) type Absent = BTreeMap<ClusterId, NoImport>;

/// Why a cluster has no derived Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoImport {
    /// It does not import.
    Absent(WhyAbsent),
    /// It does, and something stands in the way.
    NotReady(ImportReady, Vec<ImportNote>),
}

impl NoImport {
    /// For people.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Absent(why) => text::absent(*why).to_owned(),
            Self::NotReady(ready, notes) => text::import_message(ready, notes),
        }
    }
}

/// What there is. What is not known must not be taken for gone, so nothing is planned before.
pub(crate) async fn list(client: &Client) -> Result<HubImports, kube::Error> {
    let all = ListParams::default();
    let namespaces = Api::<Namespace>::all(client.clone()).list_metadata(&all).await?.items;
    let explicit = namespaces.iter().filter(|one| {
        one.annotations().get(annotation::IMPORT).is_some_and(|value| value == import::EXPLICIT)
    });
    let explicit = explicit.filter_map(|one| NamespaceName::parse(one.name_any()).ok()).collect();
    // Where the hub's API is a member's, that member's own imports are there too.
    let templates = ListParams::default().labels(&format!("!{}", label::HUB));
    let templates = Api::<ServiceImport>::all(client.clone()).list_metadata(&templates).await?.items;
    let keys = templates.iter().filter_map(|one| ServiceKey::parse(&one.namespace()?, &one.name_any()).ok());
    Ok(HubImports { explicit, asked: keys.map(|key| (key, Asked::Unplaced)).collect() })
}

/// Whether it is the kind of a ServiceImport, in a version that there is.
pub(crate) fn is_import(kind: &Kind) -> bool {
    kind.is(kind::mcs::GROUP, kind::mcs::SERVICE_IMPORT)
        && [kind::mcs::V1ALPHA1, kind::mcs::V1BETA1].contains(&kind.version())
}

/// The ports that a template names.
pub(crate) fn ports(template: &Value) -> Vec<ImportPort> {
    let ports = template["spec"]["ports"].as_array().into_iter().flatten();
    let read = |port: &Value| {
        let name = port["name"].as_str().filter(|name| !name.is_empty());
        Some(ImportPort {
            name: name.map(PortName::parse).transpose().ok()?,
            protocol: Protocol::parse(port["protocol"].as_str())?,
            port: u16::try_from(port["port"].as_u64()?).ok()?,
        })
    };
    ports.filter_map(read).collect()
}

/// How the derived Service of a member's import is, by the import's own status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Derived {
    /// As it should be.
    Usable,
    /// On its way, or nothing was said.
    Awaited,
    /// Not to be had, and why.
    Refused(String),
}

/// Reads it off a status.
pub(crate) fn derived(status: &Value) -> Derived {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions.find(|one| one["type"] == condition::import::READY);
    match ready {
        Some(ready) if ready["status"] == "True" => Derived::Usable,
        // The derived Service is there; it is its sources that are not.
        Some(ready) if ready["reason"] == reason::import::SOURCES_LOST => Derived::Usable,
        Some(ready) if ready["reason"] != reason::import::PENDING => {
            Derived::Refused(ready["message"].as_str().unwrap_or_default().to_owned())
        }
        Some(_) | None => Derived::Awaited,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_of_a_template_are_read_and_what_is_no_port_is_left_out() {
        let template = json!({"spec": {"ports": [{"port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"},
            {"port": 0}, {"port": 70000}, {"port": 1, "protocol": "X"}]}});
        let asked = |name: Option<&str>, protocol, port| ImportPort {
            name: name.map(|name| PortName::parse(name).unwrap()),
            protocol,
            port,
        };
        assert_eq!(
            ports(&template),
            [
                asked(None, Protocol::Tcp, 80),
                asked(Some("dns"), Protocol::Udp, 53),
                asked(None, Protocol::Tcp, 0)
            ]
        );
        assert_eq!(ports(&json!({})), []);
    }

    #[test]
    fn a_derived_service_is_usable_on_its_way_or_refused_for_a_reason() {
        let status = |status: &str, reason: &str| {
            let message = format!("why {reason}");
            json!({"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]})
        };
        let refused = |reason: &str| (status("False", reason), Derived::Refused(format!("why {reason}")));
        for (status, want) in [
            (status("True", reason::import::READY), Derived::Usable),
            refused(reason::import::NAMES_TAKEN),
            refused(reason::import::NO_SUCH_PORT),
            refused(reason::import::REFUSED),
            refused(reason::import::IP_FAMILY_NOT_SUPPORTED),
            (status("False", reason::import::PENDING), Derived::Awaited),
            (json!({}), Derived::Awaited),
        ] {
            assert_eq!(derived(&status), want, "{status}");
        }
    }
}
