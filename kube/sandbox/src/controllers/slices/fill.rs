//! Which slice holds which endpoint.

use super::Change;
use super::endpoint::{Group, identity};
use crate::controllers::facts::{Slice, StringMap};
use serde_json::Value;
use std::cmp::Reverse;

/// The most that a slice holds.
pub(super) const FULL: usize = 100;

/// What a slice should hold.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) ports: Vec<Value>,
    pub(super) endpoints: Vec<Value>,
}

/// Distributes the endpoints of a group over the slices that have its ports, and new ones.
pub(super) fn fill<'a>(slices: Vec<&'a Slice>, group: Group, labels: &StringMap, change: &mut Change<'a>) {
    let Group { ports, endpoints: mut wanted } = group;
    let mut unchanged: Vec<&Slice> = Vec::new();
    let mut changed: Vec<(&Slice, Vec<Value>)> = Vec::new();
    for slice in slices {
        let kept: Vec<Value> = slice.endpoints.iter().filter_map(|old| take(&mut wanted, old)).collect();
        if kept.is_empty() {
            change.deletes.push(slice);
        } else if kept != slice.endpoints || slice.meta.labels != *labels {
            changed.push((slice, kept));
        } else {
            unchanged.push(slice);
        }
    }
    // Slices that are written anyway take what is new, the fullest first.
    changed.sort_by_key(|(_, endpoints)| Reverse(endpoints.len()));
    for (_, endpoints) in &mut changed {
        let room = FULL.saturating_sub(endpoints.len()).min(wanted.len());
        endpoints.extend(wanted.drain(..room));
    }
    while !wanted.is_empty() {
        // One more slice is written: the fullest that has room for all the rest, or a new one.
        let room = |slice: &&Slice| slice.endpoints.len() + wanted.len() <= FULL;
        let fits = unchanged.iter().copied().filter(room).max_by_key(|slice| slice.endpoints.len());
        let rest: Vec<Value> = wanted.drain(..FULL.min(wanted.len())).collect();
        if let Some(slice) = fits {
            unchanged.retain(|other| other.meta.uid != slice.meta.uid);
            changed.push((slice, slice.endpoints.iter().cloned().chain(rest).collect()));
        } else {
            change.creates.push(Filled { ports: ports.clone(), endpoints: rest });
        }
    }
    change.updates.extend(
        changed.into_iter().map(|(slice, endpoints)| (slice, Filled { ports: ports.clone(), endpoints })),
    );
}

/// Takes the endpoint out of the wanted ones that an old one has become.
fn take(wanted: &mut Vec<Value>, old: &Value) -> Option<Value> {
    let at = wanted.iter().position(|new| identity(new) == identity(old))?;
    Some(wanted.remove(at))
}
