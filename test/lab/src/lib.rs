//! Real Kubernetes clusters on one Linux host, for tests to start, break and heal.
//!
//! ```text
//!             host ── bridge ─┬─ member1: etcd, kube-apiserver, …, kubelet, containerd, pods
//!   tests, kubectl ───▲       ├─ member2: the same, in network, process and mount namespaces of its own
//!                             └─ hub, client, …: bystanders, machines without a cluster
//! ```
//!
//! Start at [`Lab::start`]. A [`Cluster`] hands out a client, runs pods' commands and is broken by
//! [`fault`]s, which heal when dropped. [`audit::Recorder`] tells which requests an API server got.
//!
//! ```no_run
//! # async fn example() -> atoll_lab::Result<()> {
//! use atoll_lab::{Lab, Progress, Spec};
//! let lab = Lab::start(&Spec::whole("docs", 2), &Progress::to_stderr()).await?;
//! let version = lab.member(1).client().await?.apiserver_version().await;
//! println!("{version:?}");
//! # Ok(()) }
//! ```

pub mod addresses;
pub mod audit;
mod boot;
pub mod cli;
mod cluster;
pub mod clusterset;
mod collect;
mod command;
mod component;
mod config;
mod error;
pub mod fault;
pub mod image;
mod install;
mod lab;
mod layout;
mod machine;
pub mod naming;
mod network;
mod pki;
pub mod pods;
mod process;
mod progress;
mod record;
mod request;
pub mod requirements;
mod spec;
#[cfg(feature = "suite")]
pub mod suite;
pub mod teardown;
#[cfg(feature = "suite")]
pub mod times;
mod until;

pub use cluster::{Cluster, client_of};
pub use component::Component;
pub use error::{Error, Result};
pub use install::{Installed, Programs, install, install_packages, kubernetes_sources};
pub use lab::{Bystander, Lab, down};
pub use layout::{Layout, MARK, cache_root, state_root};
pub use machine::Machine;
pub use process::Process;
pub use progress::{Progress, say};
pub use record::names;
pub use request::ApiRequest;
pub use spec::{Kind, Spec};
pub use until::{Deadline, until};
