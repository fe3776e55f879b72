//! The contract: what a Kubernetes API answers, case by case, on a real kube-apiserver and on the embedded one.
//!
//! ```text
//!   case ──┬─▶ real      etcd, kube-apiserver and two controllers, started by the lab
//!          └─▶ embedded  this crate's server, in this process, behind its TLS listener
//! ```
//! A case is a function on a [`target::Target`], the same for both. Answers of `tests/golden` were recorded from the
//! real server and are compared on both. See `docs/kubeapi.md` for what is left out on purpose.
//!
//! | variable | what it does |
//! |---|---|
//! | `ATOLL_CONTRACT_ONLY=embedded` or `real` | runs the cases on one server only |
//! | `ATOLL_CONTRACT_LAB=NAME` | uses a lab that is up (`lab up -n 1 --api-with-cleanup`) as the real one |
//! | `ATOLL_CONTRACT_RECORD=1` | writes the golden answers anew, from the real server |

#![allow(clippy::needless_pass_by_value, reason = "cases say their JSON in place")]

mod access;
mod accounts;
mod answer;
mod apply;
mod apply_structure;
mod attacks;
mod bad_input;
mod clients;
mod crd;
mod crd_parts;
mod create;
mod delete;
mod discovery;
mod embedded;
mod evasions;
mod fixtures;
mod garbage;
mod namespaces;
mod patch;
mod policies;
mod programs;
mod read;
mod recording;
mod records;
mod rules;
mod rules_cel;
mod rules_structure;
mod selectors;
mod services;
mod strategic;
mod streaming;
mod streams;
mod suite;
mod target;
mod update;
mod validation;
mod watch;
mod watching;

fn main() -> std::process::ExitCode {
    let mut suite = suite::Suite::new();
    // They take longest.
    suite.add("clients", clients::CASES);
    suite.add("create", create::CASES);
    suite.add("read", read::CASES);
    suite.add("selectors", selectors::CASES);
    suite.add("watch", watch::CASES);
    suite.add("update", update::CASES);
    suite.add("patch", patch::CASES);
    suite.add("strategic", strategic::CASES);
    suite.add("apply", apply::CASES);
    suite.add("apply_structure", apply_structure::CASES);
    suite.add("delete", delete::CASES);
    suite.add("garbage", garbage::CASES);
    suite.add("namespaces", namespaces::CASES);
    suite.add("crd", crd::CASES);
    suite.add("crd_parts", crd_parts::CASES);
    suite.add("rules", rules::CASES);
    suite.add("rules_cel", rules_cel::CASES);
    suite.add("rules_structure", rules_structure::CASES);
    suite.add("validation", validation::CASES);
    suite.add("discovery", discovery::CASES);
    suite.add("access", access::CASES);
    suite.add("accounts", accounts::CASES);
    suite.add("attacks", attacks::CASES);
    suite.add("evasions", evasions::CASES);
    suite.add("services", services::CASES);
    suite.add("records", records::CASES);
    suite.add("policies", policies::CASES);
    suite.add("bad_input", bad_input::CASES);
    suite.add("streams", streams::CASES);
    // Only the embedded one has pods that run here.
    suite.add_embedded("streaming", streaming::CASES);
    suite.run()
}
