//! `MultiClusterService`, against the CRD and the webhook of Karmada's own release.

use atoll_api::crds::{self, rules};
use serde_json::Value;

use crate::karmada::release;
use crate::{facts, published};

#[test]
fn the_crd_is_as_published_but_for_rules_limits_and_what_we_show() {
    let Some(module) = release() else { return };
    let file = "charts/karmada/_crds/bases/networking/networking.karmada.io_multiclusterservices.yaml";
    let theirs: Value = serde_saphyr::from_str(&published::read(&module, file)).unwrap();
    let ours = serde_json::to_value(crds::multi_cluster_service()).unwrap();
    let (ours, theirs) = (facts::of_crd(&ours), facts::of_crd(&theirs));
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert!(missing.is_empty(), "lacks {missing:#?}");
    let shown = ["status.clusters", "status.providers", "status.consumers", "status.endpoints"];
    let wanted = |fact: &&String| {
        let fact = fact.trim_start_matches("v1alpha1");
        fact.starts_with(": column")
            || shown.iter().any(|field| fact.trim_start().starts_with(field))
            // A real API server takes no rule whose cost has no bound.
            || [": x-kubernetes-validations = ", ": maxItems = ", ": maxLength = "].iter().any(|key| fact.contains(key))
    };
    let unwanted: Vec<_> = ours.difference(&theirs).filter(|fact| !wanted(fact)).collect();
    assert!(unwanted.is_empty(), "{unwanted:#?}");
}

#[test]
fn every_rule_has_found_its_place() {
    let crd = serde_json::to_string(&crds::multi_cluster_service()).unwrap();
    for rule in rules::MULTI_CLUSTER_SERVICE {
        let text = serde_json::to_string(rule.rule).unwrap();
        assert!(crd.contains(&text), "{} {}", rule.at, rule.rule);
    }
    let installed = crd.matches("\"rule\":").count();
    assert_eq!(installed, rules::MULTI_CLUSTER_SERVICE.len());
}

#[test]
fn the_words_are_those_of_its_webhook() {
    let Some(module) = release() else { return };
    let source =
        ["pkg/webhook/multiclusterservice/validating.go", "pkg/apis/cluster/validation/validation.go"]
            .map(|file| published::read(&module, file))
            .join("\n");
    let said = |words: &str| {
        assert!(source.contains(&format!("\"{words}\"")), "Karmada does not say {words:?}");
        assert!(
            rules::MULTI_CLUSTER_SERVICE.iter().any(|rule| rule.message == words),
            "we do not say {words:?}"
        );
    };
    said("MultiClusterService types are immutable");
    said("MultiClusterService types should not contain more than one type");
    said("must be not empty");
    assert!(source.contains("msg := \"ExposureType Error\""));
    assert!(source.contains("must be no more than %d characters"));
}
