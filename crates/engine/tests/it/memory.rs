//! What is written down.

use atoll_engine::memory::{MemoryUpdate, ServiceMemory};
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{NOW, plan_at};

#[test]
fn an_export_is_written_down_once_and_endpoints_never() {
    let paris = member("paris").exports("http:80", 1).serves("web-1", "http:80", &["10.1.0.1"]).heard();
    let mut engine = engine(&[paris]);
    let Some(MemoryUpdate::Put(_, memory)) = plan_at(&mut engine, NOW).memory else { panic!() };
    let json = serde_json::to_string(&memory).unwrap();
    assert_eq!(
        json,
        r#"{"incumbent":{"cluster":"paris","uid":"uid-1"},"exports":{"paris":{"uid":"uid-1","created":1000,"first_seen":1000000,"credited":1000,"offer":{"headless":false,"ports":[{"name":"http","protocol":"Tcp","port":80}],"families":["V4"],"session_affinity":"None","internal_traffic_policy":"Cluster"}}}}"#
    );
    assert_eq!(serde_json::from_str::<ServiceMemory>(&json).unwrap(), memory);
    let _ = engine.apply(&id("paris"), Change::Slice(key(WEB), slice_name("web-1"), None));
    assert_eq!(plan_at(&mut engine, NOW).memory, None);
    let _ = engine.apply(&id("paris"), Change::Export(key(WEB), None));
    assert_eq!(plan_at(&mut engine, NOW).memory, Some(MemoryUpdate::Forget(key(WEB))));
}

#[test]
fn memory_with_a_name_that_is_none_is_refused() {
    let bad = r#"{"incumbent":{"cluster":"Paris!","uid":"u"}}"#;
    assert!(serde_json::from_str::<ServiceMemory>(bad).is_err());
}
