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
        facts::compare(&facts::of_crd(&ours), &facts::of_crd(&theirs), &[]);
        assert_eq!(
            ours["metadata"]["labels"], theirs["metadata"]["labels"],
            "{plural}: release and revision"
        );
    }
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
