//! How it is with a member itself, as far as that decides what others and it hold.

use atoll_api::explain::Remark;
use atoll_api::names::code::Code;
use atoll_engine::facts::Contact;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_link::{Health, Problem};

use super::known::{Known, rfc3339, sentence};
use super::steps;

/// Remarks of one kind, at most.
const MOST: usize = 20;

/// What is wrong with a member; nothing if all is well. The cause comes before what follows from it.
pub(super) fn remarks(known: &Known<'_>, id: &ClusterId) -> Vec<Remark> {
    let mut remarks = Vec::new();
    if let Some(blocked) = known.roster.blocked(id) {
        remarks.push(told(Code::MemberBlocked, blocked.health(id).why(), id));
    }
    let Some(cluster) = known.world().clusters.get(id) else { return remarks };
    match (cluster.contact, known.brain.silent_since(id, known.now)) {
        (Contact::Lost { since }, _) => {
            remarks.push(told(Code::MemberLost, Code::MemberLost.meaning(), id).since(rfc3339(since)));
        }
        (Contact::Alive, Some(since)) => {
            remarks.push(told(Code::MemberSilent, Code::MemberSilent.meaning(), id).since(rfc3339(since)));
        }
        (Contact::Alive, None) => {}
    }
    let own = |problem: &Problem| match problem {
        Problem::Forbidden { .. } | Problem::KindAbsent(_) | Problem::OtherProperty { .. } => true,
        Problem::Foreign { .. } | Problem::Refused { .. } | Problem::Unrepresentable { .. } => false,
    };
    let problems = known.brain.problems(id, known.now).filter(|(one, _)| own(one)).take(MOST);
    let before = remarks.len();
    remarks.extend(problems.map(|(one, since)| problem(one, None, id).since(rfc3339(since))));
    // What it lacks has been said in detail.
    match known.brain.health(id) {
        Some(Health::NotReady { why } | Health::NoVersion { why }) if remarks.len() == before => {
            remarks.push(told(Code::MemberNotReady, why, id));
        }
        Some(Health::NotReachable { why }) if remarks.is_empty() => {
            remarks.push(told(Code::MemberSilent, why, id));
        }
        Some(
            Health::Ready { .. }
            | Health::NotReady { .. }
            | Health::NoVersion { .. }
            | Health::NotReachable { .. },
        )
        | None => {}
    }
    if cluster.heard.is_none() && remarks.is_empty() {
        remarks.push(told(Code::NotHeard, Code::NotHeard.meaning(), id));
    }
    remarks
}

/// What a member has reported.
pub(super) fn problem(problem: &Problem, key: Option<&ServiceKey>, id: &ClusterId) -> Remark {
    let code = match problem {
        Problem::Forbidden { .. } => Code::Forbidden,
        Problem::KindAbsent(_) => Code::KindMissing,
        Problem::Foreign { .. } => Code::NotManaged,
        Problem::Refused { .. } => Code::Rejected,
        Problem::Unrepresentable { .. } => Code::NotCopied,
        Problem::OtherProperty { .. } => Code::OtherClusterProperty,
    };
    let remark = Remark::new(code, sentence(&problem.to_string()));
    let next = match problem {
        Problem::Foreign { object, .. } => {
            let namespace = object.namespace.as_ref().map(|namespace| format!(" -n {namespace}"));
            let (namespace, kind) = (namespace.unwrap_or_default(), object.kind.plural());
            Some(format!(
                "Rename the object, or delete it: `kubectl --context {id}{namespace} delete {kind} {}`.",
                object.name
            ))
        }
        Problem::OtherProperty { name, .. } => Some(format!(
            "Run `kubectl --context {id} delete clusterproperty {name}`, or unjoin the cluster."
        )),
        Problem::Forbidden { .. }
        | Problem::KindAbsent(_)
        | Problem::Refused { .. }
        | Problem::Unrepresentable { .. } => steps::next(code, key, id),
    };
    match next {
        Some(next) => remark.next(next),
        None => remark,
    }
}

fn told(code: Code, message: &str, id: &ClusterId) -> Remark {
    let remark = Remark::new(code, sentence(message));
    match steps::next(code, None, id) {
        Some(next) => remark.next(next),
        None => remark,
    }
}
