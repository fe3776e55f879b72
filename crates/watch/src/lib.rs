//! One way to watch a kind of Kubernetes objects.
//!
//! ```text
//!   watch   lists page by page, then follows; goes on where it broke, lists again where it can't; backs off
//!   Known   remembers names, and tells what a new list no longer has
//! ```
//!
//! `position`, `backoff` and `known` decide, and know neither socket nor clock; `stream` asks and waits. An object is handed
//! on as it comes: nothing here keeps or clones one.
//!
//! Why not kube's own watcher: it does not say when a broken watch is back, which the age of a DNS snapshot depends on; it asks for
//! the same version for ever if the server answers the request itself with 410 or 504; and the start of every list looks like
//! success to whoever backs off, so that a list that fails is tried again at full speed.

mod backoff;
mod failure;
mod known;
mod position;
mod stream;

pub use backoff::Backoff;
pub use failure::{Failure, why};
pub use known::{Change, Known};
pub use stream::{Config, LIFETIME, READ_TIMEOUT, watch};

/// What a watch says.
#[derive(Debug)]
pub enum Event<K> {
    /// A list is asked for now; it has not been answered yet.
    ListStarted,
    /// An object is there, as it is now.
    Seen(K),
    /// An object is gone; this was its last state.
    Gone(K),
    /// The list is complete: what was not seen since it started is gone.
    Listed,
    /// The server has taken on the watch: changes are seen as they come.
    Following,
    /// Nothing is seen for now. The watch tries again after a pause.
    Failed(Failure),
}
