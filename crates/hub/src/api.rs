//! What every subject needs of the hub's API: CRDs, conditions, events, and queues of writes.

pub(crate) mod conditions;
pub(crate) mod crd;
pub(crate) mod debounce;
pub(crate) mod write_queue;
