//! Values of [`super::label::MANAGED_BY`]: who writes an EndpointSlice.

/// Ours, on the slices of imported services. It alone does not make a slice ours: see [`super::label::HUB`].
pub const ATOLL: &str = "endpointslice-controller.atoll.dev";
/// Ours, on the slice that says where the leader answers questions. It is no slice of an imported service.
pub const EXPLAIN: &str = "explain-controller.atoll.dev";
/// On slices that a `MultiClusterService` dispatched: Karmada's own value, since its users select by it.
pub const KARMADA_DISPATCH: &str = "endpointslice-dispatch-controller.karmada.io";
/// On Karmada's `imported-…` slices.
pub const KARMADA_IMPORT: &str = "endpointslice-controller.karmada.io";
/// On the slices that Cilium's Cluster Mesh writes.
pub const CILIUM: &str = "endpointslice-mesh-controller.cilium.io";

/// Does a multi-cluster controller, ours included, write the slices with this value? They are never facts about the
/// cluster they are in: taken for facts, exports would loop.
///
/// A slice with [`super::label::SOURCE_CLUSTER`] is one too, whatever its value here.
pub fn is_multicluster(value: &str) -> bool {
    [ATOLL, KARMADA_DISPATCH, KARMADA_IMPORT, CILIUM].contains(&value)
}
