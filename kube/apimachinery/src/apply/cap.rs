//! At most ten entries of ordinary writers: the oldest of a version become one.

use super::Operation;
use super::managed::{Managed, Owned, Owner};
use std::collections::BTreeMap;

const MOST: usize = 10;
const OLD: &str = "ancient-changes";

/// Folds the oldest entries together until there are few enough.
pub(super) fn cap(managed: &mut Managed) {
    let writers = managed.iter().filter(|(owner, _)| owner.operation == Operation::Update);
    let mut writers: Vec<_> = writers.map(|(owner, owned)| (owned.time.clone(), owner.clone())).collect();
    let mut count = writers.len();
    writers.sort();
    let mut first_of_version: BTreeMap<String, Owner> = BTreeMap::new();
    for (time, writer) in writers {
        if count <= MOST {
            break;
        }
        let Some(version) = managed.get(&writer).map(|owned| owned.api_version.clone()) else { continue };
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, writer);
            continue;
        };
        let bucket = Owner::new(OLD, Operation::Update, &version, "");
        if !managed.contains_key(&bucket)
            && let Some(owned) = managed.remove(first)
        {
            managed.insert(bucket.clone(), owned);
        }
        let Some(owned) = managed.remove(&writer) else { continue };
        let set = managed.get(&bucket).map(|old| old.set.union(&owned.set)).unwrap_or(owned.set);
        managed.insert(bucket, Owned { set, api_version: version, time });
        count -= 1;
    }
}
