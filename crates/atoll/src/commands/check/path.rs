//! The data path: from a pod of one cluster to a service of the clusterset, by address, by cluster IP and by name.
//!
//! ```text
//!   gather (objects) ─▶ facts ─┬─▶ probe::Plan ─▶ job (a pod for a few seconds) ─▶ probe::Results ─┐
//!                              └────────────────────────▶ diagnose ◀──────────────────────────────┘
//! ```

pub(super) mod diagnose;
pub(super) mod facts;
mod gather;
mod job;
pub(super) mod policy;
pub(super) mod probe;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use atoll_api::names::code::Code;

use super::dns;
use super::report::{Check, Finding, Group};
use super::ways::Way;
use facts::{Dns, Facts, Probes};
use probe::{Plan, Results};

/// No more Jobs than this in one run.
const JOBS: usize = 16;
/// No more services in one Job.
const SERVICES: usize = 20;

/// What is probed.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    /// Namespace and name.
    pub(super) services: BTreeSet<(String, String)>,
    /// The client clusters; all that are looked at if empty.
    pub(super) from: Vec<String>,
    pub(super) image: String,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) checks: Vec<Check>,
    pub(super) needs: BTreeSet<String>,
}

/// One service, seen from one cluster, and where its probes are in the plan of its Job.
struct Case {
    facts: Facts,
    ports: Vec<u16>,
    others: Vec<facts::Endpoint>,
}

/// Diagnoses each service from each client cluster. `names` is how their DNS stands.
pub(super) async fn check(ways: &[Way], names: &BTreeMap<String, Dns>, wish: &Wish) -> Found {
    let mut found = Found::default();
    let clients: Vec<&Way> =
        ways.iter().filter(|way| wish.from.is_empty() || wish.from.contains(&way.name)).collect();
    let services: Vec<&(String, String)> = wish.services.iter().collect();
    let each = services.iter().map(async |(namespace, name)| gather::sources(ways, namespace, name).await);
    let sources = futures_util::future::join_all(each).await;
    // One Job for each client cluster and namespace.
    let mut jobs: BTreeMap<(usize, &str), Vec<Case>> = BTreeMap::new();
    for ((namespace, name), of) in services.iter().zip(&sources) {
        found.needs.extend(of.needs.iter().cloned());
        let each = clients.iter().map(async |way| {
            let mut needs = BTreeSet::new();
            let dns = names.get(&way.name).cloned();
            let dns = match dns {
                Some(dns) => dns,
                None => dns::look(way).await,
            };
            let facts = gather::facts(way, dns, namespace, name, of.sources.clone(), &mut needs).await;
            (facts, needs)
        });
        for (i, (facts, needs)) in futures_util::future::join_all(each).await.into_iter().enumerate() {
            found.needs.extend(needs);
            match facts {
                Ok((facts, ports)) => {
                    let case = Case { facts, ports, others: of.others.clone() };
                    jobs.entry((i, namespace.as_str())).or_default().push(case);
                }
                Err(why) => {
                    let skipped = Finding::skipped(format!("not looked into: {why}")).of(&clients[i].name);
                    found.checks.push(data_path(
                        &clients[i].name,
                        &format!("{namespace}/{name}"),
                        vec![skipped],
                    ));
                }
            }
        }
    }
    let left_out = jobs.len().saturating_sub(JOBS);
    let runs = jobs
        .into_iter()
        .take(JOBS)
        .map(async |((client, namespace), cases)| run(clients[client], namespace, cases, &wish.image).await);
    for (checks, needs) in futures_util::future::join_all(runs).await {
        found.checks.extend(checks);
        found.needs.extend(needs);
    }
    if left_out > 0 {
        let text = format!(
            "{left_out} pairs of a namespace and a client cluster are left out; name one with --service and --from"
        );
        found.checks.push(Check::new(
            Group::DataPath,
            "data-path",
            "all services are probed",
            vec![Finding::skipped(text)],
        ));
    }
    found
}

fn data_path(client: &str, service: &str, findings: Vec<Finding>) -> Check {
    Check::new(Group::DataPath, "data-path", format!("pods of {client} reach {service}"), findings)
}

/// Probes the services of one namespace from one cluster.
async fn run(
    way: &Way,
    namespace: &str,
    mut cases: Vec<Case>,
    image: &str,
) -> (Vec<Check>, BTreeSet<String>) {
    let mut needs = BTreeSet::new();
    let mut checks = Vec::new();
    if cases.len() > SERVICES {
        for case in cases.split_off(SERVICES) {
            let skipped =
                Finding::skipped("left out: too many services in the namespace; name it with --service");
            checks.push(data_path(&case.facts.client, &case.facts.service, vec![skipped]));
        }
    }
    // What objects alone explain needs no pod.
    let (probed, plain): (Vec<Case>, Vec<Case>) =
        cases.into_iter().partition(|case| !case.facts.endpoints.is_empty());
    for case in plain {
        let found = diagnose::of_objects(&case.facts);
        checks.push(data_path(&case.facts.client, &case.facts.service, found));
    }
    if probed.is_empty() {
        return (checks, needs);
    }
    let (plan, places) = together(&probed);
    let name = job::name();
    needs.insert(format!("{} in `{namespace}` of {}", job::NEEDS, way.name));
    let outcome = match way.any() {
        Ok(client) => job::run(client, namespace, &name, image, &plan.script()).await,
        Err(why) => Err(job::NoOutput::Failed(why.to_owned())),
    };
    let results = match outcome {
        Ok(output) => match plan.read(&output.text) {
            Some(results) => Ok((results, output.from)),
            None => {
                let last: String = output.text.lines().last().unwrap_or_default().chars().take(200).collect();
                Err(Finding::warned(Code::ProbeFailed, format!("the probe's pod ended early: {last}")))
            }
        },
        Err(job::NoOutput::Failed(why)) => Err(Finding::warned(Code::ProbeFailed, why)),
        Err(job::NoOutput::Interrupted) => Err(Finding::warned(Code::ProbeFailed, "interrupted")),
        Err(job::NoOutput::Forbidden(why)) => {
            Err(Finding::skipped(format!("needs: {} in `{namespace}`: {why}", job::NEEDS)))
        }
    };
    for (case, place) in probed.iter().zip(&places) {
        let found = match &results {
            Ok((results, from)) => {
                let probes =
                    Probes { from: from.clone(), labels: job::labels(&name), ..place.probes(results) };
                diagnose::diagnose(&case.facts, &probes)
            }
            Err(why) => {
                let mut found = diagnose::of_objects(&case.facts);
                found.push(why.clone().of(&case.facts.client).about(&case.facts.service));
                found
            }
        };
        checks.push(data_path(&case.facts.client, &case.facts.service, found));
    }
    (checks, needs)
}

/// Where the probes of a case are in a plan.
struct Place {
    endpoints: Vec<(facts::Endpoint, usize)>,
    service: Vec<(SocketAddr, usize)>,
    others: Vec<(facts::Endpoint, usize)>,
    name: usize,
    own_name: usize,
}

/// One plan for all cases; no address is probed twice.
fn together(cases: &[Case]) -> (Plan, Vec<Place>) {
    let mut plan =
        Plan { connects: Vec::new(), names: vec!["kubernetes.default.svc.cluster.local".to_owned()] };
    let mut known: BTreeMap<SocketAddr, usize> = BTreeMap::new();
    let mut connect = |plan: &mut Plan, to: SocketAddr, payload: bool| {
        *known.entry(to).or_insert_with(|| {
            plan.connects.push((to, payload));
            plan.connects.len() - 1
        })
    };
    let places = cases
        .iter()
        .map(|case| {
            let endpoints = case.facts.endpoints.iter();
            let endpoints = endpoints.map(|one| (one.clone(), connect(&mut plan, one.to, true))).collect();
            let service = case
                .facts
                .addresses
                .iter()
                .flat_map(|ip| case.ports.iter().map(|port| SocketAddr::new(*ip, *port)));
            let service = service.map(|to| (to, connect(&mut plan, to, true))).collect();
            // Only those of clusters that give this service endpoints.
            let clusters = case.facts.clusters();
            let others = case.others.iter().filter(|one| clusters.contains(one.cluster.as_str()));
            let others = others.map(|one| (one.clone(), connect(&mut plan, one.to, false))).collect();
            let (namespace, name) = case.facts.service.split_once('/').unwrap_or_default();
            plan.names.push(format!("{name}.{namespace}.svc.{}", dns::ZONE));
            Place { endpoints, service, others, name: plan.names.len() - 1, own_name: 0 }
        })
        .collect();
    (plan, places)
}

impl Place {
    fn probes(&self, results: &Results) -> Probes {
        let reach = |at: usize| {
            results.connects.get(at).cloned().unwrap_or(probe::Reach::Unknown("no result".to_owned()))
        };
        Probes {
            endpoints: self.endpoints.iter().map(|(one, at)| (one.clone(), reach(*at))).collect(),
            service: self.service.iter().map(|(one, at)| (*one, reach(*at))).collect(),
            others: self.others.iter().map(|(one, at)| (one.clone(), reach(*at))).collect(),
            name: results.names.get(self.name).cloned(),
            own_name: results.names.get(self.own_name).cloned(),
            ..Probes::default()
        }
    }
}
