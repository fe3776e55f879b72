//! Karmada's policies and bindings: its schemas from their outlines, with what we do not honour refused.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{outline, refusals};
use crate::names::kind::{policy, work};
use crate::revision;

const PROPAGATION_POLICY: &str = include_str!("../../facts/propagation_policy.outline");
const OVERRIDE_POLICY: &str = include_str!("../../facts/override_policy.outline");
const RESOURCE_BINDING: &str = include_str!("../../facts/resource_binding.outline");

/// Two kinds that differ in their scope, apart from their schema.
struct Pair {
    group: &'static str,
    version: &'static str,
    /// In a namespace.
    local: Names,
    /// In none.
    cluster_wide: Names,
    columns: &'static [(&'static str, &'static str, &'static str)],
    subresources: Option<&'static str>,
    description: &'static str,
}

/// What a kind is called.
struct Names {
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
}

const POLICY_COLUMNS: &[(&str, &str, &str)] = &[
    ("CONFLICT-RESOLUTION", "string", ".spec.conflictResolution"),
    ("PRIORITY", "string", ".spec.priority"),
    ("AGE", "date", ".metadata.creationTimestamp"),
];
const BINDING_COLUMNS: &[(&str, &str, &str)] = &[
    ("SCHEDULED", "string", r#".status.conditions[?(@.type=="Scheduled")].status"#),
    ("FULLYAPPLIED", "string", r#".status.conditions[?(@.type=="FullyApplied")].status"#),
    ("AGE", "date", ".metadata.creationTimestamp"),
];

const PROPAGATION_POLICIES: Pair = Pair {
    group: policy::GROUP,
    version: policy::V1ALPHA1,
    local: Names { kind: policy::PROPAGATION_POLICY, plural: policy::PROPAGATION_POLICIES, short: "pp" },
    cluster_wide: Names {
        kind: policy::CLUSTER_PROPAGATION_POLICY,
        plural: policy::CLUSTER_PROPAGATION_POLICIES,
        short: "cpp",
    },
    columns: POLICY_COLUMNS,
    subresources: Some("{}"),
    description: "Says to which members the objects that it selects are brought.",
};
const OVERRIDE_POLICIES: Pair = Pair {
    group: policy::GROUP,
    version: policy::V1ALPHA1,
    local: Names { kind: policy::OVERRIDE_POLICY, plural: policy::OVERRIDE_POLICIES, short: "op" },
    cluster_wide: Names {
        kind: policy::CLUSTER_OVERRIDE_POLICY,
        plural: policy::CLUSTER_OVERRIDE_POLICIES,
        short: "cop",
    },
    columns: &[],
    subresources: None,
    description: "Says how objects differ from cluster to cluster.",
};
const RESOURCE_BINDINGS: Pair = Pair {
    group: work::GROUP,
    version: work::V1ALPHA2,
    local: Names { kind: work::RESOURCE_BINDING, plural: work::RESOURCE_BINDINGS, short: "rb" },
    cluster_wide: Names {
        kind: work::CLUSTER_RESOURCE_BINDING,
        plural: work::CLUSTER_RESOURCE_BINDINGS,
        short: "crb",
    },
    columns: BINDING_COLUMNS,
    subresources: Some(r#"{"status": {}}"#),
    description: "Which members an object is brought to, and what became of it in each. Written by the hub only.",
};

pub(super) fn propagation_policy(namespaced: bool) -> Option<CustomResourceDefinition> {
    let mut schema = outline::read(PROPAGATION_POLICY);
    refusals::install(&mut schema, refusals::PROPAGATION)
        .then(|| crd(&PROPAGATION_POLICIES, namespaced, schema))?
}

pub(super) fn override_policy(namespaced: bool) -> Option<CustomResourceDefinition> {
    let mut schema = outline::read(OVERRIDE_POLICY);
    refusals::install(&mut schema, refusals::OVERRIDE).then(|| crd(&OVERRIDE_POLICIES, namespaced, schema))?
}

pub(super) fn resource_binding(namespaced: bool) -> Option<CustomResourceDefinition> {
    crd(&RESOURCE_BINDINGS, namespaced, outline::read(RESOURCE_BINDING))
}

fn crd(pair: &Pair, namespaced: bool, mut schema: Value) -> Option<CustomResourceDefinition> {
    let names = if namespaced { &pair.local } else { &pair.cluster_wide };
    schema["description"] = pair.description.into();
    for (name, of) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        schema["properties"][name] = json!({ "type": of });
    }
    let columns =
        pair.columns.iter().map(|(name, of, path)| json!({ "name": name, "type": of, "jsonPath": path }));
    let mut version = json!({
        "name": pair.version,
        "served": true,
        "storage": true,
        "schema": { "openAPIV3Schema": schema },
    });
    if !pair.columns.is_empty() {
        version["additionalPrinterColumns"] = columns.collect();
    }
    if let Some(subresources) = pair.subresources {
        version["subresources"] = serde_json::from_str(subresources).ok()?;
    }
    let crd = json!({
        "metadata": { "name": format!("{}.{}", names.plural, pair.group), "labels": revision::OWN.labels() },
        "spec": {
            "group": pair.group,
            "names": {
                "kind": names.kind,
                "listKind": format!("{}List", names.kind),
                "plural": names.plural,
                "singular": names.kind.to_lowercase(),
                "shortNames": [names.short],
                "categories": ["karmada-io"],
            },
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "versions": [version],
        },
    });
    serde_json::from_value(crd).ok()
}
