//! Annotation keys, and the values that are fixed.

/// On a ServiceImport: the name of its derived Service. Not standard, but gateways and other tools read it.
pub const DERIVED_SERVICE: &str = "multicluster.kubernetes.io/derived-service";
/// On a slice that a `MultiClusterService` dispatched: the cluster it came from. Karmada's users read it.
pub const PROVISION_CLUSTER: &str = "endpointslice.karmada.io/provision-cluster";
/// On a CRD of a protected group. The API server refuses the CRD without it.
pub const API_APPROVED: &str = "api-approved.kubernetes.io";

/// On a ServiceImport in a member: since when which cluster's endpoints are stale. The member's half of the hub writes it;
/// operators read it. (A `MultiClusterService` has `status.clusters[].staleSince` instead.)
pub const STALE_SINCE: &str = "atoll.dev/stale-since";
/// On a ServiceExport or a `MultiClusterService`: how strongly clients are kept to endpoints of their own cluster; one of
/// [`locality`]. Users set it; the engine reads it.
pub const LOCALITY: &str = "atoll.dev/locality";
/// On a ServiceExport or a `MultiClusterService`: what happens to endpoints of a lost cluster; one of [`liveness`].
/// Users set it; the engine reads it.
pub const LIVENESS: &str = "atoll.dev/liveness";
/// On a `MultiClusterService`: with the value `true` hostnames cross, so that `web-0.web.ns.svc` answers from every cluster that has
/// one. Users set it; the engine reads it.
pub const HOSTNAMES: &str = "atoll.dev/hostnames";
/// On a Namespace in the hub: which clusters import its services; one of [`import`]. Users set it; the engine reads it.
pub const IMPORT: &str = "atoll.dev/import";

/// On a `Cluster` that is being deleted: the member holds nothing of ours any more. The hub writes it before it gives its
/// rights there back, and reads it when it has to try again.
pub const CLEANED: &str = "atoll.dev/cleaned";

/// On a `Cluster`, with the value `true`: the member's API is asked what authors of policies may do there. The join writes it; the hub
/// reads it.
pub const CHECK_AUTHORS: &str = "atoll.dev/check-authors";

/// On a copy of a hub's template in a member: it was there before, and stays when the template goes.
pub const ADOPTED: &str = "atoll.dev/adopted";
/// On a binding in the hub: the clusters that may hold a copy, with commas in between. The hub writes it before it orders a copy, and
/// takes a cluster off it when the copy is gone.
pub const HOLDERS: &str = "atoll.dev/holders";

/// On a binding in the hub: what shows that the hub wrote it, a MAC over what the hub acts upon. Our own code reads it; a binding
/// without a right one is not believed.
pub const SEAL: &str = "atoll.dev/seal";
/// On a policy, an override policy or a `MultiClusterService` in the hub: who wrote its spec, as JSON (`username`, `uid`, `groups`,
/// `extra`). The API server writes it: the embedded one by itself, another by an admission policy that the hub installs. On a
/// binding: who wrote the policy that decided it. Our own code reads it; users do too.
pub const AUTHOR: &str = "atoll.dev/author";

/// On the hubs' Lease: which process of an identity holds it. Our own code reads it.
pub const INCARNATION: &str = "atoll.dev/incarnation";

/// On an object of several clusters' lists, in `atoll get -o json`: the cluster that it is of. Karmada's users know it.
pub const FROM_CLUSTER: &str = "resource.karmada.io/cached-from-cluster";

/// On a `MultiClusterService` of type `LoadBalancer`: users set them; the hub reads them, and passes all to the provider.
pub mod balancing {
    /// What each cluster gets, as in `paris=3,tokyo=1`.
    pub const WEIGHTS: &str = "atoll.dev/weights";
    /// Which clusters are used first, as in `paris=0,tokyo=1`: a higher tier only when no lower one has a healthy backend.
    pub const TIERS: &str = "atoll.dev/tiers";
    /// The addresses that are wanted of the pool, with commas in between. Of the built-in balancer.
    pub const ADDRESSES: &str = "atoll.dev/lb-addresses";
    /// `Maglev` or `LeastConnections`. Of the built-in balancer.
    pub const ALGORITHM: &str = "atoll.dev/lb-algorithm";
    /// The value of [`ALGORITHM`] that keeps a client's connections to one backend as far as it can; the default.
    pub const MAGLEV: &str = "Maglev";
    /// The value of [`ALGORITHM`] that sends a connection to the backend with the fewest.
    pub const LEAST_CONNECTIONS: &str = "LeastConnections";
    /// With the value `true` backends are told who the client is, by the PROXY protocol. Of the built-in balancer.
    pub const PROXY_PROTOCOL: &str = "atoll.dev/lb-proxy-protocol";
    /// On a `ConfigMap` of the built-in balancer: the uid of the `MultiClusterService` that it is for. Our own code reads it.
    pub const OWNER: &str = "atoll.dev/lb-owner";
    /// The namespaces and services of other namespaces that may share this service's addresses, as in `billing,search/web`. It counts
    /// only where each side names the other. Of the built-in balancer.
    pub const SHARE_WITH: &str = "atoll.dev/lb-share-with";
    /// On a `ConfigMap` of the built-in balancer: the place of the service among those that have each of its addresses, as in
    /// `192.0.2.1=1`. The lowest came first. Our own code reads it.
    pub const TURNS: &str = "atoll.dev/lb-turns";
}

/// The values of [`LIVENESS`].
pub mod liveness {
    /// Keep the endpoints and mark them stale.
    pub const RETAIN: &str = "Retain";
    /// Drop them when the cluster's lease ends.
    pub const WITHDRAW: &str = "Withdraw";
    /// Drop those that also fail the probe, but never the last ones of a service.
    pub const PROBE: &str = "Probe";
}

/// The values of [`LOCALITY`]. Each can be written in two ways.
pub mod locality {
    /// Endpoints of all clusters; the default.
    pub const ANYWHERE: [&str; 2] = ["anywhere", "Anywhere"];
    /// Endpoints of other clusters only while there is none here that is ready.
    pub const LOCAL_FIRST: [&str; 2] = ["local-first", "LocalFirst"];
}

/// The values of [`IMPORT`].
pub mod import {
    /// Every cluster that has the namespace imports; the default, and what KEP-1645 says.
    pub const AUTO: &str = "auto";
    /// Only the clusters that a ServiceImport of the hub is propagated to.
    pub const EXPLICIT: &str = "explicit";
}

/// On a `Cluster`: its networks, as CIDR ranges with commas in between. `join` writes them; the hub and later joins read
/// them.
///
/// They count on the member's Secret in the hub's namespace, and only there: whoever may write a `Cluster` may not thereby say whose an
/// address is. On the `Cluster` they show what was read or declared at join.
pub mod network {
    /// On the Secret: the annotations below on it count. `join` and the hub write it; without it the hub copies those of the `Cluster`
    /// to the Secret, once.
    pub const BOUND: &str = "atoll.dev/networks-bound";
    /// The pod networks, by the operator's word: endpoints outside of them and the nodes stay behind.
    pub const PODS: &str = "atoll.dev/pod-cidrs";
    /// The networks of the nodes, by the operator's word: also of nodes that are yet to come.
    pub const NODES: &str = "atoll.dev/node-cidrs";
    /// The service networks, by the operator's word.
    pub const SERVICES: &str = "atoll.dev/service-cidrs";
    /// Ranges of loopback addresses whose endpoints pass.
    pub const ENDPOINTS: &str = "atoll.dev/endpoint-cidrs";
    /// The pod networks as they were read off the member at join: pinned, with [`OBSERVED_NODES`] beside it.
    pub const OBSERVED_PODS: &str = "atoll.dev/observed-pod-cidrs";
    /// The service networks as the member's API gave them at join.
    pub const OBSERVED_SERVICES: &str = "atoll.dev/observed-service-cidrs";
    /// The addresses of the nodes as they were at join. Where it stands, even empty, what was observed is pinned: it binds the member.
    pub const OBSERVED_NODES: &str = "atoll.dev/observed-node-cidrs";
    /// The pod networks as the nodes gave them when the hub first heard a member that joined without the above. The hub writes it once.
    pub const LEARNT_PODS: &str = "atoll.dev/learnt-pod-cidrs";
    /// The addresses of the nodes at that moment. The hub writes it once.
    pub const LEARNT_NODES: &str = "atoll.dev/learnt-node-cidrs";
}

/// On a binding in the hub: the policy that has its object. Karmada's tools read them.
pub mod policy {
    /// The namespace of a `PropagationPolicy`.
    pub const NAMESPACE: &str = "propagationpolicy.karmada.io/namespace";
    /// The name of a `PropagationPolicy`.
    pub const NAME: &str = "propagationpolicy.karmada.io/name";
    /// The name of a `ClusterPropagationPolicy`.
    pub const CLUSTER_NAME: &str = "clusterpropagationpolicy.karmada.io/name";
}

/// On an event of the audit log.
pub mod audit {
    /// The member that was written into.
    pub const CLUSTER: &str = crate::names::label::CLUSTER;
    /// Why: what the plan says of the object.
    pub const REASON: &str = "atoll.dev/reason";
    /// How many events before this one are missing.
    pub const MISSING: &str = "atoll.dev/missing-events";
}
