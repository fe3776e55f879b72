//! `guided`: libFuzzer on one target, named by `ATOLL_FUZZ_TARGET`. `make fuzz` builds it with counters in the code and runs it.

#![no_main]

use atoll_fuzz::{Server, Target};
use std::cell::RefCell;

/// What inputs leave behind is dropped after so many.
const FRESH_AFTER: u32 = 20_000;

struct Fed {
    target: Target,
    server: Server,
    inputs: u32,
}

thread_local! {
    static FED: RefCell<Option<Fed>> = const { RefCell::new(None) };
}

fn begin() -> Fed {
    let named = std::env::var("ATOLL_FUZZ_TARGET").unwrap_or_default();
    let Some(target) = Target::ALL.into_iter().find(|target| target.name() == named) else {
        panic!("set ATOLL_FUZZ_TARGET to one of {:?}", Target::ALL.map(Target::name));
    };
    let server = Server::start().unwrap_or_else(|error| panic!("{error:#}"));
    Fed { target, server, inputs: 0 }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    FED.with_borrow_mut(|fed| {
        if fed.as_ref().is_some_and(|fed| fed.inputs >= FRESH_AFTER) {
            *fed = None;
        }
        let fed = fed.get_or_insert_with(begin);
        fed.inputs += 1;
        if let Err(wrong) = fed.target.check(&fed.server, input) {
            panic!("{wrong}");
        }
    });
});
