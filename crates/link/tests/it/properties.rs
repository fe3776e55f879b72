//! Whatever is said of a clusterset, and whatever is planned for it, survives its encoding.

use atoll_engine::engine::Engine;
use atoll_engine::facts::{ExportFact, Liveness, Locality, ServiceFact};
use atoll_engine::plan::Touched;
use atoll_engine::time::Time;
use atoll_link::{Assignment, Down, Up};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::fixture::{Member, WEB, export, key, member, ports, service, tell};
use crate::through;

const PORTS: [&str; 5] = ["", "http:80", "http:81 grpc:90=kubernetes.io/h2c", "dns:53/udp", ":8080"];

fn any_member(name: &'static str) -> impl Strategy<Value = Member> {
    let addresses = subsequence(vec!["10.0.0.1", "10.0.0.2", "127.0.0.1", "169.254.169.254"], 0..4);
    let exports = of((select(PORTS.to_vec()), any::<bool>(), 0..4_i64, of(Just(())), any::<bool>()));
    (exports, addresses, any::<bool>()).prop_map(move |(exports, addresses, heard)| {
        let mut member = member(name);
        if let Some((text, headless, created, policy, labelled)) = exports {
            let fact = ServiceFact { ports: ports(text), headless, ..service(&[]) };
            let labels = if labelled {
                vec![("team", "a"), ("k8s.io/x", "b"), ("not a key", "c")]
            } else {
                Vec::new()
            };
            let export = ExportFact {
                labels: labels.into_iter().map(|(key, value)| (key.into(), value.into())).collect(),
                liveness: policy.map(|()| Liveness::Withdraw),
                locality: policy.map(|()| Locality::LocalFirst),
                ..export(created)
            };
            member = member.exports_as(fact, export).serves("x", "http:8080 other:1", &addresses);
        }
        if heard { member.heard() } else { member }
    })
}

proptest! {
    #[test]
    fn facts_and_plans_arrive_as_they_were_sent(
        members in (any_member("paris"), any_member("rome"), any_member("tokyo")),
    ) {
        let members = [members.0, members.1, members.2];
        for change in members.iter().flat_map(|member| &member.changes) {
            prop_assert_eq!(through(Up::Change(change.clone())), Up::Change(change.clone()));
        }
        let mut engine = Engine::default();
        tell(&mut engine, &members);
        let outcome = engine.plan(&key(WEB), Time(0));
        for part in outcome.plan.clusters.values() {
            for touched in [outcome.touched.clone(), Touched::Everything] {
                let (service, part) = (key(WEB), Some(part.clone()));
                let down = Down::Assign(Assignment { service, part, touched, answer: None });
                prop_assert_eq!(through(down.clone()), down);
            }
        }
    }
}
