//! What stays when a cluster is lost.

use atoll_engine::explain::{Candidate, Explanation, explain};
use atoll_engine::facts::*;
use atoll_engine::plan::{SlicesFrom, StaleMark, WhyNothing};
use atoll_engine::reason::{Kept, Withdrawn};
use atoll_engine::time::Time;
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{addresses, import, plan};

const LOST: Time = Time::from_secs(900);

#[test]
fn a_lost_source_stays_or_goes_as_its_policy_says() {
    for (liveness, kept) in [
        (None, Some(Kept::PolicyRetains { since: LOST })),
        (Some(Liveness::Retain), Some(Kept::PolicyRetains { since: LOST })),
        (Some(Liveness::Probe), Some(Kept::NotProbed)),
        (Some(Liveness::Withdraw), None),
    ] {
        let exported = ExportFact { liveness, ..export(1) };
        let paris = member("paris").exports_as(service(&[("http", 80)]), exported);
        let paris = paris.serves("web-1", "http:80", &["10.1.0.1"]).heard();
        let mut engine = engine(&[paris, member("tokyo").exports("http:80", 2).heard()]);
        let before = plan(&mut engine);
        let _ = engine.apply(&id("paris"), Change::Contact(Contact::Lost { since: LOST }));
        let after = plan(&mut engine);
        let (tokyo, from) = import(&after, "tokyo");
        match kept {
            Some(kept) => {
                assert_eq!(addresses(&after, "tokyo"), addresses(&before, "tokyo"), "{liveness:?}");
                assert!(
                    matches!(from[&id("paris")], SlicesFrom::Exactly(_, why) if why == kept),
                    "{liveness:?}"
                );
                assert_eq!(tokyo.stale[&id("paris")], StaleMark::Since(LOST));
            }
            None => {
                let why = WhyNothing::Withdrawn(Withdrawn::LeaseEnded { at: LOST });
                assert_eq!(from[&id("paris")], SlicesFrom::Nothing(why));
                assert!(tokyo.stale.is_empty());
            }
        }
        // Nothing else changes: neither the import, nor what the lost cluster has at home.
        assert_eq!(tokyo.spec, import(&before, "tokyo").0.spec);
        assert_eq!(tokyo.clusters, import(&before, "tokyo").0.clusters);
        assert_eq!(addresses(&after, "paris"), ["10.1.0.1"]);
        assert!(import(&after, "paris").0.stale.is_empty());
        let _ = engine.apply(&id("paris"), Change::Contact(Contact::Alive));
        assert_eq!(plan(&mut engine), before);
    }
}

#[test]
fn a_cluster_that_leaves_takes_its_endpoints_along() {
    let paris = member("paris").exports("http:80", 1).serves("web-1", "http:80", &["10.1.0.1"]).heard();
    let mut engine = engine(&[paris, member("tokyo").exports("http:80", 2).heard()]);
    plan(&mut engine);
    let _ = engine.apply(&id("paris"), Change::Left);
    assert_eq!(engine.dirty().collect::<Vec<_>>(), [&key(WEB)]);
    let plan = plan(&mut engine);
    assert!(!plan.clusters.contains_key(&id("paris")));
    assert!(!import(&plan, "tokyo").1.contains_key(&id("paris")));
}

#[test]
fn every_endpoint_can_be_explained() {
    let paris = member("paris").exports("http:80", 1).serves("web-1", "http:80", &["10.1.0.1", "127.0.0.1"]);
    let mut engine = engine(&[paris.heard(), member("tokyo").heard()]);
    let Explanation::Imports(candidates) = explain(&plan(&mut engine), &id("tokyo")) else { panic!() };
    let [Candidate::In { address, why: Kept::Alive, .. }, Candidate::Refused { address: refused, .. }] =
        &candidates[..]
    else {
        panic!("{candidates:?}")
    };
    assert_eq!((address.to_string(), refused.to_string()), ("10.1.0.1".to_owned(), "127.0.0.1".to_owned()));
}
