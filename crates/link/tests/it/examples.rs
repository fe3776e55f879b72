//! An example of every message. Who adds one has to add an example: the matches have no wildcard.

use std::sync::Arc;
use std::time::Duration;

use atoll_engine::engine::Engine;
use atoll_engine::names::Uid;
use atoll_engine::network::{Networks, Nodes, Ranges};
use atoll_engine::placement::object::{Kind as AnyKind, ObjectKey};
use atoll_engine::placement::policy::ConflictResolution;
use atoll_engine::plan::{ClusterPlan, Touched};
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use atoll_link::{
    Access, Assignment, Called, CopyReport, CopyState, Dispatched, Down, Field, Health, Identity, Kind,
    Lease, ObjectName, Order, Problem, PropertyName, Up, Verb, WhyNot, Written,
};
use serde_json::json;

use crate::fixture::{
    WEB, capabilities, export, id, key, member, namespace, service, slice, slice_name, tell,
};

/// What a cluster that imports, and one that exports as well, should hold.
pub(crate) fn parts() -> Vec<Arc<ClusterPlan>> {
    let mut engine = Engine::default();
    let paris = member("paris").exports("http:80=kubernetes.io/h2c", 1).serves(
        "web-1",
        "http:8080",
        &["10.1.0.1", "127.0.0.1"],
    );
    let rome = member("rome").exports("http:81", 2).serves("web-2", "http:8080", &["fd01::1"]);
    tell(&mut engine, &[paris.heard(), rome.heard(), member("tokyo").heard(), member("lima")]);
    let plan = engine.plan(&key(WEB), Time(0)).plan;
    plan.clusters.values().cloned().collect()
}

pub(crate) fn identity() -> Identity {
    Identity { cluster: id("paris"), hub: "8c0f6a2e-hub".into(), clusterset: "atolls.example".into() }
}

fn settings() -> ObjectKey {
    ObjectKey {
        kind: AnyKind::new("v1", "ConfigMap"),
        namespace: "shop".to_owned(),
        name: "settings".to_owned(),
    }
}

pub(crate) fn downs() -> Vec<Down> {
    let template = Arc::new(json!({ "kind": "ConfigMap", "data": { "a": "1" } }));
    let order = |order| Down::Order { key: settings(), order };
    let mut all = vec![
        Down::Identify,
        Down::Start(identity()),
        Down::Lease(Lease::Held(Duration::from_millis(7500))),
        Down::Lease(Lease::Revoked),
        order(Order::Hold { object: Arc::clone(&template), conflict: ConflictResolution::Overwrite }),
        order(Order::Ensure(template)),
        order(Order::Observe),
        order(Order::Suspend),
        order(Order::Drop),
        order(Order::Release),
        Down::Look,
        Down::Clean { identity: identity(), kinds: [AnyKind::new("apps/v1", "Deployment")].into() },
        Down::GiveBack(identity()),
        Down::Stop,
    ];
    for part in parts().into_iter().map(Some).chain([None]) {
        for touched in [
            Touched::Nothing,
            Touched::Everything,
            Touched::Slices([(id("paris"), slice_name("web-1"))].into()),
        ] {
            all.push(Down::Assign(Assignment {
                service: key(WEB),
                part: part.clone(),
                touched,
                answer: Some(9),
            }));
        }
    }
    all
}

pub(crate) fn ups() -> Vec<Up> {
    let object = ObjectName { kind: Kind::Slice, namespace: Some(namespace("shop")), name: "web-1".into() };
    let why = || "because".to_owned();
    let mut all = vec![
        Up::Holds(key(WEB)),
        Up::Alive,
        Up::Unreachable { silent_for: Duration::from_secs(3), why: why() },
        Up::Wrote(Written {
            service: key(WEB),
            kind: Kind::Slice,
            verb: Verb::Update,
            slice: Some((id("paris"), slice_name("web-1"))),
        }),
        Up::Dispatched(Dispatched {
            service: key(WEB),
            answers: 9,
            slices: 2,
            pending: true,
            problems: vec![why()],
        }),
        Up::Identity {
            uid: Some(Uid::parse("3f2a").unwrap()),
            called: Some(Called { hub: "8c0f6a2e-hub".to_owned(), cluster: id("paris") }),
        },
        Up::Identity { uid: None, called: None },
        Up::Cleaned,
        Up::GaveBack,
        Up::NotCleaned { why: why() },
        Up::Stopped,
    ];
    all.extend(changes().into_iter().map(Up::Change));
    all.extend(
        [
            Problem::Forbidden { verb: Access::ListAndWatch, kind: Kind::Node, why: why() },
            Problem::KindAbsent(Kind::Export),
            Problem::Foreign { service: key(WEB), object: object.clone() },
            Problem::Refused { object: object.clone(), why: why() },
            Problem::Unrepresentable { object, field: Field::Port, why: why() },
            Problem::OtherProperty { name: PropertyName::Clusterset, theirs: why(), ours: why() },
        ]
        .map(Up::Problem),
    );
    all.extend(
        [
            CopyState::Applied { status: json!({ "replicas": 2 }), healthy: Some(true) },
            CopyState::NotApplied(WhyNot::Forbidden {
                verb: Access::Create,
                resource: "deployments.apps".to_owned(),
                cluster: "paris".to_owned(),
            }),
            CopyState::NotApplied(WhyNot::Foreign),
            CopyState::Gone,
        ]
        .map(|state| Up::Copy(CopyReport { key: settings(), state })),
    );
    all.extend(
        [
            Health::Ready { version: "v1.36.0".to_owned() },
            Health::NotReady { why: why() },
            Health::NotReachable { why: why() },
            Health::NoVersion { why: why() },
        ]
        .map(Up::Health),
    );
    all
}

fn changes() -> Vec<Change> {
    let range = "10.1.0.0/16".parse().unwrap();
    let declared = Ranges { pods: vec![range], ..Ranges::default() };
    let networks = Networks { declared, ..Networks::default() };
    let nodes = Nodes { addresses: ["192.168.0.4".parse().unwrap()].into(), pods: [range].into() };
    vec![
        Change::Heard(capabilities()),
        Change::Networks(Box::new(networks)),
        Change::Nodes(nodes),
        Change::Namespace(namespace("shop"), Some(atoll_engine::facts::NamespaceState::Active)),
        Change::Namespace(namespace("shop"), None),
        Change::Service(key(WEB), Some(service(&[("http", 80)]))),
        Change::Export(key(WEB), Some(export(1))),
        Change::Slice(key(WEB), slice_name("web-1"), Some(slice("http:8080/sctp", &["10.1.0.1"]).into())),
        Change::Taken(key(WEB), true),
        Change::Followed(key(WEB), false),
    ]
}

/// The kind of a message, by hand.
pub(crate) fn kind_of_down(down: &Down) -> &'static str {
    match down {
        Down::Identify => "Identify",
        Down::Start(_) => "Start",
        Down::Lease(_) => "Lease",
        Down::Assign(_) => "Assign",
        Down::Order { .. } => "Order",
        Down::Look => "Look",
        Down::Clean { .. } => "Clean",
        Down::GiveBack(_) => "GiveBack",
        Down::Stop => "Stop",
    }
}

/// The kind of a message, by hand.
pub(crate) fn kind_of_up(up: &Up) -> &'static str {
    match up {
        Up::Change(_) => "Change",
        Up::Holds(_) => "Holds",
        Up::Alive => "Alive",
        Up::Unreachable { .. } => "Unreachable",
        Up::Wrote(_) => "Wrote",
        Up::Dispatched(_) => "Dispatched",
        Up::Problem(_) => "Problem",
        Up::Copy(_) => "Copy",
        Up::Health(_) => "Health",
        Up::Identity { .. } => "Identity",
        Up::Cleaned => "Cleaned",
        Up::GaveBack => "GaveBack",
        Up::NotCleaned { .. } => "NotCleaned",
        Up::Stopped => "Stopped",
    }
}
