//! What a `MultiClusterService` comes to: providers, consumers, and where its load balancer leads.

use std::collections::BTreeMap;

use atoll_api::explain::{CrossCluster, Remark};
use atoll_api::names::code::Code;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::Balanced;
use atoll_engine::reason::{CrossNote, text};
use atoll_lb::provider::Ingress;

use super::known::{Known, list, remark, sentence};

/// Backends that are listed, at most.
const MOST: usize = 500;

/// What it comes to, if there is one.
pub(super) fn crossing(known: &Known<'_>, key: &ServiceKey) -> Option<CrossCluster> {
    known.world().intents.as_ref()?.get(key)?;
    let plan = known.plan(key);
    let Some((plan, crossing)) = plan.and_then(|plan| Some((plan, plan.crossing.as_ref()?))) else {
        let remarks = vec![Remark::of(Code::NotPlannedYet)];
        let (providers, consumers, backends) = (Vec::new(), Vec::new(), BTreeMap::new());
        return Some(CrossCluster { providers, consumers, remarks, backends });
    };
    let mut remarks: Vec<Remark> = crossing.notes.iter().map(|note| noted(note, key)).collect();
    let mut backends = BTreeMap::new();
    if let Some(balanced) = &plan.balanced {
        remarks.push(balances(known, key, balanced));
        for (((_, port), address), backend) in balanced.backends.iter().take(MOST) {
            let state = if backend.ready { "" } else { " (finishes its connections)" };
            let to = format!("{} for port {port}{state}", backend.cluster);
            backends.insert(address.to_string(), to);
        }
    }
    let names = |ids: &std::collections::BTreeSet<ClusterId>| ids.iter().map(ToString::to_string).collect();
    let (providers, consumers) = (names(&crossing.providers), names(&crossing.consumers));
    Some(CrossCluster { providers, consumers, remarks, backends })
}

fn noted(note: &CrossNote, key: &ServiceKey) -> Remark {
    let words = text::cross_note(note);
    if let CrossNote::NotAMember { cluster } = note {
        return Remark::new(note.code(), sentence(&words))
            .next(format!("Check the spelling of {cluster}: `atoll clusters` lists the members."));
    }
    match note.member() {
        Some(member) => remark(note.code(), &words, key, member),
        None => Remark::new(note.code(), sentence(&words)),
    }
}

/// Where the load balancer leads, or why nowhere.
fn balances(known: &Known<'_>, key: &ServiceKey, balanced: &Balanced) -> Remark {
    let waits: Vec<&ClusterId> = balanced.awaited.iter().collect();
    let unheard: Vec<&ClusterId> = balanced.unheard.iter().collect();
    if !waits.is_empty() {
        let message = format!("the load balancer waits for {} to report", list(&waits));
        return Remark::new(Code::NotPlannedYet, sentence(&message));
    }
    let ready = balanced.backends.values().filter(|backend| backend.ready).count();
    if ready == 0 {
        let why = match (balanced.ports.is_empty(), unheard.is_empty()) {
            (true, _) => "no provider has a port that was asked for".to_owned(),
            (false, false) => format!("{} is lost and was never heard", list(&unheard)),
            (false, true) => "no provider has a ready endpoint that may be used".to_owned(),
        };
        let message = format!("the load balancer has no endpoint to lead to: {why}");
        let next = format!(
            "See the endpoints of each provider: `atoll explain {} -n {} --all`.",
            key.name, key.namespace
        );
        return Remark::new(Code::NoBackends, sentence(&message)).next(next);
    }
    let ingress: Vec<String> = known
        .balancers
        .ingress(key)
        .iter()
        .map(|one| match one {
            Ingress::Ip(ip) => ip.to_string(),
            Ingress::Hostname(name) => name.clone(),
        })
        .collect();
    let at = if ingress.is_empty() {
        "has no address yet and".to_owned()
    } else {
        format!("at {}", ingress.join(", "))
    };
    Remark::new(Code::Balanced, format!("The load balancer {at} leads to {ready} ready endpoints."))
}
