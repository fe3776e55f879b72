//! From what objects say and what the probe found to causes, the first first. Pure.
//!
//! ```text
//!   exported? ─▶ namespace? ─▶ imported? ─▶ endpoints? ─▶ reached by address? ─▶ by cluster IP? ─▶ by name?
//! ```
//! A step is looked at when the ones before it are fine: what they break is not a cause of its own.

use std::collections::BTreeSet;
use std::net::IpAddr;

use atoll_api::names::code::Code;
use atoll_api::names::reason::export as reason;

use super::facts::{Dns, Endpoint, Facts, Led, PodFact, Probes, Source, TargetPort};
use super::policy::{self, Connection, Direction};
use super::probe::{Answer, Reach};
use crate::commands::check::report::Finding;

/// What objects alone say is wrong.
pub(crate) fn of_objects(facts: &Facts) -> Vec<Finding> {
    let valid: Vec<&Source> = facts.sources.iter().filter(|source| source.invalid.is_none()).collect();
    if facts.sources.is_empty() {
        return vec![at_client(facts, Code::NotExported, "no cluster exports the service")];
    }
    if valid.is_empty() {
        return facts.sources.iter().filter_map(|source| invalid(facts, source)).collect();
    }
    if facts.has_namespace == Some(false) {
        let text = format!(
            "the namespace `{}` does not exist here, so the service is not imported",
            facts.namespace
        );
        return vec![at_client(facts, Code::NoNamespace, text)];
    }
    if facts.imported == Some(false) {
        let by: Vec<&str> = valid.iter().map(|source| source.cluster.as_str()).collect();
        let text = format!("exported by {}, and there is no ServiceImport here", by.join(", "));
        return vec![at_client(facts, Code::ImportMissing, text)];
    }
    let empty: Vec<Finding> = valid.iter().filter_map(|source| empty(facts, source)).collect();
    if facts.endpoints.is_empty() && empty.is_empty() && facts.imported.is_some() {
        let text = "there is a ServiceImport, and no cluster gives it a ready endpoint";
        return vec![at_client(facts, Code::NothingToServe, text)];
    }
    empty
}

/// What is wrong, by objects and by the probe.
pub(crate) fn diagnose(facts: &Facts, probes: &Probes) -> Vec<Finding> {
    let mut causes = of_objects(facts);
    if facts.endpoints.is_empty() {
        return causes;
    }
    let by_address: Vec<Finding> =
        facts.clusters().into_iter().flat_map(|cluster| of_cluster(facts, probes, cluster)).collect();
    let reached = probes.endpoints.iter().any(|(_, reach)| *reach == Reach::Connected);
    let all_reached = by_address.is_empty() && reached;
    // What the probe saw to fail comes before what only looks odd.
    causes.splice(0..0, by_address);
    if all_reached {
        causes.extend(by_cluster_ip(facts, probes));
    }
    causes.extend(by_name(facts, probes));
    causes.extend(not_told(facts, probes));
    causes
}

fn at_client(facts: &Facts, code: Code, text: impl Into<String>) -> Finding {
    Finding::failed(code, text).of(&facts.client).about(&facts.service)
}

fn at_source(facts: &Facts, source: &str, code: Code, text: impl Into<String>) -> Finding {
    Finding::failed(code, text).of(source).about(&facts.service)
}

fn invalid(facts: &Facts, source: &Source) -> Option<Finding> {
    let (said, message) = source.invalid.as_ref()?;
    let code = match said.as_str() {
        reason::NO_SERVICE => Code::NoService,
        reason::INVALID_SERVICE_TYPE => Code::ExternalName,
        reason::NOT_ALLOWED => Code::NotAllowed,
        reason::LIMIT_EXCEEDED => Code::LimitExceeded,
        _ => Code::NotExported,
    };
    Some(at_source(facts, &source.cluster, code, format!("the export is not valid: {message}")))
}

/// Why a source gives no endpoint.
fn empty(facts: &Facts, source: &Source) -> Option<Finding> {
    let at = |code, text: String| Some(at_source(facts, &source.cluster, code, text));
    let service = source.service.as_ref().filter(|service| !service.selector.is_empty());
    let selected: Option<Vec<&PodFact>> = source
        .pods
        .as_ref()
        .zip(service)
        .map(|(pods, service)| pods.iter().filter(|pod| selects(&service.selector, pod)).collect());
    // The pods of such a Service are ready, and its slices have no port.
    let wrong = service.zip(selected.as_ref()).and_then(|(service, pods)| wrong_names(service, pods));
    if let Some(text) = wrong {
        return at(Code::TargetPortWrong, text);
    }
    let (all, ready) = source.endpoints?;
    if ready > 0 {
        return None;
    }
    if let Some(service) = service
        && selected.map_or(all == 0, |pods| pods.is_empty())
    {
        let pairs = service.selector.iter().map(|(key, value)| format!("{key}={value}"));
        let selector = pairs.collect::<Vec<_>>().join(",");
        return at(Code::SelectorEmpty, format!("the selector `{selector}` matches no pods"));
    }
    if all > 0 {
        return at(Code::NoReadyEndpoints, format!("none of the {all} endpoints of the Service is ready"));
    }
    at(Code::NoEndpoints, "the Service has no endpoints".to_owned())
}

fn selects(selector: &std::collections::BTreeMap<String, String>, pod: &PodFact) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value))
}

/// Where named target ports are in none of the pods.
fn wrong_names(service: &super::facts::ServiceFact, pods: &[&PodFact]) -> Option<String> {
    let lists =
        |name: &str| pods.iter().any(|pod| pod.ports.iter().any(|port| port.name.as_deref() == Some(name)));
    let missing = |target: &super::facts::Target| match &target.target {
        TargetPort::Name(name) => !lists(name),
        TargetPort::Number(_) => false,
    };
    let (first, all) = (service.ports.iter().find(|one| missing(one))?, service.ports.iter().all(missing));
    let TargetPort::Name(name) = &first.target else { return None };
    (all && !pods.is_empty()).then(|| {
        format!(
            "port {} leads to `{name}`, and no container has a port of this name; they list {}",
            first.port,
            listed(pods)
        )
    })
}

fn listed(pods: &[&PodFact]) -> String {
    let ports: BTreeSet<String> = pods
        .iter()
        .flat_map(|pod| &pod.ports)
        .map(|port| match &port.name {
            Some(name) => format!("{} ({name}, {})", port.port, port.protocol),
            None => format!("{} ({})", port.port, port.protocol),
        })
        .collect();
    if ports.is_empty() { "none".to_owned() } else { ports.into_iter().collect::<Vec<_>>().join(", ") }
}

/// What is wrong with the endpoints of one cluster.
fn of_cluster(facts: &Facts, probes: &Probes, cluster: &str) -> Vec<Finding> {
    let of = |one: &&(Endpoint, Reach)| one.0.cluster == cluster;
    let tried: Vec<&(Endpoint, Reach)> = probes.endpoints.iter().filter(of).collect();
    let which = |wanted: &Reach| -> Vec<&Endpoint> {
        tried.iter().filter(|(_, reach)| reach == wanted).map(|(endpoint, _)| endpoint).collect()
    };
    let mut causes = Vec::new();
    let silent = which(&Reach::Silent);
    if !silent.is_empty() {
        let answered = |reach: &Reach| matches!(reach, Reach::Connected | Reach::Refused | Reach::Stalled);
        let others: Vec<&Reach> = probes.others.iter().filter(of).map(|(_, reach)| reach).collect();
        let any_answers =
            others.iter().any(|reach| answered(reach)) || tried.iter().any(|(_, reach)| answered(reach));
        let none_answers = !others.is_empty() && others.iter().all(|reach| **reach == Reach::Silent);
        let dropped: Vec<Finding> = dropped(facts, probes, cluster, &silent);
        let at = addresses(&silent);
        let no_route = || {
            let text = format!(
                "connections from {} to {at} time out, and no pod of the cluster answers",
                facts.client
            );
            at_source(facts, cluster, Code::NoRoute, text)
        };
        if !dropped.is_empty() {
            // Other pods are silent too: the policy is not what stops it.
            causes.extend(none_answers.then(no_route));
            causes.extend(dropped);
        } else if any_answers {
            let text = format!(
                "connections from {} to {at} time out, and other pods of the cluster answer",
                facts.client
            );
            causes.push(at_source(facts, cluster, Code::EndpointSilent, text));
        } else {
            causes.push(no_route());
        }
    }
    let refused = which(&Reach::Refused);
    if !refused.is_empty() {
        causes.push(closed(facts, cluster, &refused));
    }
    let stalled = which(&Reach::Stalled);
    if !stalled.is_empty() {
        let text = format!(
            "connections from {} to {} open, and 8 kB that are sent never arrive",
            facts.client,
            addresses(&stalled)
        );
        causes.push(at_source(facts, cluster, Code::LargePacketsLost, text));
    }
    causes
}

fn addresses(endpoints: &[&Endpoint]) -> String {
    const MOST: usize = 3;
    let mut text = endpoints.iter().take(MOST).map(|one| one.to.to_string()).collect::<Vec<_>>().join(", ");
    if endpoints.len() > MOST {
        text.push_str(&format!(" and {} more", endpoints.len() - MOST));
    }
    text
}

/// The policies that drop connections to endpoints that are silent.
fn dropped(facts: &Facts, probes: &Probes, cluster: &str, silent: &[&Endpoint]) -> Vec<Finding> {
    let mut causes: Vec<Finding> = Vec::new();
    let mut say = |place: &str, policies: Vec<String>, what: String| {
        if policies.is_empty() {
            return;
        }
        let named: Vec<String> = policies.iter().map(|name| format!("{}/{name}", facts.namespace)).collect();
        let kind = if named.len() == 1 { "the NetworkPolicy" } else { "the NetworkPolicies" };
        let text = format!("{kind} {} {what}", named.join(", "));
        let finding = at_source(facts, place, Code::NetworkPolicyDrops, text);
        if !causes.contains(&finding) {
            causes.push(finding);
        }
    };
    let same_cluster = cluster == facts.client;
    for endpoint in silent {
        let connection = |direction, peer| Connection {
            direction,
            peer,
            same_cluster,
            port: endpoint.to.port(),
            protocol: "TCP",
        };
        let from = probes.from.iter().find(|from| from.is_ipv4() == endpoint.to.is_ipv4());
        let source = facts.source(cluster);
        let pods = source.and_then(|source| source.pods.as_ref());
        let pod = pods.and_then(|pods| pods.iter().find(|pod| pod.addresses.contains(&endpoint.to.ip())));
        let policies = source.and_then(|source| source.policies.as_ref());
        if let (Some(pod), Some(policies), Some(from)) = (pod, policies, from) {
            let by =
                policy::dropping(policies, &pod.labels, &pod.ports, connection(Direction::Ingress, *from));
            say(
                cluster,
                by,
                format!("selects the pods and does not allow connections from {}", facts.client),
            );
        }
        let own = facts.policies.as_deref().unwrap_or_default();
        let by = policy::dropping(own, &probes.labels, &[], connection(Direction::Egress, endpoint.to.ip()));
        say(
            &facts.client,
            by,
            format!("selects the client and does not allow connections to pods of {cluster}"),
        );
    }
    causes
}

/// The port is not open: is it the wrong one?
fn closed(facts: &Facts, cluster: &str, refused: &[&Endpoint]) -> Finding {
    let at = addresses(refused);
    let source = facts.source(cluster);
    let pods: Option<Vec<&PodFact>> = source.and_then(|source| source.pods.as_ref()).map(|pods| {
        pods.iter().filter(|pod| refused.iter().any(|one| pod.addresses.contains(&one.to.ip()))).collect()
    });
    let has = |pods: &[&PodFact]| {
        refused
            .iter()
            .any(|one| pods.iter().flat_map(|pod| &pod.ports).any(|port| port.port == one.to.port()))
    };
    match pods {
        Some(pods) if !pods.is_empty() && !has(&pods) && pods.iter().any(|pod| !pod.ports.is_empty()) => {
            let text =
                format!("{at} refuses connections, and the containers list other ports: {}", listed(&pods));
            at_source(facts, cluster, Code::TargetPortWrong, text)
        }
        Some(_) => at_source(facts, cluster, Code::PortClosed, format!("{at} refuses connections")),
        None => {
            let text = format!(
                "{at} refuses connections (not known which ports its containers list: needs list pods)"
            );
            at_source(facts, cluster, Code::PortClosed, text)
        }
    }
}

fn by_cluster_ip(facts: &Facts, probes: &Probes) -> Option<Finding> {
    let failed: Vec<String> = probes
        .service
        .iter()
        .filter(|(_, reach)| matches!(reach, Reach::Refused | Reach::Silent))
        .map(|(to, _)| to.to_string())
        .collect();
    if failed.is_empty() {
        return None;
    }
    let text =
        format!("all endpoints answer by their addresses, and the cluster IP {} does not", failed.join(", "));
    Some(at_client(facts, Code::KubeProxyStopped, text))
}

fn by_name(facts: &Facts, probes: &Probes) -> Option<Finding> {
    let answer = probes.name.as_ref()?;
    let text = match answer {
        Answer::Addresses(got) if right(facts, got) => return None,
        Answer::Unknown(_) => return None,
        Answer::Addresses(got) => {
            let got: Vec<String> = got.iter().map(ToString::to_string).collect();
            format!(
                "the name is answered with {}, which are not the addresses of the service",
                got.join(", ")
            )
        }
        Answer::NotFound => "the name does not exist for pods".to_owned(),
        Answer::Failed => "CoreDNS answers the name with an error".to_owned(),
        Answer::Silent => "the name is not answered".to_owned(),
    };
    let whole_dns = matches!(probes.own_name, Some(Answer::Silent)) && *answer == Answer::Silent;
    if whole_dns {
        return Some(dns_silent(facts, probes));
    }
    let (code, why) = match &facts.dns {
        Dns { led: Led::Absent, .. } => {
            (Code::DnsNotLed, "; the Corefile does not forward the zone".to_owned())
        }
        Dns { led: Led::Outdated, .. } => (
            Code::DnsNotLed,
            "; the Corefile forwards the zone to other addresses than those of `atoll dns`".to_owned(),
        ),
        Dns { led: Led::Reverted(at), .. } => {
            (Code::DnsNotLed, format!("; it was set up at {at}, and the Corefile was overwritten since"))
        }
        Dns { led: Led::Others, .. } => {
            (Code::DnsNotLed, "; the Corefile has another block for the zone".to_owned())
        }
        Dns { led: Led::InPlace, servers: Some(false) } => {
            (Code::DnsServerDown, "; no server of `atoll dns` is ready".to_owned())
        }
        Dns { led: Led::InPlace | Led::Multicluster, .. } => (Code::NameUnknown, String::new()),
        // Most often; the Corefile would tell.
        Dns { led: Led::NoCorefile | Led::Unknown(_), .. } if *answer == Answer::NotFound => {
            (Code::DnsNotLed, "; the Corefile could not be read".to_owned())
        }
        Dns { led: Led::NoCorefile | Led::Unknown(_), .. } => (Code::NameUnknown, String::new()),
    };
    Some(at_client(facts, code, format!("{text}{why}")))
}

/// No name is answered: a policy of the client, or no DNS at all.
fn dns_silent(facts: &Facts, probes: &Probes) -> Finding {
    let anywhere = IpAddr::from([0, 0, 0, 0]);
    let question = Connection {
        direction: Direction::Egress,
        peer: anywhere,
        same_cluster: true,
        port: 53,
        protocol: "UDP",
    };
    let policies = facts.policies.as_deref().unwrap_or_default();
    let by = policy::dropping(policies, &probes.labels, &[], question);
    match by.first() {
        Some(name) => {
            let text = format!(
                "the NetworkPolicy {}/{name} selects the client and does not allow questions to DNS",
                facts.namespace
            );
            at_client(facts, Code::NetworkPolicyDrops, text)
        }
        None => at_client(facts, Code::ClusterDnsDown, "the cluster's DNS answers no name"),
    }
}

fn right(facts: &Facts, got: &BTreeSet<IpAddr>) -> bool {
    if facts.addresses.is_empty() {
        return true; // headless: the endpoints change while we look
    }
    got.iter().all(|one| facts.addresses.contains(one))
}

/// Probes that the tools of the image could not carry out.
fn not_told(facts: &Facts, probes: &Probes) -> Option<Finding> {
    let mut connects =
        probes.endpoints.iter().map(|(_, reach)| reach).chain(probes.service.iter().map(|(_, reach)| reach));
    let said = connects.find_map(|reach| match reach {
        Reach::Unknown(said) => Some(said.clone()),
        Reach::Connected | Reach::Stalled | Reach::Refused | Reach::Silent => None,
    });
    let said = said.or_else(|| match &probes.name {
        Some(Answer::Unknown(said)) => Some(said.clone()),
        Some(Answer::Addresses(_) | Answer::NotFound | Answer::Failed | Answer::Silent) | None => None,
    })?;
    let text = format!("the tools of the image did not tell: {said}");
    Some(Finding::warned(Code::ProbeFailed, text).of(&facts.client).about(&facts.service))
}

#[cfg(test)]
mod tests;
