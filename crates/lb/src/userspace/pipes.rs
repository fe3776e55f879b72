//! Pipes for splicing, kept per thread: to make one costs two calls, and only a connection in full flow needs one.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;

use rustix::io;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// What a pipe takes, and for how many of a thread: 1 MiB is carried a tenth faster than 256 KiB, and a user without privilege may have
/// 64 MiB in pipes. Over that the kernel gives pipes of two pages, with which copying is faster.
const SIZES: [(usize, usize); 3] = [(16, 1 << 20), (64, 256 << 10), (usize::MAX, LEAST)];
/// What a pipe has by itself.
const LEAST: usize = 64 << 10;
/// Two open files each.
const KEPT: usize = 16;

thread_local! {
    static SPARE: RefCell<Vec<Pipe>> = const { RefCell::new(Vec::new()) };
    /// How many there are, spare ones too.
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

/// A pipe, and how much was put into it.
#[derive(Debug)]
pub(crate) struct Pipe {
    pub(crate) out: OwnedFd,
    pub(crate) into: OwnedFd,
    pub(crate) holds: usize,
    /// What it can hold.
    pub(crate) capacity: usize,
}

impl Drop for Pipe {
    fn drop(&mut self) {
        // A thread that ends has no count any more.
        let _ = COUNT.try_with(|count| count.set(count.get() - 1));
    }
}

/// A pipe; kept ones first.
pub(crate) fn take() -> io::Result<Pipe> {
    if let Some(spare) = SPARE.with_borrow_mut(Vec::pop) {
        return Ok(spare);
    }
    let (out, into) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC)?;
    let others = COUNT.replace(COUNT.get() + 1);
    let mut pipe = Pipe { out, into, holds: 0, capacity: 0 };
    for (_, size) in SIZES.iter().filter(|(most, _)| others < *most) {
        if let Ok(capacity) = fcntl_setpipe_size(&pipe.into, *size) {
            pipe.capacity = capacity;
            return Ok(pipe);
        }
    }
    Err(io::Errno::NOBUFS)
}

/// Keeps it for the next, unless a connection's bytes are left in it.
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
        let mut pipe = take().unwrap();
        pipe.holds = 1;
        give_back(pipe);
        assert_eq!(SPARE.with_borrow(Vec::len), 0);
        give_back(take().unwrap());
        assert_eq!(SPARE.with_borrow(Vec::len), 1);
        take().unwrap();
        assert_eq!(SPARE.with_borrow(Vec::len), 0);
    }

    #[test]
    fn the_first_are_large_and_the_others_leave_something() {
        let many: Vec<Pipe> = (0..70).map(|_| take().unwrap()).collect();
        assert!(many.iter().all(|pipe| pipe.capacity >= LEAST));
        assert!(many.iter().zip(&many[1..]).all(|(one, next)| one.capacity >= next.capacity));
        assert_eq!((many[0].capacity, many[69].capacity), (1 << 20, LEAST));
        drop(many);
        assert_eq!(COUNT.get(), 0);
    }
}
