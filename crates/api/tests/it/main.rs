//! Holds the names and CRDs to what is published, and to what an API server takes.
//!
//! The published files are not kept here: the tests fetch the Go modules that have them. Where that can't be done
//! they print SKIPPED and why; with `CI=true` they fail instead.

mod about;
mod facts;
mod golden;
mod karmada;
mod karmada_names;
mod karmada_policies;
mod mcs;
mod multi_cluster_service;
mod objects;
mod published;
mod reasons;
mod revision;
mod structural;
