//! How many files this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to the most that is allowed, and gives it back. A connection takes two, six while it is spliced.
pub fn allow_many_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // If it can't be raised, what there is has to do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current
}
