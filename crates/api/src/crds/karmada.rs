//! Karmada's policies and bindings: its schemas from their outlines, with what we do not honour refused.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{outline, refusals};
use crate::names::kind::{policy, work};
use crate::revision;

const PROPAGATION_POLICY: &str = include_str!("../../facts/propagation_policy.outline");
const OVERRIDE_POLICY: &str = include_str!("../../facts/override_policy.outline");
const RESOURCE_BINDING: &str = include_str!("../../facts/resource_binding.outline");

/// A kind, apart from its schema.
struct Kind {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short: &'static str,
    namespaced: bool,
    columns: &'static [(&'static str, &'static str, &'static str)],
    subresources: Option<&'static str>,
    description: &'static str,
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

pub(super) fn propagation_policy(namespaced: bool) -> Option<CustomResourceDefinition> {
    let (kind, plural, short) = if namespaced {
        (policy::PROPAGATION_POLICY, policy::PROPAGATION_POLICIES, "pp")
    } else {
        (policy::CLUSTER_PROPAGATION_POLICY, policy::CLUSTER_PROPAGATION_POLICIES, "cpp")
    };
    let kind = Kind {
        group: policy::GROUP,
        version: policy::V1ALPHA1,
        kind,
        plural,
        short,
        namespaced,
        columns: POLICY_COLUMNS,
        subresources: Some("{}"),
        description: "Says to which members the objects that it selects are brought.",
    };
    let mut schema = outline::read(PROPAGATION_POLICY);
    refusals::install(&mut schema, refusals::PROPAGATION).then(|| crd(&kind, schema))?
}

pub(super) fn override_policy(namespaced: bool) -> Option<CustomResourceDefinition> {
    let (kind, plural, short) = if namespaced {
        (policy::OVERRIDE_POLICY, policy::OVERRIDE_POLICIES, "op")
    } else {
        (policy::CLUSTER_OVERRIDE_POLICY, policy::CLUSTER_OVERRIDE_POLICIES, "cop")
    };
    let kind = Kind {
        group: policy::GROUP,
        version: policy::V1ALPHA1,
        kind,
        plural,
        short,
        namespaced,
        columns: &[],
        subresources: None,
        description: "Says how objects differ from cluster to cluster.",
    };
    let mut schema = outline::read(OVERRIDE_POLICY);
    refusals::install(&mut schema, refusals::OVERRIDE).then(|| crd(&kind, schema))?
}

pub(super) fn resource_binding(namespaced: bool) -> Option<CustomResourceDefinition> {
    let (kind, plural, short) = if namespaced {
        (work::RESOURCE_BINDING, work::RESOURCE_BINDINGS, "rb")
    } else {
        (work::CLUSTER_RESOURCE_BINDING, work::CLUSTER_RESOURCE_BINDINGS, "crb")
    };
    let kind = Kind {
        group: work::GROUP,
        version: work::V1ALPHA2,
        kind,
        plural,
        short,
        namespaced,
        columns: BINDING_COLUMNS,
        subresources: Some(r#"{"status": {}}"#),
        description: "Which members an object is brought to, and what became of it in each. Written by the hub only.",
    };
    crd(&kind, outline::read(RESOURCE_BINDING))
}

fn crd(kind: &Kind, mut schema: Value) -> Option<CustomResourceDefinition> {
    schema["description"] = kind.description.into();
    for (name, of) in [("apiVersion", "string"), ("kind", "string"), ("metadata", "object")] {
        schema["properties"][name] = json!({ "type": of });
    }
    let columns =
        kind.columns.iter().map(|(name, of, path)| json!({ "name": name, "type": of, "jsonPath": path }));
    let mut version = json!({
        "name": kind.version,
        "served": true,
        "storage": true,
        "schema": { "openAPIV3Schema": schema },
    });
    if !kind.columns.is_empty() {
        version["additionalPrinterColumns"] = columns.collect();
    }
    if let Some(subresources) = kind.subresources {
        version["subresources"] = serde_json::from_str(subresources).ok()?;
    }
    let crd = json!({
        "metadata": { "name": format!("{}.{}", kind.plural, kind.group), "labels": revision::OWN.labels() },
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.kind,
                "listKind": format!("{}List", kind.kind),
                "plural": kind.plural,
                "singular": kind.kind.to_lowercase(),
                "shortNames": [kind.short],
                "categories": ["karmada-io"],
            },
            "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
            "versions": [version],
        },
    });
    serde_json::from_value(crd).ok()
}
