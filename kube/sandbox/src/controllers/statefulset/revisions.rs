//! The templates of a StatefulSet as its history.

use super::revision_of;
use crate::controllers::action::{Action, Kind};
use crate::controllers::facts::{Pod, Revision, StatefulSet, number, text};
use crate::controllers::template::owner;
use serde_json::{Value, json};

/// A name has room for this much of the set's name.
const STEM: usize = 223;

/// The revisions that matter now.
pub(super) struct Revisions<'a> {
    /// That of the pods which the update has not reached.
    pub(super) current: &'a Revision,
    /// That of the present template.
    pub(super) update: &'a Revision,
}

impl<'a> Revisions<'a> {
    /// The revisions that are known; or what has to be done so that they are.
    pub(super) fn of(set: &StatefulSet, known: &[&'a Revision]) -> Result<Self, Action> {
        let last = known.iter().map(|one| one.number).max().unwrap_or(0);
        let same = known.iter().copied().filter(|one| one.template == set.template);
        let Some(update) = same.max_by_key(|one| one.number) else { return Err(make(set, last + 1)) };
        if update.number < last {
            // A rollback to it.
            let body = json!({"revision": last + 1});
            let target = (&update.meta).into();
            return Err(Action::Patch { kind: Kind::Revision, target, status: false, body });
        }
        let current = text(&set.status["currentRevision"]);
        let current = known.iter().copied().find(|one| one.meta.name == current).unwrap_or(update);
        Ok(Self { current, update })
    }

    /// Deletes the oldest revisions beyond the limit that are not in use.
    pub(super) fn forget(&self, set: &StatefulSet, known: &[&Revision], pods: &[&Pod]) -> Vec<Action> {
        let needed = |one: &Revision| {
            let name = &one.meta.name;
            *name == self.current.meta.name
                || *name == self.update.meta.name
                || pods.iter().any(|pod| revision_of(pod) == name)
        };
        let mut old: Vec<&Revision> =
            known.iter().copied().filter(|one| !needed(one) && !one.meta.going).collect();
        old.sort_by_key(|one| one.number);
        let surplus = old.len().saturating_sub(usize::try_from(set.history).unwrap_or(0));
        old.truncate(surplus);
        old.into_iter().map(|one| Action::Delete(Kind::Revision, (&one.meta).into())).collect()
    }
}

fn make(set: &StatefulSet, revision_number: i64) -> Action {
    let hash = set.template.hash(number(&set.status["collisionCount"]).unwrap_or(0));
    let mut template = set.template.value();
    let mut labels = template["metadata"]["labels"].clone();
    if !labels.is_object() {
        labels = json!({});
    }
    labels[REVISION_HASH] = hash.as_str().into();
    template["$patch"] = "replace".into();
    let stem: String = set.meta.name.chars().take(STEM).collect();
    let revision: Value = json!({
        "apiVersion": "apps/v1", "kind": "ControllerRevision",
        "metadata": {
            "name": format!("{stem}-{hash}"), "namespace": set.meta.namespace, "labels": labels,
            "ownerReferences": [owner("apps/v1", "StatefulSet", &set.meta)],
        },
        "data": {"spec": {"template": template}},
        "revision": revision_number,
    });
    Action::Create(Kind::Revision, revision)
}

/// The label of a revision that says its hash.
const REVISION_HASH: &str = "controller.kubernetes.io/hash";
