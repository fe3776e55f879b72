//! The one place that makes prose of reasons: condition reasons and messages, and the lines of an explanation.
//!
//! Messages change only when a fact does: no ages, no counts of endpoints, or each slice change would cost a status write.

mod reach;

use std::borrow::Cow;

pub use reach::{exported_message, imported_message, not_imported, some};

use atoll_api::names::reason;

use super::{
    Conflict, CrossNote, Disputed, ExportFailed, ExportReady, ImportNote, ImportReady, Invalid, Kept,
    KeyRefused, PortDropped, SliceNote, WhyKeyRefused, Withdrawn,
};
use crate::facts::{InternalTrafficPolicy, SessionAffinity, TrafficDistribution};
use crate::fences::Fenced;
use crate::intent::imports::ImportPort;
use crate::limits::{Exceeded, Limit};
use crate::names::PortName;
use crate::network::{AddressRefused, Family, Use};
use crate::plan::{Unknown, WhyAbsent, WhyNotDispatched, WhyNothing, WhyUntouched};

/// The reason of the `Conflict` condition: several are joined by commas.
pub fn conflict_reason(conflicts: &[Conflict]) -> String {
    if conflicts.is_empty() {
        return reason::export::NO_CONFLICTS.to_owned();
    }
    conflicts.iter().map(|conflict| conflict.about.as_str()).collect::<Vec<_>>().join(",")
}

/// The message of the `Conflict` condition.
pub fn conflict_message(conflicts: &[Conflict]) -> String {
    if conflicts.is_empty() {
        return "All exports of this service agree.".to_owned();
    }
    conflicts.iter().map(conflict).collect::<Vec<_>>().join(" ")
}

/// One conflict.
pub fn conflict(conflict: &Conflict) -> String {
    let Conflict { about, winner, disagree, of, who } = conflict;
    let who = some(who, *disagree);
    let agree = to_agree(about, winner.as_str());
    let (field, using) = match about {
        Disputed::Ports => {
            let clash =
                format!("where they clash those of the service export in \"{winner}\", which has precedence");
            return format!(
                "Conflicting ports. Using the union of all ports, and {clash}. {disagree}/{of} clusters disagree: {who}. {agree}"
            );
        }
        Disputed::Type { headless } => ("type", quoted(import_type(*headless))),
        Disputed::SessionAffinity(affinity) => ("session affinity", quoted(session_affinity(*affinity))),
        Disputed::SessionAffinityConfig(Some(seconds)) => {
            ("session affinity config", quoted(&format!("timeoutSeconds: {seconds}")))
        }
        Disputed::SessionAffinityConfig(None) => ("session affinity config", "none".to_owned()),
        Disputed::Labels => ("exported labels", "those".to_owned()),
        Disputed::Annotations => ("exported annotations", "those".to_owned()),
        Disputed::InternalTrafficPolicy(policy) => {
            ("internal traffic policy", quoted(internal_traffic_policy(*policy)))
        }
        Disputed::TrafficDistribution(Some(distribution)) => {
            ("traffic distribution", quoted(traffic_distribution(*distribution)))
        }
        Disputed::TrafficDistribution(None) => ("traffic distribution", "none".to_owned()),
        Disputed::IpFamilies(used) => ("IP families", quoted(&families(used))),
    };
    format!(
        "Conflicting {field}. Using {using} from the service export in \"{winner}\", which has precedence. {disagree}/{of} clusters disagree: {who}. {agree}"
    )
}

/// What ends a conflict.
fn to_agree(about: &Disputed, winner: &str) -> String {
    let set = |field: &str| format!("To agree, set {field} of the Service there as in \"{winner}\".");
    match about {
        Disputed::Ports => {
            format!(
                "To agree, give the Service there the same ports (name, protocol and number) as in \"{winner}\"."
            )
        }
        Disputed::Type { headless: true } => {
            "To agree, delete the Service there and create it again with clusterIP: None, or delete its ServiceExport."
                .to_owned()
        }
        Disputed::Type { headless: false } => {
            "To agree, delete the Service there and create it again without clusterIP: None, or delete its ServiceExport."
                .to_owned()
        }
        Disputed::SessionAffinity(_) => set("spec.sessionAffinity"),
        Disputed::SessionAffinityConfig(_) => set("spec.sessionAffinityConfig"),
        Disputed::InternalTrafficPolicy(_) => set("spec.internalTrafficPolicy"),
        Disputed::TrafficDistribution(_) => set("spec.trafficDistribution"),
        Disputed::IpFamilies(_) => set("spec.ipFamilies"),
        Disputed::Labels => {
            format!("To agree, set spec.exportedLabels of the ServiceExport there as in \"{winner}\".")
        }
        Disputed::Annotations => {
            format!("To agree, set spec.exportedAnnotations of the ServiceExport there as in \"{winner}\".")
        }
    }
}

/// The message of `Valid`.
pub fn valid_message(valid: Result<(), Invalid>) -> Cow<'static, str> {
    let text = match valid {
        Ok(()) => "The service can be exported.",
        Err(Invalid::NoService) => {
            "This namespace has no Service of this name. Create the Service, or delete the ServiceExport; if the name is misspelled, export the Service's own name."
        }
        Err(Invalid::ExternalName) => {
            "A Service of type ExternalName can't be exported: it has no endpoints. Export a Service with a selector or EndpointSlices, or create the same ExternalName Service in each cluster."
        }
        Err(Invalid::DerivedService) => {
            "The Service was created by a multi-cluster controller, and exporting it would cause a loop. Export the original Service."
        }
        Err(Invalid::KubernetesApi) => {
            "The Service default/kubernetes belongs to each cluster and can't be exported."
        }
        Err(Invalid::Fenced(why)) => return format!("Not exported: {}.", fenced(why)).into(),
        Err(Invalid::TooMuch(why)) => return format!("Not exported: {}.", exceeded(why)).into(),
    };
    text.into()
}

/// Why something does not cross.
pub fn fenced(why: Fenced) -> &'static str {
    match why {
        Fenced::SystemNamespace => {
            "system namespaces are not shared unless the hub's operator allows them by name (`atoll hub --allow-namespace`, or a SharingPolicy)"
        }
        Fenced::DeniedNamespace => "the hub's operator denies this namespace (`atoll hub --deny-namespace`)",
        Fenced::NotAllowed => "no SharingPolicy of the hub for this namespace allows it for this cluster",
    }
}

/// Which limit was passed, and by how much.
pub fn exceeded(Exceeded { limit, most, found }: Exceeded) -> String {
    let (name, what) = match limit {
        Limit::Keys => ("exported-keys", "exported labels and annotations"),
        Limit::Bytes => ("exported-bytes", "bytes of exported labels and annotations"),
        Limit::Ports => ("ports", "ports of a Service"),
        Limit::Slices => ("slices", "EndpointSlices of a Service"),
        Limit::Endpoints => ("endpoints", "endpoints of a Service"),
        Limit::Exports => ("exports", "ServiceExports of a cluster"),
        Limit::PolicyServices => {
            ("quota.services", "services that a cluster exports from the namespaces of a SharingPolicy")
        }
        Limit::PolicyEndpoints => ("quota.endpointsPerService", "endpoints of a Service, by a SharingPolicy"),
    };
    format!("limit {name} exceeded: at most {most} {what}, found at least {found}")
}

/// The message of an export's `Ready`.
pub fn export_message(ready: &ExportReady, refused_keys: &[KeyRefused]) -> String {
    let mut text = match ready {
        ExportReady::Exported { refused: None } => "The service is exported.".to_owned(),
        ExportReady::Exported { refused: Some(why) } => {
            format!("The service is exported, except for endpoints with {}.", address_refused(*why))
        }
        ExportReady::Pending(why) | ExportReady::Failed(ExportFailed::Invalid(why)) => {
            valid_message(Err(*why)).into_owned()
        }
        ExportReady::Failed(ExportFailed::AllEndpointsRefused(why)) => {
            format!("No endpoint can be reached from other clusters: each has {}.", address_refused(*why))
        }
    };
    refused_keys_text(refused_keys, &mut text);
    text
}

/// What does not travel, after what was said before.
fn refused_keys_text(refused_keys: &[KeyRefused], text: &mut String) {
    for KeyRefused { key, why } in refused_keys {
        let why = match why {
            WhyKeyRefused::Reserved => "its prefix is reserved",
            WhyKeyRefused::Malformed => "it is not valid in Kubernetes",
            WhyKeyRefused::TooMuch => "all of them together are too large for one object",
        };
        text.push_str(&format!(" Exported label or annotation {key:?} is not exported: {why}."));
    }
}

/// The message of an import's `Ready`.
pub fn import_message(ready: &ImportReady, notes: &[ImportNote]) -> String {
    let mut text = import_ready(ready);
    for note in notes {
        text.push(' ');
        text.push_str(&import_note(note));
    }
    text
}

/// Whether an import can be ready.
pub fn import_ready(ready: &ImportReady) -> String {
    match ready {
        ImportReady::Ready => "The service is imported.".to_owned(),
        ImportReady::IpFamilyNotSupported { wanted } => {
            format!("This cluster supports none of the service's IP families ({}).", families(wanted))
        }
        ImportReady::NamesTaken { plain, hashed } => format!(
            "Services {plain} and {hashed} exist and are not managed by Atoll, so they are not changed. Rename one of them to import this service."
        ),
        ImportReady::NoPortAsked { asked } => {
            let asked: Vec<String> = asked.iter().map(import_port).collect();
            format!(
                "The service has none of the ports in the hub's ServiceImport ({}). List a port that the service has, or no ports to import all.",
                asked.join(", ")
            )
        }
    }
}

/// What a user of an import should know.
pub fn import_note(note: &ImportNote) -> String {
    match note {
        ImportNote::LocalWithoutOwnEndpoints => {
            "internalTrafficPolicy is Local and this cluster has no endpoints of its own, so clients in this cluster get no answer."
                .to_owned()
        }
        ImportNote::PlainNameTaken { plain } => {
            format!("Service {plain} existed and is not managed by Atoll, so the derived Service has another name.")
        }
        ImportNote::FamiliesLeftOut(left_out) => {
            format!("This cluster does not support {}.", families(left_out))
        }
        ImportNote::TrafficDistributionLeftOut(wanted) => format!(
            "The Kubernetes version of this cluster does not support trafficDistribution; {} is ignored.",
            traffic_distribution(*wanted)
        ),
        ImportNote::NoSuchPort(port) => {
            format!("The hub's ServiceImport lists port {}, which the service does not have.", import_port(port))
        }
    }
}

/// Why a cluster does not import a service.
pub fn absent(why: WhyAbsent) -> &'static str {
    match why {
        WhyAbsent::NotExported => "no cluster exports the service",
        WhyAbsent::NoNamespace => "the cluster does not have the namespace",
        WhyAbsent::Fenced(why) => fenced(why),
        WhyAbsent::NotAsked => {
            "its namespace is imported only into clusters that a ServiceImport of the hub is propagated to"
        }
    }
}

fn import_port(asked: &ImportPort) -> String {
    let ImportPort { name, protocol, port } = asked;
    let name = name.as_ref().map(|name| format!("{name}:")).unwrap_or_default();
    format!("{name}{port}/{}", protocol.as_str())
}

/// Why a source's slices stay.
pub fn kept(kept: Kept) -> &'static str {
    match kept {
        Kept::Alive => "its cluster is reachable",
        Kept::PolicyRetains { .. } => "its cluster is lost; the liveness policy retains its endpoints",
        Kept::Answers => "its cluster is lost; it answers a probe",
        Kept::NotProbed => "its cluster is lost; no cluster has probed it",
        Kept::LastOfService => {
            "its cluster is lost and it does not answer a probe, but it is the last source of the service"
        }
    }
}

/// Why a source's slices go.
pub fn withdrawn(withdrawn: Withdrawn) -> &'static str {
    match withdrawn {
        Withdrawn::LeaseEnded { .. } => "its cluster is lost; the liveness policy withdraws its endpoints",
        Withdrawn::ProbeFailed { .. } => "its cluster is lost and it does not answer a probe",
    }
}

/// Why nothing of a source is wanted.
pub fn nothing(why: WhyNothing) -> &'static str {
    match why {
        WhyNothing::Withdrawn(why) => withdrawn(why),
        WhyNothing::LocalFirst => {
            "the cluster has ready endpoints of its own, and the service is local-first"
        }
        WhyNothing::NoDerivedService => "there is no derived Service",
    }
}

/// Why a cluster is left alone.
pub fn untouched(why: WhyUntouched) -> &'static str {
    match why {
        WhyUntouched::NotHeard => "the cluster has not reported since the hub started",
        WhyUntouched::NamespaceTerminating => "the namespace is being deleted there",
        WhyUntouched::NothingKnown => {
            "nothing is known of the service, and a cluster that has not reported may know more"
        }
        WhyUntouched::PlacementUnknown => {
            "the hub has a ServiceImport for the service, and its placement is not known yet"
        }
        WhyUntouched::AuthorRefused => {
            "the author of the MultiClusterService may not have Services there; what is there stays"
        }
    }
}

/// Why a source's slices are not known.
pub fn unknown(why: Unknown) -> &'static str {
    match why {
        Unknown::NotHeard => "its cluster has not reported since the hub started",
        Unknown::LostUnheard(why) => kept(why),
    }
}

/// Why a cluster gets nothing of a `MultiClusterService`.
pub fn not_dispatched(why: WhyNotDispatched) -> &'static str {
    match why {
        WhyNotDispatched::NotAsked => "there is no MultiClusterService for it",
        WhyNotDispatched::NotAConsumer => "the cluster is no consumer of the MultiClusterService",
        WhyNotDispatched::NoNamespace => "the cluster does not have the namespace",
        WhyNotDispatched::Refused => "such a service does not cross clusters",
    }
}

/// What befell a part of a slice.
pub fn slice_note(note: &SliceNote) -> String {
    match note {
        SliceNote::AddressRefused { address, why } => {
            format!("{address} is refused: {}", address_refused(*why))
        }
        SliceNote::PortRenamed { from, to } => format!("port {} has the name {} here", port(from), port(to)),
        SliceNote::PortDropped { name, why: PortDropped::NameClash { winner } } => {
            format!("port {} is ignored: \"{winner}\" has another port of this name", port(name))
        }
        SliceNote::PortDropped { name, why: PortDropped::NotOfTheService } => {
            format!("port {} is ignored: the Service has no such port", port(name))
        }
        SliceNote::PortDropped { name, why: PortDropped::NotAsked } => {
            format!("port {} is ignored: the MultiClusterService does not list it", port(name))
        }
    }
}

/// What the owner of a `MultiClusterService` should know.
pub fn cross_note(note: &CrossNote) -> String {
    match note {
        CrossNote::NotAMember { cluster } => format!("cluster \"{cluster}\" is not a member"),
        CrossNote::KubernetesApi => {
            "default/kubernetes is the API of each cluster and is never shared".to_owned()
        }
        CrossNote::NoService { cluster } => format!("\"{cluster}\" has no Service of this name"),
        CrossNote::ExternalName { cluster } => {
            format!("the Service in \"{cluster}\" is of type ExternalName and has no endpoints")
        }
        CrossNote::NoSuchPort { cluster, name: Some(name), port } => {
            format!("the Service in \"{cluster}\" has no port {port} with the name {name}")
        }
        CrossNote::NoSuchPort { cluster, name: None, port } => {
            format!("the Service in \"{cluster}\" has no port {port}")
        }
        CrossNote::NoNamespace { cluster } => format!("\"{cluster}\" does not have the namespace"),
        CrossNote::Closed(why) => fenced(*why).to_owned(),
        CrossNote::Fenced { cluster, why } => format!("\"{cluster}\" takes no part: {}", fenced(*why)),
        CrossNote::TooMuch { cluster, why } => {
            format!("the endpoints of \"{cluster}\" are not used: {}", exceeded(*why))
        }
        CrossNote::AddressRefused { cluster, why } => {
            format!("some endpoints in \"{cluster}\" are not used: each has {}", address_refused(*why))
        }
    }
}

/// What is wrong with an address.
pub fn address_refused(why: AddressRefused) -> &'static str {
    match why {
        AddressRefused::Loopback => "a loopback address",
        AddressRefused::LinkLocal => "a link-local address",
        AddressRefused::Unspecified => "an unspecified address",
        AddressRefused::Multicast => "a multicast address",
        AddressRefused::Metadata => "the address of a cloud's metadata service",
        AddressRefused::OfTheHub => "an address of the hub",
        AddressRefused::OfABalancer => "an address of the load balancers' pool",
        AddressRefused::OfAnotherMember(Use::Pods | Use::Endpoints) => {
            "an address in the pod network of another cluster"
        }
        AddressRefused::OfAnotherMember(Use::Nodes) => "an address of another cluster's nodes",
        AddressRefused::OfAnotherMember(Use::Services) => {
            "an address in the service network of another cluster"
        }
        AddressRefused::OfAnotherMember(Use::Api) => "the address of another cluster's API",
        AddressRefused::OutsideDeclaredNetworks => {
            "an address outside the cluster's pod networks and nodes, as they were declared or read when it joined (the hub's operator can declare more)"
        }
        AddressRefused::WrongFamily => "an address of another family than its slice",
    }
}

/// `spec.type` of a ServiceImport.
pub fn import_type(headless: bool) -> &'static str {
    if headless { "Headless" } else { "ClusterSetIP" }
}

/// As Kubernetes spells it.
pub fn session_affinity(affinity: SessionAffinity) -> &'static str {
    match affinity {
        SessionAffinity::None => "None",
        SessionAffinity::ClientIp => "ClientIP",
    }
}

/// As Kubernetes spells it.
pub fn internal_traffic_policy(policy: InternalTrafficPolicy) -> &'static str {
    match policy {
        InternalTrafficPolicy::Cluster => "Cluster",
        InternalTrafficPolicy::Local => "Local",
    }
}

/// As Kubernetes spells it.
pub fn traffic_distribution(distribution: TrafficDistribution) -> &'static str {
    match distribution {
        TrafficDistribution::PreferClose => "PreferClose",
        TrafficDistribution::PreferSameZone => "PreferSameZone",
        TrafficDistribution::PreferSameNode => "PreferSameNode",
    }
}

fn families(families: &[Family]) -> String {
    families.iter().map(|family| family.as_str()).collect::<Vec<_>>().join(", ")
}

fn port(name: &PortName) -> String {
    if name.is_empty() { "(unnamed)".to_owned() } else { name.to_string() }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::id;

    fn disputed(about: Disputed) -> Conflict {
        Conflict { about, winner: id("cluster-1"), disagree: 2, of: 5, who: vec![id("c2"), id("c3")] }
    }

    #[test]
    fn a_conflict_names_field_value_winner_and_how_many_disagree() {
        let conflicts = [disputed(Disputed::Type { headless: false }), disputed(Disputed::Ports)];
        assert_eq!(conflict_reason(&conflicts), "TypeConflict,PortConflict");
        assert_eq!(
            conflict_message(&conflicts),
            "Conflicting type. Using \"ClusterSetIP\" from the service export in \"cluster-1\", which has precedence. 2/5 clusters disagree: c2, c3. \
             To agree, delete the Service there and create it again without clusterIP: None, or delete its ServiceExport. \
             Conflicting ports. Using the union of all ports, and where they clash those of the service export in \
             \"cluster-1\", which has precedence. 2/5 clusters disagree: c2, c3. \
             To agree, give the Service there the same ports (name, protocol and number) as in \"cluster-1\"."
        );
        assert_eq!(conflict_reason(&[]), "NoConflicts");
        let none = disputed(Disputed::TrafficDistribution(None));
        assert!(
            conflict(&none)
                .starts_with("Conflicting traffic distribution. Using none from the service export")
        );
    }

    #[test]
    fn what_is_left_out_is_said() {
        let refused = KeyRefused { key: "k8s.io/x".into(), why: WhyKeyRefused::Reserved };
        assert_eq!(
            export_message(&ExportReady::Exported { refused: Some(AddressRefused::Loopback) }, &[refused]),
            "The service is exported, except for endpoints with a loopback address. Exported label or annotation \"k8s.io/x\" is not exported: its prefix is reserved."
        );
        assert_eq!(
            import_message(&ImportReady::Ready, &[ImportNote::FamiliesLeftOut(vec![Family::V6])]),
            "The service is imported. This cluster does not support IPv6."
        );
        let asked = ImportPort { name: None, protocol: crate::facts::Protocol::Udp, port: 53 };
        assert_eq!(
            import_message(&ImportReady::Ready, &[ImportNote::NoSuchPort(asked)]),
            "The service is imported. The hub's ServiceImport lists port 53/UDP, which the service does not have."
        );
    }
}
