//! What this process may use up.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to the most that is allowed, and gives it back. A connection takes two, six while it is spliced.
pub fn allow_many_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // If it can't be raised, what there is has to do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    getrlimit(Resource::Nofile).current
}

/// No ports, files or memory left here.
pub(crate) fn ours(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.kind() == io::ErrorKind::OutOfMemory
        || matches!(error.raw_os_error(), Some(ENFILE | EMFILE | ENOBUFS))
}
