//! Groups, versions, kinds and plurals of the APIs we serve or install.
//!
//! Read by whoever builds a URL, an RBAC rule or a manifest; the CRD tests hold the derived types to them.

/// The Multi-Cluster Services API (KEP-1645): CoreDNS, gateways and service meshes read it in every member.
pub mod mcs {
    /// The group of [`SERVICE_EXPORT`] and [`SERVICE_IMPORT`].
    pub const GROUP: &str = "multicluster.x-k8s.io";
    /// Served for CoreDNS, which watches this version. Same schema as [`V1BETA1`].
    pub const V1ALPHA1: &str = "v1alpha1";
    /// The stored version, and the one that we read and write.
    pub const V1BETA1: &str = "v1beta1";
    /// A user's wish to have the Service of the same name in all clusters.
    pub const SERVICE_EXPORT: &str = "ServiceExport";
    /// Plural of [`SERVICE_EXPORT`].
    pub const SERVICE_EXPORTS: &str = "serviceexports";
    /// What an importing cluster knows of a service of the clusterset.
    pub const SERVICE_IMPORT: &str = "ServiceImport";
    /// Plural of [`SERVICE_IMPORT`].
    pub const SERVICE_IMPORTS: &str = "serviceimports";
}

/// The About API (KEP-2149): any multi-cluster tool in a member reads its cluster's name there.
pub mod about {
    /// The group of [`CLUSTER_PROPERTY`]; protected, so its CRD carries [`super::super::annotation::API_APPROVED`].
    pub const GROUP: &str = "about.k8s.io";
    /// Served for older readers. Same schema as [`V1BETA1`].
    pub const V1ALPHA1: &str = "v1alpha1";
    /// The stored version, and the one that we read and write.
    pub const V1BETA1: &str = "v1beta1";
    /// One fact about a cluster; see [`super::super::property`] for those that we write.
    pub const CLUSTER_PROPERTY: &str = "ClusterProperty";
    /// Plural of [`CLUSTER_PROPERTY`].
    pub const CLUSTER_PROPERTIES: &str = "clusterproperties";
    /// The category of [`CLUSTER_PROPERTY`]: `kubectl get multicluster` reads it.
    pub const CATEGORY: &str = "multicluster";
}

/// Karmada's membership API, in the hub: `kubectl get clusters` and users' manifests read it.
pub mod cluster {
    /// The group of [`CLUSTER`].
    pub const GROUP: &str = "cluster.karmada.io";
    /// The only version.
    pub const V1ALPHA1: &str = "v1alpha1";
    /// A member of the clusterset.
    pub const CLUSTER: &str = "Cluster";
    /// Plural of [`CLUSTER`].
    pub const CLUSTERS: &str = "clusters";
}

/// Karmada's services over clusters, in the hub: users' manifests and `kubectl get mcs` read them.
pub mod networking {
    /// The group of [`MULTI_CLUSTER_SERVICE`].
    pub const GROUP: &str = "networking.karmada.io";
    /// The only version.
    pub const V1ALPHA1: &str = "v1alpha1";
    /// A Service that some clusters provide and others use.
    pub const MULTI_CLUSTER_SERVICE: &str = "MultiClusterService";
    /// Plural of [`MULTI_CLUSTER_SERVICE`].
    pub const MULTI_CLUSTER_SERVICES: &str = "multiclusterservices";
    /// Reached by its own name in other clusters: a value of `spec.types`.
    pub const CROSS_CLUSTER: &str = "CrossCluster";
    /// Reached from outside: a value of `spec.types`.
    pub const LOAD_BALANCER: &str = "LoadBalancer";
}

/// Our own kinds, in the hub.
pub mod own {
    /// The group of [`SHARING_POLICY`].
    pub const GROUP: &str = "atoll.dev";
    /// The only version.
    pub const V1ALPHA1: &str = "v1alpha1";
    /// Which clusters share the services of which namespaces.
    pub const SHARING_POLICY: &str = "SharingPolicy";
    /// Plural of [`SHARING_POLICY`].
    pub const SHARING_POLICIES: &str = "sharingpolicies";
}

/// Karmada's policies, in the hub: users' manifests and `kubectl get pp` read them.
pub mod policy {
    /// The group of all four.
    pub const GROUP: &str = "policy.karmada.io";
    /// The only version.
    pub const V1ALPHA1: &str = "v1alpha1";
    /// Where objects of one namespace go.
    pub const PROPAGATION_POLICY: &str = "PropagationPolicy";
    /// Plural of [`PROPAGATION_POLICY`].
    pub const PROPAGATION_POLICIES: &str = "propagationpolicies";
    /// Where objects of any namespace, or of none, go.
    pub const CLUSTER_PROPAGATION_POLICY: &str = "ClusterPropagationPolicy";
    /// Plural of [`CLUSTER_PROPAGATION_POLICY`].
    pub const CLUSTER_PROPAGATION_POLICIES: &str = "clusterpropagationpolicies";
    /// How objects of one namespace differ from cluster to cluster.
    pub const OVERRIDE_POLICY: &str = "OverridePolicy";
    /// Plural of [`OVERRIDE_POLICY`].
    pub const OVERRIDE_POLICIES: &str = "overridepolicies";
    /// How objects of any namespace, or of none, differ from cluster to cluster.
    pub const CLUSTER_OVERRIDE_POLICY: &str = "ClusterOverridePolicy";
    /// Plural of [`CLUSTER_OVERRIDE_POLICY`].
    pub const CLUSTER_OVERRIDE_POLICIES: &str = "clusteroverridepolicies";
}

/// The kinds whose objects act with their author's rights, by group and plural: they say who wrote them
/// ([`super::annotation::AUTHOR`]). Read by whoever stamps them.
pub const STAMPED: [(&str, &str); 5] = [
    (policy::GROUP, policy::PROPAGATION_POLICIES),
    (policy::GROUP, policy::CLUSTER_PROPAGATION_POLICIES),
    (policy::GROUP, policy::OVERRIDE_POLICIES),
    (policy::GROUP, policy::CLUSTER_OVERRIDE_POLICIES),
    (networking::GROUP, networking::MULTI_CLUSTER_SERVICES),
];

/// Karmada's bindings, in the hub: `kubectl get rb` and users' scripts read them.
pub mod work {
    /// The group of both.
    pub const GROUP: &str = "work.karmada.io";
    /// The version that Karmada stores.
    pub const V1ALPHA2: &str = "v1alpha2";
    /// Where one object of a namespace was brought, and what became of it.
    pub const RESOURCE_BINDING: &str = "ResourceBinding";
    /// Plural of [`RESOURCE_BINDING`].
    pub const RESOURCE_BINDINGS: &str = "resourcebindings";
    /// The same for an object of no namespace.
    pub const CLUSTER_RESOURCE_BINDING: &str = "ClusterResourceBinding";
    /// Plural of [`CLUSTER_RESOURCE_BINDING`].
    pub const CLUSTER_RESOURCE_BINDINGS: &str = "clusterresourcebindings";
}

/// What the hub explains. These kinds are not stored: the leader answers from its own state.
pub mod explain {
    /// The API group.
    pub const GROUP: &str = "explain.atoll.dev";
    /// The version.
    pub const VERSION: &str = "v1alpha1";
    /// Why a service is as it is; in namespaces, by the service's name.
    pub const SERVICES: &str = "services";
    /// Whose an address is; by the address.
    pub const ADDRESSES: &str = "addresses";
    /// How the clusterset is; there is one, [`CLUSTERSET`].
    pub const CLUSTERSETS: &str = "clustersets";
    /// The name of the one clusterset.
    pub const CLUSTERSET: &str = "this";
    /// What would change; made by `create`, answered at once, and not stored.
    pub const PLANS: &str = "plans";
    /// The kind of an answer about a service.
    pub const SERVICE_EXPLANATION: &str = "ServiceExplanation";
    /// The kind of a list of services.
    pub const SERVICE_EXPLANATION_LIST: &str = "ServiceExplanationList";
    /// The kind of an answer about an address.
    pub const ADDRESS_EXPLANATION: &str = "AddressExplanation";
    /// The kind of an answer about the clusterset.
    pub const CLUSTERSET_STATUS: &str = "ClusterSetStatus";
    /// The kind of a plan.
    pub const PLAN: &str = "Plan";
}
