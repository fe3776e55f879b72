//! What is told about the objects of this cluster, once per change: conditions that have changed, drift that was repaired, exports
//! and imports that ended. The shell logs it and makes events of it.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::names::kind::mcs;
use atoll_api::names::{condition, event, reason};
use atoll_engine::names::{ClusterId, ServiceKey, Uid};
use atoll_engine::plan::{ExportStatus, ImportPlan, SlicesFrom, WhyNothing};
use atoll_engine::reason::ExportReady;
use atoll_engine::reason::reach::Reach;
use atoll_engine::reason::text;

use super::Core;
use super::cache::Since;
use super::event::Request;
use super::object::{ConditionBody, Fingerprint, Kind, Target, Version};
use crate::events::{About, Notice};

/// How many changes by others are remembered until they are repaired.
const MOST: usize = 256;

/// What others did to an object of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drift {
    /// They changed it.
    Changed,
    /// They deleted it.
    Deleted,
}

/// Drift that is not repaired yet.
#[derive(Debug, Default)]
pub(super) struct Drifts(BTreeMap<Target, Drift>);

impl Drifts {
    fn note(&mut self, target: Target, drift: Drift) {
        if self.0.len() < MOST {
            self.0.insert(target, drift);
        }
    }

    /// The target is as it should be.
    pub(super) fn over(&mut self, target: &Target) -> Option<Drift> {
        if self.0.is_empty() { None } else { self.0.remove(target) }
    }
}

pub(super) fn about(kind: Kind, key: &ServiceKey, name: &str, uid: Option<Uid>) -> About {
    let (api_version, kind) = match kind {
        Kind::Export => (format!("{}/{}", mcs::GROUP, mcs::V1BETA1).into(), mcs::SERVICE_EXPORT),
        Kind::Import => (format!("{}/{}", mcs::GROUP, mcs::V1BETA1).into(), mcs::SERVICE_IMPORT),
        Kind::Slice => ("discovery.k8s.io/v1".into(), "EndpointSlice"),
        Kind::Service | Kind::Namespace | Kind::Node | Kind::Property => ("v1".into(), "Service"),
    };
    About {
        api_version,
        kind: kind.into(),
        namespace: key.namespace.as_str().to_owned(),
        name: name.to_owned(),
        uid: uid.map(|uid| uid.as_str().to_owned()),
    }
}

impl Core {
    /// A copy of ours was seen that says something else than before, or with another answer than one of ours: others changed it.
    pub(super) fn note_change(&mut self, target: Target, before: Option<(Version, Fingerprint)>) {
        if self.answering || self.queue.is_flying(&target) {
            return;
        }
        let now = self.copy(&target).map(|copy| (copy.version.clone(), copy.print));
        if let (Some((old, was)), Some((new, is))) = (before, now)
            && old.uid == new.uid
            && old.revision < new.revision
            && was != is
            && !new.deleting
        {
            self.drifts.note(target, Drift::Changed);
        }
    }

    /// A copy of ours is gone, and none of our requests took it.
    pub(super) fn note_loss(&mut self, target: Target) {
        let deleting = self.copy(&target).is_none_or(|copy| copy.version.deleting);
        if !deleting && !self.queue.is_flying(&target) {
            self.drifts.note(target, Drift::Deleted);
        }
    }

    /// What others did was repaired.
    pub(super) fn tell_repair(&mut self, target: &Target, drift: Drift) {
        let Some(key) = target.service().cloned() else { return };
        let uid = self.copy(target).map(|copy| copy.version.uid.clone());
        let did = match drift {
            Drift::Changed => "was changed, and the change was undone",
            Drift::Deleted => "was deleted, and has been created again",
        };
        let sources = match self.part(&key).map(|part| &part.import) {
            Some(ImportPlan::Present { import, .. }) => {
                text::some(import.clusters.iter(), import.clusters.len())
            }
            Some(ImportPlan::Absent(_) | ImportPlan::Untouched(_)) | None => String::new(),
        };
        let exported = if sources.is_empty() {
            "the hub keeps it as its plan says".to_owned()
        } else {
            format!("it follows the service exported by {sources}")
        };
        let next = match (target, drift) {
            (Target::Import(_), Drift::Deleted) => {
                "To end the import, delete the ServiceExport in those clusters."
            }
            (Target::Import(_), Drift::Changed) | (Target::Service(..), _) => {
                "Change the Service or its ServiceExport in those clusters instead."
            }
            (Target::Slice(..), _) => {
                "Change the Pods or the EndpointSlice in the cluster they come from instead."
            }
            (
                Target::ImportStatus(_)
                | Target::ExportStatus(_)
                | Target::MisnamedStatus(..)
                | Target::Property(_),
                _,
            ) => return,
        };
        let (kind, message) = (target.kind(), format!("It {did}: {exported}. {next}"));
        let about = about(kind, &key, target.name(), uid);
        self.notice(Notice { about, warning: true, reason: event::DRIFT_REPAIRED, message });
    }

    /// An export is gone: those who imported the service from here do so no more.
    pub(super) fn tell_unexported(&mut self, key: &ServiceKey) {
        let Some(part) = self.part(key) else { return };
        let Some(reach) = part.export.as_ref().and_then(|export| export.reach.as_ref()) else { return };
        let me = &self.identity.cluster;
        let here = matches!(&part.import, ImportPlan::Present { .. });
        let others = reach.imported.saturating_sub(usize::from(here));
        if others == 0 || self.closing.contains(&key.namespace) {
            return;
        }
        let users = text::some(reach.importers.iter().filter(|one| *one != me), others);
        let message = format!(
            "The ServiceExport was deleted while the service was imported by {users}; they get no endpoints from this cluster any more. To share the service again, create the ServiceExport again."
        );
        let about = about(Kind::Service, key, key.name.as_str(), None);
        self.notice(Notice { about, warning: true, reason: event::export::UNEXPORTED, message });
    }

    /// What is to be told when this request is done.
    pub(super) fn notices_of(&self, request: &Request) -> Vec<Notice> {
        match request {
            Request::ExportStatus(key, _, conditions) => {
                let status = self.part(key).and_then(|part| part.export.as_ref());
                let held = self.cache.exports.get(key);
                status.zip(held).map_or_else(Vec::new, |(status, held)| {
                    self.export_notices(key, status, conditions, &held.since)
                })
            }
            Request::ImportStatus(key, body, version) => {
                let held = self.cache.held.get(key).and_then(|held| held.import.as_ref());
                let before = held.map(|held| &held.since[..]).unwrap_or_default();
                self.import_notices(key, &version.uid, &body.conditions, before)
            }
            Request::MisnamedStatus(namespace, name, uid, conditions) => {
                let about = About {
                    api_version: format!("{}/{}", mcs::GROUP, mcs::V1BETA1).into(),
                    kind: mcs::SERVICE_EXPORT.into(),
                    namespace: namespace.as_str().to_owned(),
                    name: name.to_string(),
                    uid: Some(uid.as_str().to_owned()),
                };
                let message = conditions.first().map(|one| one.message.clone()).unwrap_or_default();
                vec![Notice { about, warning: true, reason: event::export::NOT_EXPORTED, message }]
            }
            Request::Service { .. }
            | Request::Import(..)
            | Request::Slice(..)
            | Request::Attach { .. }
            | Request::Property(..)
            | Request::Delete(..) => Vec::new(),
        }
    }

    pub(super) fn tell_all(&mut self, notices: Vec<Notice>) {
        notices.into_iter().for_each(|notice| self.notice(notice));
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        self.out.push(super::Command::Tell(Box::new(notice)));
    }

    /// What is to be told when these conditions are written.
    fn export_notices(
        &self,
        key: &ServiceKey,
        status: &ExportStatus,
        conditions: &[ConditionBody],
        before: &[Since],
    ) -> Vec<Notice> {
        let changed = self.changed(conditions, before);
        let of = |kind: &str| changed.iter().find(|(condition, ..)| *condition.kind == *kind).copied();
        let told = |warning, reason, message: &str| {
            let about = about(Kind::Export, key, key.name.as_str(), Some(status.uid.clone()));
            Notice { about, warning, reason, message: message.to_owned() }
        };
        let mut notices = Vec::new();
        if let Some((ready, _)) = of(condition::export::READY) {
            let unused = |reach: &Reach| reach.imported <= 1 && reach.lacking > 0;
            let reach = status.reach.as_deref();
            let notice = match &status.ready {
                ExportReady::Exported { refused: Some(_) } => Some((true, event::export::ENDPOINTS_REFUSED)),
                // Where it is imported is known in a moment, and then told.
                ExportReady::Exported { refused: None } if reach.is_some_and(|reach| reach.awaited) => None,
                ExportReady::Exported { refused: None } => {
                    Some((reach.is_some_and(unused), event::export::EXPORTED))
                }
                ExportReady::Pending(_) | ExportReady::Failed(_) => Some((true, event::export::NOT_EXPORTED)),
            };
            notices.extend(notice.map(|(warning, reason)| told(warning, reason, &ready.message)));
        }
        if let Some((conflict, was)) = of(condition::export::CONFLICT) {
            if conflict.status == Some(true) {
                notices.push(told(true, event::export::CONFLICT, &conflict.message));
            } else if was == Some(Some(true)) {
                notices.push(told(false, event::export::CONFLICT_RESOLVED, &conflict.message));
            }
        }
        notices
    }

    /// What is to be told when this condition of an import is written. That it is ready for the first time is not: its condition says so,
    /// and many are made at once.
    fn import_notices(
        &self,
        key: &ServiceKey,
        uid: &Uid,
        ready: &[ConditionBody],
        before: &[Since],
    ) -> Vec<Notice> {
        let changed = self.changed(ready, before);
        let Some((ready, was)) = changed.first() else { return Vec::new() };
        let stale = ready.reason == reason::import::SOURCES_STALE;
        let pending = ready.reason == reason::import::PENDING;
        let (warning, reason) = match (ready.status, was) {
            (Some(true), _) if stale => (true, event::import::SOURCES_STALE),
            (Some(true), Some(Some(_))) => (false, event::import::CHANGED),
            (Some(true), Some(None) | None) => return Vec::new(),
            _ if pending => return Vec::new(),
            (Some(false) | None, _) => (true, event::import::NOT_READY),
        };
        let about = about(Kind::Import, key, key.name.as_str(), Some(uid.clone()));
        vec![Notice { about, warning, reason, message: ready.message.clone() }]
    }

    /// Conditions that say something else than before, with the status that they had.
    fn changed<'a>(
        &self,
        conditions: &'a [ConditionBody],
        before: &[Since],
    ) -> Vec<(&'a ConditionBody, Option<Option<bool>>)> {
        let changed = |condition: &'a ConditionBody| {
            let old = before.iter().find(|Since(kind, ..)| *kind == condition.kind);
            let same =
                old.is_some_and(|Since(.., print)| *print == self.cache.printer.print(Some(condition)));
            (!same).then(|| (condition, old.map(|Since(_, status, ..)| *status)))
        };
        conditions.iter().filter_map(changed).collect()
    }
}

/// The sources of an import whose endpoints were withdrawn.
pub(super) fn withdrawn(plan: &ImportPlan) -> BTreeSet<ClusterId> {
    let ImportPlan::Present { slices, .. } = plan else { return BTreeSet::new() };
    let lost =
        slices.iter().filter(|(_, from)| matches!(from, SlicesFrom::Nothing(WhyNothing::Withdrawn(_))));
    lost.map(|(source, _)| source.clone()).collect()
}
