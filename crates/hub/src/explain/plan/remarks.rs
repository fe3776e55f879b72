//! What stands in the way in one cluster, and on what exports disagree.

use std::collections::BTreeSet;

use atoll_api::explain::Remark;
use atoll_api::names::code::{Code, Severity};
use atoll_engine::names::ClusterId;
use atoll_engine::plan::{ClusterPlan, DispatchPlan, ImportPlan, Plan, WhyAbsent, WhyNotDispatched};
use atoll_engine::reason::{Conflict, ExportReady, ImportReady, PortDropped, SliceNote, text};
use atoll_member::core::wanted;

/// So many remarks are made about one service in one cluster: an example helps, a flood does not.
const MOST: usize = 16;

/// What its plan has to say about a cluster, beyond what it brings there.
pub(super) fn of(plan: Option<&Plan>, id: &ClusterId) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = Vec::new();
    let Some(part) = plan.and_then(|plan| plan.clusters.get(id)) else { return remarks };
    let exported = plan.is_some_and(|plan| {
        plan.clusters.values().any(|part| part.export.as_ref().is_some_and(|export| export.valid.is_ok()))
    });
    match &part.import {
        ImportPlan::Absent(WhyAbsent::NotExported) => {}
        ImportPlan::Absent(why) if exported => remarks.push(Remark::new(why.code(), text::absent(*why))),
        ImportPlan::Absent(_) => {}
        ImportPlan::Untouched(why) if exported => remarks.push(Remark::of(why.code())),
        ImportPlan::Untouched(_) => {}
        ImportPlan::Present { import, .. } => {
            if import.ready != ImportReady::Ready {
                remarks.push(Remark::new(import.ready.code(), text::import_ready(&import.ready)));
            }
            remarks.extend(import.notes.iter().map(|note| Remark::new(note.code(), text::import_note(note))));
        }
    }
    if let DispatchPlan::Absent(why) = &part.dispatch
        && let (WhyNotDispatched::NoNamespace, Some(code)) = (why, why.code())
    {
        remarks.push(Remark::new(code, text::not_dispatched(*why)));
    }
    if let Some(export) = &part.export {
        match (&export.valid, &export.ready) {
            (Err(why), _) => remarks.push(Remark::new(why.code(), text::valid_message(Err(*why)))),
            (Ok(()), ExportReady::Exported { refused: None }) => {}
            (Ok(()), ready) => remarks.push(Remark::new(ready.code(), text::export_message(ready, &[]))),
        }
        let keys = export.refused_keys.iter();
        remarks.extend(keys.map(|refused| {
            Remark::new(Code::KeyNotExported, format!("{} is not copied to other clusters", refused.key))
        }));
    }
    remarks.extend(dropped_ports(part));
    remarks.truncate(MOST);
    remarks
}

/// Ports that lost a clash.
fn dropped_ports(part: &ClusterPlan) -> Vec<Remark> {
    let mut said = BTreeSet::new();
    let mut remarks = Vec::new();
    for (_, slice) in wanted::slices(part) {
        for note in &slice.notes {
            let clash = matches!(note, SliceNote::PortDropped { why: PortDropped::NameClash { .. }, .. });
            let message = format!("from {}: {}", slice.source, text::slice_note(note));
            if clash && said.insert(message.clone()) {
                remarks.push(Remark::new(note.code(), message));
            }
        }
    }
    remarks
}

/// On what the exports of a service disagree.
pub(super) fn conflicts(plan: Option<&Plan>) -> Vec<Conflict> {
    let parts = plan.into_iter().flat_map(|plan| plan.clusters.values());
    let mut all = parts.filter_map(|part| part.export.as_ref()?.conflicts.as_ref());
    all.find(|conflicts| !conflicts.is_empty()).map(|conflicts| conflicts.to_vec()).unwrap_or_default()
}

/// Whether something does not work as it should.
pub(super) fn is_problem(remark: &Remark) -> bool {
    remark.severity >= Severity::Warning
}
