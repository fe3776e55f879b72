//! Hostile input for the embedded Kubernetes API, on stable Rust.
//!
//! ```text
//!   seeds/<target>/* ──▶ as they are (make test) ──┐
//!          └──▶ mutated, run after run (fuzz) ─────┴──▶ check: no panic, a proper answer, and what was taken is sound
//! ```
//!
//! A seed is a file that people can read: the first line of a body or patch says where it goes and what it is, the rest is
//! sent. Start at [`Target`]; `cargo run --release --package atoll-fuzz -- bodies --runs 1000000` looks for more.

mod mutate;
mod requests;
mod seeds;
mod selectors;
mod server;

pub use mutate::Mutator;
pub use seeds::seeds;
pub use server::Server;

/// What is fed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(doctest), derive(clap::ValueEnum))]
pub enum Target {
    /// Bodies of creates.
    Bodies,
    /// Patches of all kinds.
    Patches,
    /// Label and field selectors.
    Selectors,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Bodies, Self::Patches, Self::Selectors];

    /// Its folder of seeds.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodies => "bodies",
            Self::Patches => "patches",
            Self::Selectors => "selectors",
        }
    }

    /// Feeds one input.
    ///
    /// # Errors
    /// What is wrong with the answer. A panic is the caller's to catch.
    pub fn check(self, server: &Server, input: &[u8]) -> Result<(), String> {
        match self {
            Self::Bodies => requests::create(server, input),
            Self::Patches => requests::patch(server, input),
            Self::Selectors => selectors::check(server, input),
        }
    }
}
