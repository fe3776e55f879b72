//! Policies and bindings, against the CRDs of Karmada's own release: field by field, what is the same, refused or beyond.

use std::collections::BTreeSet;
use std::path::Path;

use atoll_api::crds::{self, refusals};
use serde_json::Value;

use crate::karmada::release;
use crate::{facts, published};

const BASES: &str = "charts/karmada/_crds/bases";

fn published_crd(module: &Path, name: &str) -> Value {
    let (plural, group) = name.split_once('.').expect("plural and group");
    let folder = group.split('.').next().expect("a group");
    let file = format!("{BASES}/{folder}/{group}_{plural}.yaml");
    serde_saphyr::from_str(&published::read(module, &file)).expect("a CRD")
}

/// The CRD with its stored version alone.
fn stored(mut crd: Value) -> Value {
    let versions = crd["spec"]["versions"].as_array_mut().expect("versions");
    versions.retain(|version| version["storage"] == true);
    crd
}

/// The outline of a schema, as `facts/` holds it.
fn outline(name: &str, schema: &Value, depth: usize, lines: &mut String) {
    lines.push_str(&" ".repeat(depth));
    lines.push_str(name);
    for (key, value) in schema.as_object().expect("a schema is an object") {
        let nested = ["description", "properties", "items"].contains(&key.as_str())
            || (key == "additionalProperties" && value.is_object());
        if !nested {
            lines.push_str(&format!("\t{key}={value}"));
        }
    }
    lines.push('\n');
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if depth > 0 || !["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
            outline(name, property, depth + 1, lines);
        }
    }
    for (name, key) in [("[]", "items"), ("{}", "additionalProperties")] {
        if schema[key].is_object() {
            outline(name, &schema[key], depth + 1, lines);
        }
    }
}

#[test]
fn outlines_are_those_of_the_release() {
    let Some(module) = release() else { return };
    for (name, file) in [
        ("propagationpolicies.policy.karmada.io", "propagation_policy"),
        ("overridepolicies.policy.karmada.io", "override_policy"),
        ("resourcebindings.work.karmada.io", "resource_binding"),
    ] {
        let crd = stored(published_crd(&module, name));
        let mut lines = String::new();
        outline("object", &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"], 0, &mut lines);
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("facts/{file}.outline"));
        if std::env::var_os("ATOLL_UPDATE_GOLDEN").is_some() {
            std::fs::write(&kept, &lines).unwrap();
        }
        assert!(
            std::fs::read_to_string(&kept).unwrap() == lines,
            "{file}: run again with ATOLL_UPDATE_GOLDEN=1"
        );
    }
}

#[test]
fn policies_differ_from_karmadas_in_what_is_refused_and_in_nothing_else() {
    let Some(module) = release() else { return };
    assert_eq!(crds::policies().count(), 6);
    for ours in crds::policies() {
        let ours = serde_json::to_value(ours).unwrap();
        let name = ours["metadata"]["name"].as_str().unwrap();
        let theirs = facts::of_crd(&stored(published_crd(&module, name)));
        let ours = facts::of_crd(&ours);
        let missing: Vec<_> = theirs.difference(&ours).collect();
        assert!(missing.is_empty(), "{name} lacks {missing:#?}");
        let added: Vec<_> = ours.difference(&theirs).collect();
        let rules: Vec<_> =
            added.iter().filter(|fact| fact.contains(": x-kubernetes-validations = ")).collect();
        assert_eq!(rules.len(), added.len(), "{name} has more than rules: {added:#?}");
        let refused = match name {
            _ if name.contains("propagationpolicies") => refusals::PROPAGATION,
            _ if name.contains("overridepolicies") => refusals::OVERRIDE,
            _ => &[],
        };
        let places: BTreeSet<_> = refused.iter().map(|refusal| refusal.at).collect();
        assert_eq!(rules.len(), places.len(), "{name}: {rules:#?}");
    }
}

#[test]
fn every_refusal_names_its_field() {
    for refusal in refusals::PROPAGATION.iter().chain(refusals::OVERRIDE) {
        let place = refusal.field.rsplit_once('.').unwrap();
        assert_eq!(place.0, refusal.at, "the rule stands where the field does");
        assert!(refusal.rule.contains(place.1), "{}", refusal.field);
        assert!(refusal.message().starts_with(refusal.field));
    }
}

/// The names of a schema's fields, down to where Kubernetes' own selectors begin.
fn fields(schema: &Value, found: &mut BTreeSet<String>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        found.insert(name.clone());
        if ![
            "labelSelector",
            "fieldSelector",
            "clusterTolerations",
            "failover",
            "workloadAffinity",
            "fieldOverrider",
        ]
        .contains(&name.as_str())
        {
            fields(property, found);
        }
    }
    if schema["items"].is_object() {
        fields(&schema["items"], found);
    }
}

#[test]
fn the_documentation_speaks_of_every_field() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/karmada.md");
    let text = std::fs::read_to_string(file).unwrap();
    let mut found = BTreeSet::new();
    for crd in crds::policies().take(2) {
        let crd = serde_json::to_value(crd).unwrap();
        fields(&crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"], &mut found);
    }
    // Words of overriders and weights that stand under a name that is there.
    let inside = [
        "component",
        "containerName",
        "operator",
        "path",
        "predicate",
        "value",
        "weight",
        "priorityClassName",
        "priorityClassSource",
    ];
    let missing: Vec<_> = found
        .iter()
        .filter(|name| !inside.contains(&name.as_str()))
        .filter(|name| !text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/karmada.md says nothing of {missing:?}");
}
