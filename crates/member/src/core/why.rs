//! Why an object is written, read off the plan: for the audit log, and only if there is one.

use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, ServiceKey, SliceName};
use atoll_engine::plan::{ClusterPlan, DispatchPlan, ImportPlan, SlicesFrom};
use atoll_engine::reason::text;
use litemap::LiteMap;

use super::object::Target;
use super::{Core, wanted};
use crate::audit::Cause;

/// How many exporters a reason names.
const MOST_NAMED: usize = 8;

impl Core {
    /// Why the object is written now.
    pub(crate) fn cause(&self, target: &Target) -> Cause {
        let part = |key: &ServiceKey| self.plans.get(key).and_then(Option::as_deref);
        let reason = match target {
            Target::Service(key, _) | Target::Import(key) | Target::ImportStatus(key) => match part(key) {
                Some(part) => import(&part.import),
                None => "the hub's plan has no part for this cluster".to_owned(),
            },
            Target::Slice(key, name) => match part(key) {
                Some(part) => slice(part, name),
                None => "the hub's plan has no part for this cluster".to_owned(),
            },
            Target::ExportStatus(_) | Target::MisnamedStatus(..) => {
                "what the hub says of the ServiceExport has changed".to_owned()
            }
            Target::Property(_) => "the cluster is a member of the clusterset".to_owned(),
        };
        Cause { name: target.name().to_owned(), reason }
    }
}

fn import(plan: &ImportPlan) -> String {
    match plan {
        ImportPlan::Present { import, .. } => {
            let named: Vec<&str> = import.clusters.iter().take(MOST_NAMED).map(ClusterId::as_str).collect();
            let more = import.clusters.len().saturating_sub(MOST_NAMED);
            let others = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("exported by {}{others}", named.join(", "))
        }
        ImportPlan::Absent(why) => text::absent(*why).to_owned(),
        ImportPlan::Untouched(_) => String::new(),
    }
}

fn slice(part: &ClusterPlan, name: &SliceName) -> String {
    if let Some((intent, slice)) = wanted::slice(part, name) {
        let from = match (intent, &part.import, &part.dispatch) {
            (Intent::Export, ImportPlan::Present { slices, .. }, _) => slices.get(&slice.source),
            (Intent::CrossCluster, _, DispatchPlan::Present(slices)) => slices.get(&slice.source),
            (Intent::Export | Intent::CrossCluster, _, _) => None,
        };
        let why = match from {
            Some(SlicesFrom::Exactly(_, kept)) => format!(": {}", text::kept(*kept)),
            Some(SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_)) | None => String::new(),
        };
        return format!("{} of {}{why}", slice.original, slice.source);
    }
    let exported = match &part.import {
        ImportPlan::Present { slices, .. } => withheld(slices),
        ImportPlan::Absent(why) => text::absent(*why).to_owned(),
        ImportPlan::Untouched(_) => String::new(),
    };
    let crossing = match &part.dispatch {
        DispatchPlan::Present(slices) => withheld(slices),
        DispatchPlan::Absent(why) => text::not_dispatched(*why).to_owned(),
        DispatchPlan::Untouched(_) => String::new(),
    };
    format!("no source has it any more: {exported}; {crossing}")
}

/// The sources of which nothing is wanted, and why.
fn withheld(slices: &LiteMap<ClusterId, SlicesFrom>) -> String {
    let reasons: Vec<String> = slices
        .iter()
        .filter_map(|(source, from)| match from {
            SlicesFrom::Nothing(why) => Some(format!("{source}: {}", text::nothing(*why))),
            SlicesFrom::Exactly(..) | SlicesFrom::KeepWhatIsThere(_) => None,
        })
        .take(MOST_NAMED)
        .collect();
    if reasons.is_empty() { "it is gone there".to_owned() } else { reasons.join(", ") }
}
