//! Names that we take over from Karmada, against its Go sources.

use atoll_api::names::{annotation, condition, event, finalizer, kind, label, managed_by, reason, secret};

use crate::karmada::release;
use crate::published;

#[test]
fn names_are_as_published() {
    let Some(module) = release() else { return };
    for (file, names) in [
        (
            "pkg/util/constants.go",
            &[
                ("ResourceTemplateClaimedByLabel", label::CLAIMED_BY),
                ("EndpointSliceDispatchControllerLabelValue", managed_by::KARMADA_DISPATCH),
                ("EndpointSliceControllerLabelValue", managed_by::KARMADA_IMPORT),
                ("EndpointSliceProvisionClusterAnnotation", annotation::PROVISION_CLUSTER),
                ("ClusterControllerFinalizer", finalizer::CLUSTER),
                ("MCSControllerFinalizer", finalizer::MULTI_CLUSTER_SERVICE),
            ][..],
        ),
        (
            "pkg/events/events.go",
            &[
                ("EventReasonSyncDerivedServiceSucceed", event::import::SYNC_DERIVED_SERVICE_SUCCEED),
                ("EventReasonSyncDerivedServiceFailed", event::import::SYNC_DERIVED_SERVICE_FAILED),
                ("EventReasonSyncServiceSucceed", event::multi_cluster_service::SYNC_SERVICE_SUCCEED),
                ("EventReasonSyncServiceFailed", event::multi_cluster_service::SYNC_SERVICE_FAILED),
                ("EventReasonDispatchEndpointSliceSucceed", event::multi_cluster_service::DISPATCH_SUCCEED),
                ("EventReasonDispatchEndpointSliceFailed", event::multi_cluster_service::DISPATCH_FAILED),
                ("EventReasonClusterNotFound", event::multi_cluster_service::CLUSTER_NOT_FOUND),
                ("EventReasonAPIIncompatible", event::multi_cluster_service::API_INCOMPATIBLE),
            ],
        ),
        (
            "pkg/apis/cluster/v1alpha1/types.go",
            &[
                ("ResourceKindCluster", kind::cluster::CLUSTER),
                ("ResourcePluralCluster", kind::cluster::CLUSTERS),
                ("ClusterConditionReady", condition::cluster::READY),
                ("ClusterConditionCompleteAPIEnablements", condition::cluster::COMPLETE_API_ENABLEMENTS),
                ("SecretTokenKey", secret::TOKEN),
                ("SecretCADataKey", secret::CA_BUNDLE),
            ],
        ),
        (
            "pkg/controllers/status/cluster_status_controller.go",
            &[
                ("clusterReady", reason::cluster::READY),
                ("clusterNotReady", reason::cluster::NOT_READY),
                ("clusterNotReachableReason", reason::cluster::NOT_REACHABLE),
                ("statusCollectionFailed", reason::cluster::STATUS_COLLECTION_FAILED),
            ],
        ),
        (
            "pkg/apis/networking/v1alpha1/service_types.go",
            &[
                ("MCSServiceAppliedConditionType", condition::multi_cluster_service::SERVICE_APPLIED),
                ("EndpointSliceDispatched", condition::multi_cluster_service::DISPATCHED),
            ],
        ),
        (
            "pkg/apis/networking/v1alpha1/well_known_constants.go",
            &[("MultiClusterServicePermanentIDLabel", label::MCS_PERMANENT_ID)],
        ),
        (
            "pkg/apis/policy/v1alpha1/well_known_constants.go",
            &[("NamespaceSkipAutoPropagationLabel", label::SKIP_NAMESPACE)],
        ),
    ] {
        let source = published::read(&module, file);
        for (go, ours) in names {
            assert_eq!(published::go_constant(&source, go), Some(*ours), "{file}: {go}");
        }
    }
}

#[test]
fn reasons_stand_in_its_controllers() {
    let Some(module) = release() else { return };
    use reason::{cluster, multi_cluster_service as mcs};
    for (file, reason) in [
        ("multiclusterservice/mcs_controller.go", mcs::SERVICE_APPLIED_SUCCEED),
        ("multiclusterservice/mcs_controller.go", mcs::SERVICE_APPLIED_FAILED),
        ("multiclusterservice/endpointslice_dispatch_controller.go", mcs::DISPATCHED_SUCCEED),
        ("multiclusterservice/endpointslice_dispatch_controller.go", mcs::DISPATCHED_FAILED),
        ("cluster/cluster_controller.go", cluster::STATUS_UNKNOWN),
    ] {
        let source = published::read(&module, &format!("pkg/controllers/{file}"));
        assert!(source.contains(&format!("\"{reason}\"")), "{file}: {reason}");
    }
}
