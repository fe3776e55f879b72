//! Hostile input for everything that reads what others send, on stable Rust.
//!
//! ```text
//!   seeds/<target>/* ──▶ as they are (make test) ───────────┐
//!          ├──▶ mutated, run after run (fuzz) ──────────────┼──▶ check: no panic, a proper answer, and what was taken is sound
//!          └──▶ mutated, led by coverage (guided, make fuzz) ┘
//! ```
//!
//! A seed is a file that people can read: the first line of a body or patch says where it goes and what it is, the rest is
//! sent. Start at [`Target`]; `cargo run --release --package atoll-fuzz -- bodies --runs 1000000` looks for more.

mod mutate;
mod parsers;
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
    /// JSON, strictly.
    Json,
    /// YAML, strictly.
    Yaml,
    /// Bodies in protobuf.
    Protobuf,
    /// Expressions of CEL.
    Cel,
    /// Paths of columns.
    JsonPath,
    /// Packets of DNS.
    Dns,
    /// Frames between hub and member.
    Link,
    /// Frames of a WebSocket.
    Websocket,
    /// Bearer tokens.
    Tokens,
    /// Certificates of clients.
    Certificates,
    /// Backups of a data directory.
    Backups,
    /// Messages of load balancer providers.
    Grpc,
    /// The balancer's configuration file.
    Balancer,
    /// Kubeconfigs.
    Kubeconfig,
}

impl Target {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Bodies,
        Self::Patches,
        Self::Selectors,
        Self::Json,
        Self::Yaml,
        Self::Protobuf,
        Self::Cel,
        Self::JsonPath,
        Self::Dns,
        Self::Link,
        Self::Websocket,
        Self::Tokens,
        Self::Certificates,
        Self::Backups,
        Self::Grpc,
        Self::Balancer,
        Self::Kubeconfig,
    ];

    /// Its folder of seeds.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bodies => "bodies",
            Self::Patches => "patches",
            Self::Selectors => "selectors",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Protobuf => "protobuf",
            Self::Cel => "cel",
            Self::JsonPath => "json-path",
            Self::Dns => "dns",
            Self::Link => "link",
            Self::Websocket => "websocket",
            Self::Tokens => "tokens",
            Self::Certificates => "certificates",
            Self::Backups => "backups",
            Self::Grpc => "grpc",
            Self::Balancer => "balancer",
            Self::Kubeconfig => "kubeconfig",
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
            Self::Json => parsers::json(input),
            Self::Yaml => parsers::yaml(input),
            Self::Protobuf => parsers::proto(input),
            Self::Cel => parsers::expression(input),
            Self::JsonPath => parsers::json_path(input),
            Self::Dns => parsers::packet(server.world(), input),
            Self::Link => parsers::link(input),
            Self::Websocket => parsers::frames(input),
            Self::Tokens => parsers::token(server.world(), input),
            Self::Certificates => parsers::certificate(input),
            Self::Backups => parsers::backup(input),
            Self::Grpc => parsers::provider(input),
            Self::Balancer => parsers::balancer(input),
            Self::Kubeconfig => parsers::kubeconfig(input),
        }
    }
}
