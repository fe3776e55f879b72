//! Pipes for splicing, kept per thread: to make one costs two calls, and only a connection in full flow needs one.

use std::cell::RefCell;
use std::os::fd::OwnedFd;

use rustix::io;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// How much a pipe takes. Without privilege the kernel may grant less; 64 KiB is what it has by itself.
pub(crate) const CAPACITY: usize = 256 * 1024;
/// Two open files each.
const KEPT: usize = 64;

thread_local! {
    static SPARE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
}

/// An empty pipe, and how much was put into it since.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) out: OwnedFd,
    pub(crate) into: OwnedFd,
    pub(crate) holds: usize,
}

/// A pipe; kept ones first.
pub(crate) fn take() -> io::Result<Pipe> {
    if let Some(spare) = SPARE.with_borrow_mut(Vec::pop) {
        return Ok(spare);
    }
    let (out, into) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
    let _ = fcntl_setpipe_size(&into, CAPACITY);
    Ok(Pipe { out, into, holds: 0 })
}

/// Keeps it for the next, unless somebody's bytes are left in it.
pub(crate) fn give_back(pipe: Pipe) {
    if pipe.holds == 0 {
        SPARE.with_borrow_mut(|spare| {
            if spare.len() < KEPT {
                spare.push(pipe);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_pipes_are_used_again() {
        let pipe = take().unwrap();
        give_back(Pipe { holds: 1, ..pipe });
        assert_eq!(SPARE.with_borrow(Vec::len), 0);
        give_back(take().unwrap());
        assert_eq!(SPARE.with_borrow(Vec::len), 1);
        take().unwrap();
        assert_eq!(SPARE.with_borrow(Vec::len), 0);
    }
}
