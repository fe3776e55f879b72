//! The engine as its callers see it: changes in, plans out.
#![allow(missing_docs, clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

#[path = "../../src/fixture.rs"]
mod fixture;

mod balancing;
mod borders;
mod conflict;
mod cost;
mod drawn;
mod explicit;
mod explicit_properties;
mod fences;
mod imports;
mod limits;
mod liveness;
mod mcs;
mod mcs_properties;
mod memory;
mod placement;
mod placement_access;
mod placement_autoscale;
mod placement_parts;
mod placement_properties;
mod properties;
mod restart;
mod spoiled;
mod statuses;

use std::sync::Arc;

use atoll_engine::check::check;
use atoll_engine::engine::{Engine, Outcome};
use atoll_engine::names::ClusterId;
use atoll_engine::plan::{Import, ImportPlan, Plan, Slice, SlicesFrom};
use atoll_engine::time::Time;

use fixture::{WEB, id, key};

const NOW: Time = Time::from_secs(1000);

/// Plans `web`, and sees that no rule is broken.
fn plan_at(engine: &mut Engine, now: Time) -> Outcome {
    let outcome = engine.plan(&key(WEB), now);
    assert_eq!(check(engine.world(), &outcome.plan), []);
    outcome
}

fn plan(engine: &mut Engine) -> Arc<Plan> {
    plan_at(engine, NOW).plan
}

fn import<'a>(plan: &'a Plan, importer: &str) -> (&'a Import, &'a litemap::LiteMap<ClusterId, SlicesFrom>) {
    match &plan.clusters[&id(importer)].import {
        ImportPlan::Present { import, slices } => (import, slices),
        other => panic!("{importer}: {other:?}"),
    }
}

fn slices<'a>(plan: &'a Plan, importer: &str, source: &str) -> &'a [Arc<Slice>] {
    match &import(plan, importer).1[&id(source)] {
        SlicesFrom::Exactly(slices, _) => slices,
        other => panic!("{importer} from {source}: {other:?}"),
    }
}

/// The addresses that an importer gets, from all sources that list any.
fn addresses(plan: &Plan, importer: &str) -> Vec<String> {
    let lists = import(plan, importer).1.values().filter_map(|from| match from {
        SlicesFrom::Exactly(slices, _) => Some(slices),
        SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_) => None,
    });
    let endpoints = lists.flat_map(|list| list.iter()).flat_map(|slice| &slice.endpoints);
    endpoints.flat_map(|endpoint| &endpoint.addresses).map(ToString::to_string).collect()
}
