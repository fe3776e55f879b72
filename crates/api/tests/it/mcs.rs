//! ServiceExport and ServiceImport, against the CRDs and Go constants of the MCS API's own release.

use atoll_api::names::{condition, kind, label, reason};
use atoll_api::{crds, revision};
use serde_json::Value;

use crate::{facts, published};

fn release() -> String {
    format!("sigs.k8s.io/mcs-api@{}", revision::MCS.release)
}

#[test]
fn mcs_crds_are_as_published() {
    let Some(module) = published::module(&release()) else { return };
    for (plural, ours) in [
        (kind::mcs::SERVICE_EXPORTS, crds::service_export()),
        (kind::mcs::SERVICE_IMPORTS, crds::service_import()),
    ] {
        let file = format!("config/crd/{}_{plural}.yaml", kind::mcs::GROUP);
        let theirs: Value = serde_saphyr::from_str(&published::read(&module, &file)).unwrap();
        let ours = serde_json::to_value(ours).unwrap();
        let differences = columns(plural);
        let differences: Vec<(&str, &str)> =
            differences.iter().map(|fact| (fact.as_str(), "what kubectl shows says what happens")).collect();
        facts::compare(&facts::of_crd(&ours), &facts::of_crd(&theirs), &differences);
        assert_eq!(
            ours["metadata"]["labels"], theirs["metadata"]["labels"],
            "{plural}: release and revision"
        );
    }
}

/// Where ours differ: more columns for `kubectl get`. The schema is as published.
fn columns(plural: &str) -> Vec<String> {
    let ready = |field: &str| format!(".status.conditions[?(@.type==\"Ready\")].{field}");
    let conflict = ".status.conditions[?(@.type==\"Conflict\")].status".to_owned();
    let age = ("Age", ".metadata.creationTimestamp".to_owned());
    let message = ("Message", ready("message"));
    let (from, was, now) = if plural == kind::mcs::SERVICE_EXPORTS {
        let ours = [
            ("Ready", ready("status")),
            ("Conflict", conflict),
            ("Reason", ready("reason")),
            age.clone(),
            message,
        ];
        (0, age, ours)
    } else {
        let sources = ("Sources", ".status.clusters[*].cluster".to_owned());
        (2, age.clone(), [("Ready", ready("status")), ("Reason", ready("reason")), sources, age, message])
    };
    let fact = |sign: char, version: &str, place: usize, (name, path): &(&str, String)| {
        let mut column = serde_json::json!({
            "jsonPath": path, "name": name, "type": if *name == "Age" { "date" } else { "string" },
        });
        if *name == "Message" {
            column["priority"] = 1.into();
        }
        format!("{sign} {version}: column {place} = {column}")
    };
    let mut facts = Vec::new();
    for version in [kind::mcs::V1ALPHA1, kind::mcs::V1BETA1] {
        facts.push(fact('-', version, from, &was));
        facts.extend(now.iter().enumerate().map(|(at, column)| fact('+', version, from + at, column)));
    }
    facts
}

#[test]
fn mcs_names_are_as_published() {
    let Some(module) = published::module(&release()) else { return };
    let source: String =
        ["serviceexport.go", "serviceimport.go", "well_known_labels.go", "zz_generated.register.go"]
            .map(|file| published::read(&module, &format!("pkg/apis/v1beta1/{file}")))
            .join("\n");
    for (go, ours) in [
        ("GroupName", kind::mcs::GROUP),
        ("ServiceExportKindName", kind::mcs::SERVICE_EXPORT),
        ("ServiceExportPluralName", kind::mcs::SERVICE_EXPORTS),
        ("ServiceImportKindName", kind::mcs::SERVICE_IMPORT),
        ("ServiceImportPluralName", kind::mcs::SERVICE_IMPORTS),
        ("LabelServiceName", label::MCS_SERVICE_NAME),
        ("LabelSourceCluster", label::SOURCE_CLUSTER),
        ("ServiceExportConditionValid", condition::export::VALID),
        ("ServiceExportConditionReady", condition::export::READY),
        ("ServiceExportConditionConflict", condition::export::CONFLICT),
        ("ServiceExportReasonValid", reason::export::VALID),
        ("ServiceExportReasonNoService", reason::export::NO_SERVICE),
        ("ServiceExportReasonInvalidServiceType", reason::export::INVALID_SERVICE_TYPE),
        ("ServiceExportReasonExported", reason::export::EXPORTED),
        ("ServiceExportReasonReady", reason::export::READY),
        ("ServiceExportReasonPending", reason::export::PENDING),
        ("ServiceExportReasonFailed", reason::export::FAILED),
        ("ServiceExportReasonNoConflicts", reason::export::NO_CONFLICTS),
        ("ServiceExportReasonPortConflict", reason::export::PORT_CONFLICT),
        ("ServiceExportReasonTypeConflict", reason::export::TYPE_CONFLICT),
        ("ServiceExportReasonSessionAffinityConflict", reason::export::SESSION_AFFINITY_CONFLICT),
        (
            "ServiceExportReasonSessionAffinityConfigConflict",
            reason::export::SESSION_AFFINITY_CONFIG_CONFLICT,
        ),
        ("ServiceExportReasonLabelsConflict", reason::export::LABELS_CONFLICT),
        ("ServiceExportReasonAnnotationsConflict", reason::export::ANNOTATIONS_CONFLICT),
        (
            "ServiceExportReasonInternalTrafficPolicyConflict",
            reason::export::INTERNAL_TRAFFIC_POLICY_CONFLICT,
        ),
        ("ServiceExportReasonTrafficDistributionConflict", reason::export::TRAFFIC_DISTRIBUTION_CONFLICT),
        ("ServiceExportReasonIPFamilyConflict", reason::export::IP_FAMILY_CONFLICT),
        ("ServiceImportConditionReady", condition::import::READY),
        ("ServiceImportReasonReady", reason::import::READY),
        ("ServiceImportReasonPending", reason::import::PENDING),
        ("ServiceImportReasonIPFamilyNotSupported", reason::import::IP_FAMILY_NOT_SUPPORTED),
    ] {
        assert_eq!(published::go_constant(&source, go), Some(ours), "{go}");
    }
}
