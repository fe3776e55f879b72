//! How the clusterset is.

use atoll_api::explain::{ClusterSetStatus, Header, Member, Remark, Totals, worst};
use atoll_api::names::code::{Code, Severity};
use atoll_api::names::kind::explain as names;
use atoll_engine::names::ClusterId;
use atoll_link::Health;

use super::known::{Known, rfc3339};
use super::member;
use super::tally::Tally;
use crate::membership::roster::NoLink;

/// Services with troubles that are listed, at most.
const MOST: usize = 20;

/// How the clusterset is.
pub(super) fn status(known: &Known<'_>, tally: &mut Tally) -> ClusterSetStatus {
    let uncounted = tally.refresh(known);
    let (planning, unwritten) = known.brain.waiting();
    let totals = Totals { planning, unwritten, uncounted, ..tally.totals() };
    let members: Vec<Member> = known.world().clusters.keys().map(|id| one(known, tally, id)).collect();
    let (troubles, more_troubles) = tally.troubles(MOST);
    let starting = known.brain.is_settling().then(|| Remark::of(Code::Starting));
    let remarks = members.iter().map(|member| &member.remark);
    let remarks = remarks.chain(troubles.iter().map(|trouble| &trouble.remark)).chain(&starting);
    let verdict = match worst(remarks) {
        Some(remark) if remark.severity > Severity::Info => named(remark, &members, &troubles),
        Some(_) | None => starting.unwrap_or_else(|| Remark::of(Code::Healthy)),
    };
    ClusterSetStatus {
        header: Header::new(names::CLUSTERSET_STATUS, None, names::CLUSTERSET),
        at: rfc3339(known.now.time),
        clusterset: known.about.clusterset.clone(),
        leader: known.about.leader.clone(),
        version: known.about.version.to_owned(),
        verdict,
        totals,
        members,
        troubles,
        more_troubles,
    }
}

/// The worst remark, with whom it is about.
fn named(remark: &Remark, members: &[Member], troubles: &[atoll_api::explain::Trouble]) -> Remark {
    let member = members.iter().find(|member| member.remark == *remark).map(|member| &member.cluster);
    let service = troubles.iter().find(|trouble| trouble.remark == *remark).map(|trouble| &trouble.service);
    let mut verdict = remark.clone();
    if let Some(about) = member.or(service) {
        verdict.message = format!("{about}: {}", remark.message);
    }
    verdict
}

fn one(known: &Known<'_>, tally: &Tally, id: &ClusterId) -> Member {
    let remarks = member::remarks(known, id);
    let worst = worst(&remarks).cloned().unwrap_or_else(|| Remark::of(Code::MemberReady));
    let counted = tally.member(id.as_str());
    let version = match known.brain.health(id) {
        Some(Health::Ready { version }) => Some(version.clone()),
        Some(Health::NotReady { .. } | Health::NotReachable { .. } | Health::NoVersion { .. }) | None => None,
    };
    let pulls = matches!(known.roster.blocked(id), Some(NoLink::Pull));
    Member {
        cluster: id.to_string(),
        mode: if pulls { "Pull" } else { "Push" }.to_owned(),
        version,
        problems: remarks.into_iter().filter(|remark| *remark != worst).collect(),
        remark: worst,
        exports: counted.exports,
        imports: counted.imports,
        endpoints: counted.endpoints,
        lag_milliseconds: known.brain.lag(id).map(|lag| (lag.as_secs_f64() * 1e6).round() / 1e3),
    }
}
