//! What members hold, and what lies between two such moments, in the words of a prediction.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::explain::plan::{Change, PlanAnswer};
use serde_json::{Value, json};

use crate::world::World;

const OURS: &str = "atoll.dev/hub";

/// Cluster, kind, `namespace/name`.
type Key = (String, String, String);

/// All that the hub wrote into members, as far as it can be predicted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    objects: BTreeMap<Key, Value>,
    /// Conditions, by object and type.
    conditions: BTreeMap<(Key, String), String>,
    /// The clusters that an import names in its status, which is written after the rest of it.
    clusters: BTreeMap<Key, String>,
    /// Endpoints: cluster, service, source, address.
    endpoints: BTreeSet<[String; 4]>,
}

/// What is said to change.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Predicted(BTreeSet<String>);

impl Predicted {
    pub(super) fn of(answer: &PlanAnswer) -> Self {
        let mut lines = BTreeSet::new();
        for cluster in &answer.clusters {
            let at = &cluster.cluster;
            for one in &cluster.objects {
                lines.insert(format!(
                    "{} {at} {} {}/{}",
                    one.change.mark(),
                    one.kind,
                    one.namespace,
                    one.name
                ));
            }
            for one in cluster.objects.iter().filter(|one| one.kind == "ServiceImport") {
                let changed =
                    one.fields.iter().find(|one| one.field == "status.clusters").map(|one| &*one.after);
                let clusters =
                    one.why.strip_prefix("exported by ").filter(|_| one.change == Change::Add).or(changed);
                if let Some(clusters) = clusters {
                    let (namespace, name) = (&one.namespace, &one.name);
                    lines.insert(format!(
                        "= {at} ServiceImport {namespace}/{name} status.clusters: {clusters}"
                    ));
                }
            }
            for one in &cluster.endpoints {
                for (mark, list) in [('+', &one.added), ('-', &one.removed)] {
                    lines.extend(
                        list.iter().map(|ip| format!("{mark} {at} {} {} {ip}", one.service, one.source)),
                    );
                }
            }
            for one in &cluster.conditions {
                let after = one
                    .after
                    .as_ref()
                    .map(|after| format!("{} {} {}", after.status, after.reason, after.message));
                let name = format!("{at} {} {}/{} {}", one.kind, one.namespace, one.name, one.condition);
                lines.insert(format!("= {name}: {}", after.unwrap_or_default()));
            }
        }
        Self(lines)
    }

    pub(super) fn without<'a>(&'a self, other: &'a Self) -> Vec<&'a String> {
        self.0.difference(&other.0).collect()
    }
}

impl Seen {
    pub(super) async fn of(world: &World) -> anyhow::Result<Self> {
        let mut seen = Self {
            objects: BTreeMap::new(),
            conditions: BTreeMap::new(),
            clusters: BTreeMap::new(),
            endpoints: BTreeSet::new(),
        };
        for member in &world.members {
            for (kind, api) in [
                ("Service", "v1"),
                ("ServiceImport", "multicluster.x-k8s.io/v1beta1"),
                ("EndpointSlice", "discovery.k8s.io/v1"),
                ("ServiceExport", "multicluster.x-k8s.io/v1beta1"),
            ] {
                let labels = if kind == "ServiceExport" { "" } else { OURS };
                let what = json!({"apiVersion": api, "kind": kind, "metadata": {}});
                for object in member.list(&what, labels).await? {
                    seen.note(&member.name, kind, &serde_json::to_value(object)?);
                }
            }
        }
        Ok(seen)
    }

    fn note(&mut self, cluster: &str, kind: &str, object: &Value) {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = format!("{}/{}", text(&meta["namespace"]), text(&meta["name"]));
        let key = (cluster.to_owned(), kind.to_owned(), name);
        for condition in object["status"]["conditions"].as_array().into_iter().flatten() {
            let said = ["status", "reason", "message"].map(|field| text(&condition[field]));
            self.conditions.insert((key.clone(), text(&condition["type"])), said.join(" "));
        }
        if kind == "ServiceImport" && object["status"]["conditions"].is_null() {
            self.conditions.insert((key.clone(), "Ready".to_owned()), "on its way".to_owned());
        }
        let said = match kind {
            "Service" => json!([object["spec"], meta["labels"], meta["uid"]]),
            "ServiceImport" => {
                let all = object["status"]["clusters"].as_array().into_iter().flatten();
                let all: Vec<String> = all.map(|one| text(&one["cluster"])).collect();
                self.clusters.insert(key.clone(), all.join(", "));
                json!([object["spec"], meta["labels"], meta["annotations"], object["status"]["clusters"]])
            }
            "EndpointSlice" => {
                let [service, source] =
                    ["multicluster.kubernetes.io/service-name", "multicluster.kubernetes.io/source-cluster"]
                        .map(|label| text(&meta["labels"][label]));
                let service = format!("{}/{service}", text(&meta["namespace"]));
                for endpoint in object["endpoints"].as_array().into_iter().flatten() {
                    for address in endpoint["addresses"].as_array().into_iter().flatten() {
                        self.endpoints.insert([
                            cluster.to_owned(),
                            service.clone(),
                            source.clone(),
                            text(address),
                        ]);
                    }
                }
                json!([
                    object["ports"],
                    object["endpoints"],
                    meta["labels"],
                    meta["ownerReferences"][0]["uid"]
                ])
            }
            _ => json!(null), // an export is its user's
        };
        self.objects.insert(key, said);
    }

    pub(super) fn is_empty_in(&self, cluster: &str) -> bool {
        !self.objects.keys().any(|(at, kind, _)| at == cluster && kind != "ServiceExport")
    }

    /// Whether no write is left of several that belong together: slices are owned by the Services that are there, and imports have the
    /// addresses of these.
    pub(super) fn is_settled(&self) -> bool {
        let services: Vec<&Value> = self
            .objects
            .iter()
            .filter(|((_, kind, _), _)| kind == "Service")
            .map(|(_, said)| &said[2])
            .collect();
        let mut slices = self.objects.iter().filter(|((_, kind, _), _)| kind == "EndpointSlice");
        let owned = slices.all(|(_, said)| said[3].is_null() || services.contains(&&said[3]));
        let mut imports = self.objects.iter().filter(|((_, kind, _), _)| kind == "ServiceImport");
        owned
            && imports
                .all(|((at, ..), said)| said[0]["type"] == "Headless" || self.has_addresses(at, &said[0]))
    }

    fn has_addresses(&self, at: &str, import: &Value) -> bool {
        let of = |service: &Value| service["clusterIPs"].as_array().cloned().unwrap_or_default();
        let services =
            self.objects.iter().filter(|((cluster, kind, _), _)| cluster == at && kind == "Service");
        let all: Vec<Value> = services.flat_map(|(_, said)| of(&said[0])).collect();
        import["ips"].as_array().is_some_and(|ips| !ips.is_empty() && ips.iter().all(|ip| all.contains(ip)))
    }

    /// What has changed since an earlier moment.
    pub(super) fn since(&self, before: &Self) -> Predicted {
        let mut lines = BTreeSet::new();
        let keys: BTreeSet<&Key> = before.objects.keys().chain(self.objects.keys()).collect();
        for key in keys {
            let (at, kind, name) = key;
            let change = match (before.objects.get(key), self.objects.get(key)) {
                (None, Some(_)) => Change::Add,
                (Some(_), None) => Change::Remove,
                (Some(before), Some(after)) if before != after => Change::Change,
                _ => continue,
            };
            if kind != "ServiceExport" {
                lines.insert(format!("{} {at} {kind} {name}", change.mark()));
            }
        }
        for (mark, ours, theirs) in [('+', self, before), ('-', before, self)] {
            for [at, service, source, ip] in ours.endpoints.difference(&theirs.endpoints) {
                lines.insert(format!("{mark} {at} {service} {source} {ip}"));
            }
        }
        for (key, clusters) in &self.clusters {
            if before.clusters.get(key) != Some(clusters) {
                lines.insert(format!("= {} {} {} status.clusters: {clusters}", key.0, key.1, key.2));
            }
        }
        for ((key, condition), said) in &self.conditions {
            let new = !before.objects.contains_key(key);
            // Of an import that comes only what is wrong is said.
            if new && key.1 == "ServiceImport" && said.starts_with("True") {
                continue;
            }
            if before.conditions.get(&(key.clone(), condition.clone())) != Some(said) {
                let (at, kind, name) = key;
                lines.insert(format!("= {at} {kind} {name} {condition}: {said}"));
            }
        }
        for (key, condition) in before.conditions.keys() {
            let gone = !self.conditions.contains_key(&(key.clone(), condition.clone()));
            if gone && self.objects.contains_key(key) {
                let (at, kind, name) = key;
                lines.insert(format!("= {at} {kind} {name} {condition}: "));
            }
        }
        Predicted(lines)
    }
}
