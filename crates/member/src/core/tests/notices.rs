//! What people are told, once per change.

use atoll_engine::facts::Contact;
use atoll_engine::time::Time;
use atoll_engine::world::Change;

use super::cluster::{Cluster, IMPORT};

#[test]
fn a_stale_source_is_told_once_and_so_is_its_return() {
    let mut cluster = Cluster::imported();
    assert!(cluster.told.is_empty(), "an import that is ready needs no event: {:?}", cluster.told);
    let since = Time(1_767_225_600_000);
    cluster.fact("a", Change::Contact(Contact::Lost { since }));
    cluster.assign();
    cluster.settle();
    let ready = |cluster: &Cluster| cluster.api[IMPORT].status.as_ref().unwrap().conditions[0].clone();
    let stale = ready(&cluster);
    assert_eq!((stale.status, stale.reason.as_str()), (Some(true), "SourcesStale"));
    assert!(
        stale.message.starts_with("Imported from a (stale since 2026-01-01 00:00 UTC)."),
        "{}",
        stale.message
    );
    let reasons = |cluster: &Cluster| cluster.told.iter().map(|told| told.reason).collect::<Vec<_>>();
    assert_eq!(reasons(&cluster), ["SourcesStale"]);
    // An endpoint of the lost cluster changes nothing of it, and neither does a second look.
    cluster.log.clear();
    cluster.slice_at_source("10.0.0.9");
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.log.len(), 1, "a slice change costs no status: {:?}", cluster.log);
    cluster.fact("a", Change::Contact(Contact::Alive));
    cluster.assign();
    cluster.settle();
    let back = ready(&cluster);
    assert_eq!(
        (back.status, back.reason.as_str(), back.message.as_str()),
        (Some(true), "Ready", "Imported from a.")
    );
    assert_eq!(reasons(&cluster), ["SourcesStale", "ImportChanged"]);
}
