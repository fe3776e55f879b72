//! From facts to checks. Pure: the time is an argument.

use std::collections::BTreeMap;

use atoll_api::names::code::Code;
use atoll_api::names::{condition, kind, property, reason};
use atoll_api::types::Cluster;
use atoll_hub::{join, networks};
use jiff::Timestamp;

use super::facts::{ApiFact, Crd, HubFacts, MemberFacts};
use super::read::PROPERTIES;
use crate::commands::check::dns;
use crate::commands::check::path::facts::Led;
use crate::commands::check::report::{Check, Finding, Group};
use crate::commands::check::ways::Trouble;

/// Clocks that differ by less are the same: dates of HTTP have no fractions, and an answer takes a while.
const TOLERANCE: i64 = 5;
/// A token that ends within this is close to its end: hubs renew theirs at half of their life.
const SOON: i64 = 24 * 3600;

/// What to do about a hub that answers and refuses the credentials.
const NEW_CREDENTIALS: &str =
    "The hub runs and does not accept these credentials: get a new kubeconfig from its administrator.";

/// All checks of the control plane. `all` are the members of the clusterset, `members` those that were looked at.
pub(crate) fn judge(hub: &HubFacts, all: &[Cluster], members: &[MemberFacts], version: &str) -> Vec<Check> {
    let mut checks = of_hub(hub, version);
    let unknown = hub.clusters.as_ref().err().or(hub.api.as_ref().err()).map(Trouble::why);
    let each = |one: fn(&MemberFacts) -> Vec<Finding>| -> Vec<Finding> {
        members
            .iter()
            .flat_map(|member| one(member).into_iter().map(|found| found.of(&member.name)))
            .collect()
    };
    // What no member was asked for is not fine.
    let or_unknown = |findings: Vec<Finding>| match &unknown {
        Some(why) => vec![Finding::skipped(format!("not checked: the hub does not say its members: {why}"))],
        None => findings,
    };
    let at = |id, title: &str, findings| Check::new(Group::Members, id, title, or_unknown(findings));
    let versions: std::collections::BTreeSet<&str> =
        members.iter().filter_map(|one| Some(one.api.as_ref().ok()?.version.as_str())).collect();
    let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
    let answered = match &unknown {
        Some(_) => "the APIs of the members answer from this host".to_owned(),
        None => format!("the APIs of {} members answer from this host ({versions})", members.len()),
    };
    checks.extend([
        at("member-api", &answered, each(reachable)),
        at("member-rights", "the hub has its rights in them", each(rights)),
        at("member-crds", "their CRDs are there, and of this release", each(crds)),
        at("member-properties", "their ClusterProperties say who they are", each(properties)),
        at("member-token", "the hub's tokens for them are valid", each_token(members, hub.at)),
        // The hub's summary comes after what may be its cause.
        at("member-ready", "the hub says that they are ready", each(ready)),
        at("member-clock", "their clocks agree with that of this host", each(clock_of)),
        at("member-networks", "no two of them have the same addresses", overlaps(all, hub, members)),
        at(
            "member-namespaces",
            "they have the namespaces of the exported services",
            namespaces(hub, members),
        ),
    ]);
    let names = |id, title: &str, one: fn(&MemberFacts) -> Vec<Finding>| {
        Check::new(Group::Dns, id, title, or_unknown(each(one)))
    };
    checks.extend([
        names("dns-led", &format!("CoreDNS forwards {} to `atoll dns`", dns::ZONE), led),
        names("dns-servers", "servers of `atoll dns` are ready", servers),
    ]);
    checks
}

fn of_hub(hub: &HubFacts, version: &str) -> Vec<Check> {
    let at = |id, title: String, findings| Check::new(Group::Hub, id, title, findings);
    let api = match &hub.api {
        Ok(_) => Vec::new(),
        Err(Trouble::Forbidden(why)) => {
            vec![Finding { next: NEW_CREDENTIALS, ..Finding::failed(Code::CredentialsEnded, why.clone()) }]
        }
        Err(trouble) => vec![Finding::failed(Code::HubUnreachable, trouble.why())],
    };
    let mut checks = vec![at("hub-api", "the hub's API answers".to_owned(), api.clone())];
    if !api.is_empty() {
        return checks; // nothing else can be said
    }
    let clusters = format!("list {}.{}", kind::cluster::CLUSTERS, kind::cluster::GROUP);
    let rights = [
        (clusters.as_str(), hub.clusters.as_ref().err()),
        ("get leases.coordination.k8s.io", hub.lease.as_ref().err()),
    ];
    let rights = rights.into_iter().filter_map(|(what, trouble)| match trouble {
        Some(Trouble::Forbidden(_)) => Some(Finding::skipped(format!("needs: {what}"))),
        Some(Trouble::Missing | Trouble::Silent(_) | Trouble::Other(_)) | None => None,
    });
    checks.push(at("hub-rights", "this user may read the hub's state".to_owned(), rights.collect()));
    let missing =
        hub.missing.iter().map(|one| Finding::failed(Code::HubKindMissing, format!("{one} is not served")));
    checks.push(at("hub-crds", "it serves all kinds of a hub".to_owned(), missing.collect()));
    let (title, lease) = leader(hub);
    checks.push(at("hub-lease", title, lease));
    checks.push(at("hub-clock", "its clock agrees with that of this host".to_owned(), clock(&hub.api)));
    let other = hub.hub_version.as_ref().filter(|theirs| *theirs != version);
    let other = other.map(|theirs| {
        Finding::warned(
            Code::VersionsDiffer,
            format!("the hub that leads is {theirs}, this program is {version}"),
        )
    });
    let title = match (&hub.hub_version, &other) {
        (None, _) => format!("this program is {version} (the hub does not say its version)"),
        (Some(_), _) => format!("hub and program are of the same version ({version})"),
    };
    checks.push(at("hub-version", title, other.into_iter().collect()));
    checks
}

/// Who leads, and until when. The lease is compared with the clock of the hub's API: hubs and API are often on one host.
fn leader(hub: &HubFacts) -> (String, Vec<Finding>) {
    let title = || "a hub leads".to_owned();
    let none = |text: String| (title(), vec![Finding::failed(Code::NoLeader, text)]);
    let lease = match &hub.lease {
        Ok(lease) => lease,
        Err(Trouble::Forbidden(_)) => {
            return (title(), vec![Finding::skipped("needs: get leases.coordination.k8s.io")]);
        }
        Err(Trouble::Missing) => {
            return none(
                "there is no Lease of a hub: none has run here, or it has another --namespace".to_owned(),
            );
        }
        Err(trouble) => return none(trouble.why()),
    };
    let Some(holder) = &lease.holder else {
        return none("the lease is free: the last hub was stopped".to_owned());
    };
    let ahead = hub.api.as_ref().ok().and_then(|api| api.ahead).unwrap_or_default();
    let age = lease.renewed.map(|renewed| hub.at.as_second() + ahead - renewed.as_second());
    match age {
        Some(age) if age <= lease.seconds + TOLERANCE => (format!("a hub leads: {holder}"), Vec::new()),
        Some(age) => {
            none(format!("`{holder}` holds the lease of {} s, and renewed it {age} s ago", lease.seconds))
        }
        None => none(format!("`{holder}` holds the lease, and never renewed it")),
    }
}

fn clock_of(member: &MemberFacts) -> Vec<Finding> {
    not_asked(member).unwrap_or_else(|| clock(&member.api))
}

/// That a check was not made, if the member's API gives no answer; why is said by the check of its API.
fn not_asked(member: &MemberFacts) -> Option<Vec<Finding>> {
    member.api.is_err().then(|| vec![Finding::skipped("not checked: its API does not answer here")])
}

fn clock(api: &Result<ApiFact, Trouble>) -> Vec<Finding> {
    let Some(ahead) = api.as_ref().ok().and_then(|api| api.ahead) else { return Vec::new() };
    if ahead.abs() <= TOLERANCE {
        return Vec::new();
    }
    let way = if ahead > 0 { "ahead of" } else { "behind" };
    vec![Finding::warned(Code::ClockSkew, format!("its clock is {} s {way} that of this host", ahead.abs()))]
}

/// What the hub says of it.
fn ready(member: &MemberFacts) -> Vec<Finding> {
    let conditions = member.cluster.status.iter().flat_map(|status| &status.conditions);
    let Some(ready) = conditions.into_iter().find(|one| one.type_ == condition::cluster::READY) else {
        return vec![Finding::warned(Code::NotHeard, "the hub has not said yet whether it is ready")];
    };
    if ready.status == "True" {
        return Vec::new();
    }
    let code = match ready.reason.as_str() {
        reason::cluster::NOT_REACHABLE | reason::cluster::STATUS_UNKNOWN => Code::MemberLost,
        _ => Code::MemberBlocked,
    };
    vec![Finding::failed(code, format!("{}: {}", ready.reason, ready.message))]
}

fn reachable(member: &MemberFacts) -> Vec<Finding> {
    match (&member.no_way, &member.api) {
        (Some(why), _) => vec![Finding::skipped(format!("not looked into: {why}"))],
        (None, Ok(_)) => Vec::new(),
        (None, Err(Trouble::Forbidden(why))) => vec![Finding::failed(Code::CredentialsEnded, why.clone())],
        (None, Err(trouble)) => vec![Finding::failed(Code::MemberUnreachable, trouble.why())],
    }
}

fn rights(member: &MemberFacts) -> Vec<Finding> {
    const MOST: usize = 5;
    if let Some(found) = not_asked(member) {
        return found;
    }
    match &member.lacks {
        Ok(lacks) if lacks.is_empty() => Vec::new(),
        Ok(lacks) => {
            let more = lacks.len().saturating_sub(MOST);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let some = lacks.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
            vec![Finding::failed(Code::Forbidden, format!("the hub may not {some}{more}"))]
        }
        Err(trouble) => vec![Finding::skipped(format!("not known: {}", trouble.why()))],
    }
}

fn crds(member: &MemberFacts) -> Vec<Finding> {
    if let Some(found) = not_asked(member) {
        return found;
    }
    let one = |(name, state): &(String, Crd)| match state {
        Crd::Fine => None,
        Crd::Unknown => Some(Finding::skipped(format!("not checked: {name} could not be read"))),
        Crd::Missing(how) => Some(Finding::failed(Code::KindMissing, format!("{name} {how}"))),
        Crd::Older => Some(Finding::warned(Code::CrdOutdated, format!("{name} is of an older release"))),
    };
    member.crds.iter().filter_map(one).collect()
}

fn properties(member: &MemberFacts) -> Vec<Finding> {
    if let Some(found) = not_asked(member) {
        return found;
    }
    let properties = match &member.properties {
        Ok(properties) => properties,
        Err(trouble) => return vec![Finding::skipped(format!("not checked: {}", trouble.why()))],
    };
    let missing = PROPERTIES.into_iter().filter(|name| !properties.contains_key(*name));
    let mut found: Vec<Finding> = missing
        .map(|name| {
            Finding::failed(Code::OtherClusterProperty, format!("there is no ClusterProperty {name}"))
        })
        .collect();
    if let Some(id) = properties.get(property::CLUSTER_ID).filter(|id| **id != member.name) {
        let text = format!(
            "the ClusterProperty {} says `{id}`, the hub calls it `{}`",
            property::CLUSTER_ID,
            member.name
        );
        found.push(Finding::failed(Code::OtherClusterProperty, text));
    }
    found
}

fn each_token(members: &[MemberFacts], now: Timestamp) -> Vec<Finding> {
    let one = |member: &MemberFacts| {
        let ends = match &member.token_ends {
            Ok(ends) => (*ends)?,
            Err(Trouble::Forbidden(_)) => {
                return Some(Finding::skipped("needs: get its Secret in the hub").of(&member.name));
            }
            Err(trouble @ (Trouble::Missing | Trouble::Silent(_) | Trouble::Other(_))) => {
                let text = format!("not checked: its Secret in the hub: {}", trouble.why());
                return Some(Finding::skipped(text).of(&member.name));
            }
        };
        let left = ends.as_second() - now.as_second();
        let found = match left {
            ..=0 => Finding::failed(Code::CredentialsEnded, format!("the hub's token ended at {ends}")),
            1..SOON => Finding::warned(Code::CredentialsEndSoon, format!("the hub's token ends at {ends}")),
            _ => return None,
        };
        Some(found.of(&member.name))
    };
    members.iter().filter_map(one).collect()
}

fn overlaps(all: &[Cluster], hub: &HubFacts, members: &[MemberFacts]) -> Vec<Finding> {
    let Ok(secrets) = &hub.secrets else {
        return vec![Finding::skipped(
            "needs: list Secrets in the hub's namespace, which say what networks count",
        )];
    };
    let known = all.iter().map(|cluster| join::known(cluster, secrets));
    let known: Vec<(String, networks::Networks)> =
        known.map(|(name, known)| (name, known.networks)).collect();
    let mut found = Vec::new();
    for (i, (name, ours)) in known.iter().enumerate() {
        for (other, theirs) in &known[i + 1..] {
            let looked_at = members.iter().any(|member| member.name == *name || member.name == *other);
            if let Some(overlap) = networks::overlap(ours, theirs).filter(|_| looked_at) {
                let text = format!(
                    "its {} {} overlaps the {} {} of {other}",
                    overlap.ours.0, overlap.ours.1, overlap.theirs.0, overlap.theirs.1
                );
                found.push(Finding::failed(Code::NetworksOverlap, text).of(name));
            }
        }
    }
    found
}

/// Exports that some member does not import because it has no such namespace.
fn namespaces(hub: &HubFacts, members: &[MemberFacts]) -> Vec<Finding> {
    let mut exported: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for member in members {
        for (namespace, name) in &member.exports {
            exported.entry(namespace).or_default().push(format!("{name} of {}", member.name));
        }
    }
    let unread = members.iter().filter(|member| member.namespaces.is_none());
    let mut found: Vec<Finding> = unread
        .map(|member| Finding::skipped("not checked: its namespaces could not be read").of(&member.name))
        .collect();
    for (namespace, services) in exported.iter().filter(|(namespace, _)| !hub.explicit.contains(**namespace))
    {
        for member in members {
            let lacks = member.namespaces.as_ref().is_some_and(|all| !all.contains(*namespace));
            if lacks {
                let more = if services.len() > 1 {
                    format!(" and {} more", services.len() - 1)
                } else {
                    String::new()
                };
                let first = services.first().cloned().unwrap_or_default();
                let text = format!("no namespace `{namespace}`, so {first}{more} is not imported");
                found.push(Finding::warned(Code::NoNamespace, text).of(&member.name));
            }
        }
    }
    found
}

fn led(member: &MemberFacts) -> Vec<Finding> {
    if let Some(found) = not_asked(member) {
        return found;
    }
    match &member.dns.led {
        Led::InPlace | Led::Multicluster => Vec::new(),
        Led::Absent => {
            vec![Finding::skipped("not set up: names of the clusterset are not answered by `atoll dns`")]
        }
        Led::NoCorefile => {
            vec![Finding::skipped("there is no ConfigMap `kube-system/coredns` with a Corefile")]
        }
        Led::Unknown(why) => vec![Finding::skipped(format!("needs: {}: {why}", dns::NEEDS))],
        Led::Outdated => {
            vec![Finding::failed(
                Code::DnsNotLed,
                "the Corefile forwards the zone to other addresses than those of `atoll dns`",
            )]
        }
        Led::Reverted(at) => {
            vec![Finding::failed(
                Code::DnsNotLed,
                format!("set up at {at}, and the Corefile was overwritten since"),
            )]
        }
        Led::Others => vec![Finding::skipped("another block of the Corefile serves the zone")],
    }
}

fn servers(member: &MemberFacts) -> Vec<Finding> {
    if let Some(found) = not_asked(member) {
        return found;
    }
    match (&member.dns.led, member.dns.servers) {
        (Led::InPlace | Led::Outdated | Led::Reverted(_) | Led::Unknown(_), Some(false)) => {
            vec![Finding::failed(Code::DnsServerDown, "no pod of `atoll dns` is ready")]
        }
        (Led::InPlace | Led::Outdated | Led::Reverted(_) | Led::Unknown(_), Some(true) | None)
        | (Led::Absent | Led::Multicluster | Led::Others | Led::NoCorefile, _) => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
