//! On what exports disagree, who has precedence and by which rule, and who has to change what.

use atoll_api::explain::Remark;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::reason::{Disputed, text};
use atoll_engine::services::dissent::dissenters;
use atoll_engine::services::precedence::{self, Rule};

use super::known::{Known, list, rfc3339};

/// The conflicts of a service.
pub(super) fn conflicts(known: &Known<'_>, key: &ServiceKey) -> Vec<Remark> {
    let Some(merged) = known.engine().merged(key) else { return Vec::new() };
    let remembered = known.world().memory.get(key);
    let age = |id: &ClusterId| remembered.and_then(|memory| memory.exports.get(id));
    let rule = precedence::rule(merged.clusters.iter().filter_map(|id| Some((id, age(id)?))));
    let why = |winner: &ClusterId| match rule {
        Some(Rule::Older) => {
            let since = age(winner).map(|export| format!(", since {}", rfc3339(export.credited)));
            format!(" The export of {winner} is the oldest{}.", since.unwrap_or_default())
        }
        Some(Rule::Created) => format!(" The export of {winner} was created before the others."),
        Some(Rule::Name) => format!(" All exports are equally old, and the name {winner} comes first."),
        Some(Rule::Incumbent) => {
            format!(" The export of {winner} had precedence before, and keeps it for as long as it exists.")
        }
        None => String::new(),
    };
    let remark = |conflict: &atoll_engine::reason::Conflict| {
        let others = list(&dissenters(merged, &conflict.about));
        let message = format!("{}{}", text::conflict(conflict), why(&conflict.winner));
        let object = object(&conflict.about);
        let next = match &conflict.about {
            // The field can't be changed.
            Disputed::Type { headless } => format!(
                "Delete Service {key} in {others} and create it again {} clusterIP: None, as in {}; or delete its ServiceExport there.",
                if *headless { "with" } else { "without" },
                conflict.winner
            ),
            about => format!(
                "Change {} of {object} {key} in {others}, to be the same as in {}.",
                path(about),
                conflict.winner
            ),
        };
        Remark::new(conflict.about.code(), message).next(next)
    };
    merged.conflicts.iter().map(remark).collect()
}

/// The field, at the beginning of a sentence.
pub(super) fn field(about: &Disputed) -> &'static str {
    match about {
        Disputed::Ports => "The ports",
        Disputed::Type { .. } => "The types (headless or not)",
        Disputed::SessionAffinity(_) => "The session affinities",
        Disputed::SessionAffinityConfig(_) => "The timeouts of session affinity",
        Disputed::Labels => "The exported labels",
        Disputed::Annotations => "The exported annotations",
        Disputed::InternalTrafficPolicy(_) => "The internal traffic policies",
        Disputed::TrafficDistribution(_) => "The traffic distributions",
        Disputed::IpFamilies(_) => "The IP families",
    }
}

fn path(about: &Disputed) -> &'static str {
    match about {
        Disputed::Ports => "spec.ports",
        Disputed::Type { .. } => "spec.clusterIP (None or not)",
        Disputed::SessionAffinity(_) => "spec.sessionAffinity",
        Disputed::SessionAffinityConfig(_) => "spec.sessionAffinityConfig",
        Disputed::Labels => "spec.exportedLabels",
        Disputed::Annotations => "spec.exportedAnnotations",
        Disputed::InternalTrafficPolicy(_) => "spec.internalTrafficPolicy",
        Disputed::TrafficDistribution(_) => "spec.trafficDistribution",
        Disputed::IpFamilies(_) => "spec.ipFamilies",
    }
}

fn object(about: &Disputed) -> &'static str {
    match about {
        Disputed::Labels | Disputed::Annotations => atoll_api::names::kind::mcs::SERVICE_EXPORT,
        Disputed::Ports
        | Disputed::Type { .. }
        | Disputed::SessionAffinity(_)
        | Disputed::SessionAffinityConfig(_)
        | Disputed::InternalTrafficPolicy(_)
        | Disputed::TrafficDistribution(_)
        | Disputed::IpFamilies(_) => "Service",
    }
}
