//! Reason codes of explanations: stable, each with what it means and what to do. `docs/reasons.md` is made of them.

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "types", derive(serde::Serialize, serde::Deserialize))]
pub enum Severity {
    /// As it should be, or as was asked for.
    Info,
    /// It works, and something is not as it should be.
    Warning,
    /// Something does not work.
    Error,
}

macro_rules! codes {
    ($($group:literal: [$($name:ident $severity:ident $meaning:literal $next:literal;)*])*) => {
        /// A reason code. Names do not change; new ones are added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "types", derive(serde::Serialize, serde::Deserialize))]
        pub enum Code {
            $($(#[allow(clippy::doc_markdown, reason = "prose for people")] #[doc = $meaning] $name,)*)*
        }

        impl Code {
            /// All of them, in the order of the document.
            pub const ALL: &[Self] = &[$($(Self::$name,)*)*];

            /// As it stands in JSON.
            pub fn as_str(self) -> &'static str {
                match self { $($(Self::$name => stringify!($name),)*)* }
            }

            /// What it is about: the heading in the document.
            pub fn group(self) -> &'static str {
                match self { $($(Self::$name => $group,)*)* }
            }

            /// How bad it is.
            pub fn severity(self) -> Severity {
                match self { $($(Self::$name => Severity::$severity,)*)* }
            }

            /// What it means.
            pub fn meaning(self) -> &'static str {
                match self { $($(Self::$name => $meaning,)*)* }
            }

            /// What to do; empty if nothing is wrong.
            pub fn next(self) -> &'static str {
                match self { $($(Self::$name => $next,)*)* }
            }
        }
    };
}

codes! {
    "Exports": [
    Exported Info "The service is exported, and other clusters get its endpoints." "";
    NotExported Error "No cluster exports the service." "Create a ServiceExport with the Service's name in its namespace, in a cluster that has the Service.";
    NoService Error "There is a ServiceExport or a MultiClusterService, and the cluster has no Service of this name." "Create the Service, or delete the ServiceExport. Check the spelling of both names.";
    ExternalName Error "A Service of type ExternalName has no endpoints, so it can't be shared." "Export a Service with a selector or with EndpointSlices of its own.";
    DerivedService Error "The Service was created by a multi-cluster controller; exporting it would cause a loop." "Export the original Service in its own cluster.";
    KubernetesApi Error "The Service default/kubernetes belongs to each cluster and is never shared." "Delete the ServiceExport or MultiClusterService.";
    SystemNamespace Error "System namespaces are not shared." "Ask the hub's operator for `atoll hub --allow-namespace`, or for a SharingPolicy that names the namespace.";
    DeniedNamespace Error "The hub's operator denies this namespace (`atoll hub --deny-namespace`)." "Ask the hub's operator, or use another namespace.";
    NotAllowed Error "No SharingPolicy for this namespace allows it for this cluster." "Ask the hub's operator for a SharingPolicy that allows this cluster.";
    LimitExceeded Error "A limit of the clusterset is exceeded; the message names it." "Make the export smaller, or ask the hub's operator for a larger quota.";
    KeyNotExported Warning "An exported label or annotation is not copied." "Use a key that Kubernetes accepts and that has no reserved prefix.";
    NoEndpoints Warning "The exported Service has no endpoints." "Check that spec.selector of the Service matches labels of running pods: `kubectl get endpointslices -l kubernetes.io/service-name=NAME`.";
    NoReadyEndpoints Warning "The exported Service has endpoints, and none of them is ready." "Check the readiness probes of its pods.";
    AllEndpointsRefused Error "Every endpoint of this cluster is refused." "See the reason of each address: `atoll explain SERVICE --all`.";
    EndpointsRefused Warning "Some endpoints of this cluster are refused." "See the reason of each address: `atoll explain SERVICE --all`.";
    ]

    "Conflicts between exports": [
    PortConflict Warning "The exports have different ports. The union is used; where ports clash, the export with precedence wins." "Make spec.ports the same in all exporting clusters.";
    TypeConflict Warning "Some exports are headless and others are not. The export with precedence decides." "Delete the Service in the clusters that disagree, and create it again with or without `clusterIP: None` as in the others: the field can't be changed.";
    SessionAffinityConflict Warning "The exports have different session affinities. The export with precedence decides." "Make spec.sessionAffinity the same in all exporting clusters.";
    SessionAffinityConfigConflict Warning "The exports have different timeouts of session affinity. The export with precedence decides." "Make spec.sessionAffinityConfig the same in all exporting clusters.";
    LabelsConflict Warning "The exports have different exported labels. The export with precedence decides." "Make spec.exportedLabels the same in all ServiceExports.";
    AnnotationsConflict Warning "The exports have different exported annotations. The export with precedence decides." "Make spec.exportedAnnotations the same in all ServiceExports.";
    InternalTrafficPolicyConflict Warning "The exports have different internal traffic policies. The export with precedence decides." "Make spec.internalTrafficPolicy the same in all exporting clusters.";
    TrafficDistributionConflict Warning "The exports have different traffic distributions. The export with precedence decides." "Make spec.trafficDistribution the same in all exporting clusters.";
    IPFamilyConflict Warning "The exports have no IP family in common. The export with precedence decides." "Give the Services of all exporting clusters a common IP family.";
    ]

    "Imports": [
    Imported Info "The service is imported." "";
    NoNamespace Error "The cluster does not have the namespace." "Create the namespace in that cluster. Creating it in the hub creates it in every member (unless `--namespace-sync=false`).";
    NamespaceTerminating Warning "The namespace is being deleted; nothing in it is changed." "Wait until the namespace is gone, then create it again.";
    NotAsked Info "The namespace is imported only into clusters that a ServiceImport of the hub is propagated to, and none goes here." "Create a ServiceImport in the hub, and a policy that propagates it to this cluster.";
    PlacementUnknown Info "The hub has a ServiceImport for the service, and its placement is not known yet. What is there stays." "";
    NothingKnown Info "Nothing is known of the service yet, since a cluster has not reported. What is there stays." "";
    IPFamilyNotSupported Error "The cluster supports none of the service's IP families." "Use a dual-stack Service, or make the cluster dual-stack.";
    DerivedServiceNamesTaken Error "The names that the derived Service could have belong to Services that Atoll does not manage." "Rename or delete one of these Services.";
    DerivedServiceRenamed Info "The plain name of the derived Service belongs to a Service that Atoll does not manage, so it has another name." "";
    NoSuchPort Error "A port that was asked for is not a port of the service." "List a port that the service has, or none for all.";
    LocalWithoutOwnEndpoints Warning "internalTrafficPolicy is Local, and the cluster has no endpoints of its own: its clients get no answer." "Use internalTrafficPolicy: Cluster in the exporting clusters.";
    FamiliesLeftOut Info "The cluster does not support all of the service's IP families." "";
    TrafficDistributionIgnored Info "The Kubernetes version of the cluster does not know the service's trafficDistribution." "";
    NothingToServe Warning "The service is imported, and no cluster gives it an endpoint." "See why each exporting cluster gives none, in the lines below.";
    ]

    "Sources and endpoints": [
    Used Info "The endpoint is used." "";
    NotReady Info "The endpoint is passed on as not ready; clients do not use it." "Check the readiness probe of its pod.";
    AddressRefused Error "The address may not be announced by this cluster; the detail says why." "Check the pod networks of the cluster: `atoll clusters -o wide`, `atoll join NAME --pod-cidr`.";
    KeptByPolicy Warning "The source is lost. Its endpoints are kept, since the liveness policy is Retain." "Check the cluster: `atoll clusters`. To remove endpoints of lost clusters, set the liveness policy of the export to Withdraw.";
    KeptWithoutProbe Warning "The source is lost. Its endpoints are kept, since no probe has failed." "Check the cluster: `atoll clusters`.";
    Withdrawn Warning "The source is lost, and its endpoints were removed, as the liveness policy says." "Check the cluster: `atoll clusters`.";
    LocalFirst Info "The cluster has ready endpoints of its own, and the service is local-first." "";
    NoDerivedService Info "There is no derived Service that endpoints could be attached to." "";
    NotHeard Warning "The cluster has not reported since the hub started. What others hold of it stays." "Check the cluster: `atoll clusters`.";
    PortRenamed Info "A port has the name that the export with precedence gives it." "";
    PortClash Warning "A port is not passed on: an export with precedence has another port of this name." "Give the port the same number and protocol in all exporting clusters, or another name.";
    PortNotOfService Info "A port of an EndpointSlice is not passed on: the Service has no port of this name." "";
    PortNotAsked Info "A port is not passed on: the MultiClusterService does not ask for it." "";
    ]

    "What is waited for": [
    Starting Info "The hub has just started, and waits for its members to report." "Ask again in a few seconds.";
    NotPlannedYet Info "A change is not planned yet." "Ask again in a second.";
    WaitsForHubApi Warning "The plan waits until the hub has written its memory to the hub's API." "If this lasts, check that the hub's API answers, and the log of the hub.";
    WaitsForMember Info "Writes into the member are under way." "";
    MemberReady Info "The API of the member answers and is healthy." "";
    MemberNotReady Error "The API of the member answers and is not healthy; the message has its words." "See `kubectl describe cluster NAME` in the hub.";
    MemberSilent Warning "The member does not answer at the moment. It counts as lost when its lease ends." "Check the cluster: `atoll clusters`.";
    MemberLost Error "The member is lost: no contact for the duration of a lease." "Check that the hub can reach the API of the cluster: `atoll check --cluster NAME`.";
    MemberBlocked Error "The hub does not use this member; the message says why." "See `kubectl describe cluster NAME` in the hub.";
    Forbidden Error "The hub lacks a right in the member." "Join the cluster again: `atoll join NAME`. It restores the hub's role.";
    KindMissing Error "The API of the member does not serve a kind that Atoll needs." "Install the CRDs: `atoll crds | kubectl --context NAME apply -f -`.";
    NotManaged Error "An object that Atoll should write exists and is not managed by Atoll. It is not changed." "Delete or rename that object.";
    Rejected Error "The API server of the member rejects what Atoll writes; the message has its words." "Look for admission webhooks and policies in the member that reject it.";
    NotCopied Warning "A part of an object can't be copied to other clusters." "See the message.";
    OtherClusterProperty Error "A ClusterProperty of the member contradicts its membership." "Delete the ClusterProperty, or unjoin the cluster.";
    ]

    "The clusterset as a whole": [
    Healthy Info "Nothing is wrong." "";
    ]

    "MultiClusterService": [
    Provides Info "The cluster provides the service." "";
    Consumes Info "The cluster gets the providers' endpoints." "";
    NotAConsumer Info "The cluster is no consumer of the MultiClusterService." "";
    NotAMember Error "A cluster that the MultiClusterService names is not a member." "Check the spelling: `atoll clusters` lists the members.";
    Balanced Info "A load balancer leads to the service." "";
    NoBackends Warning "The load balancer has no endpoint to lead to." "See the endpoints of each provider: `atoll explain SERVICE --all`.";
    ]

    "Policies": [
    Propagated Info "A policy propagates the object." "";
    NoPolicy Warning "No policy selects the object, so it goes to no member." "Create a PropagationPolicy that selects it, in its namespace.";
    PolicyBeaten Info "The policy selects the object, and another one has precedence." "";
    PolicyRefused Error "The policy does not count; the message says why." "See the message. Apply the policy again as a user who has the rights.";
    Chosen Info "The policy chooses the cluster." "";
    NotChosen Info "The policy does not choose the cluster." "";
    Unschedulable Error "No cluster fits the policy." "Check the placement of the policy, and labels, taints and health of the clusters.";
    Overridden Info "An OverridePolicy changes the copy." "";
    Copied Info "The copy is applied." "";
    CopyFailed Error "The copy could not be applied; the message has the member's words." "See the message.";
    CopyPending Info "The copy is not applied yet." "";
    ]

    "Addresses": [
    EndpointAddress Info "The address is that of an endpoint." "";
    OwnedByMember Info "The address is in a range of a member." "";
    OwnedByHub Info "The address is the hub's own." "";
    OwnedByPool Info "The address is in the pool of load balancers." "";
    AlwaysRefused Info "The address is of a kind that no cluster may announce." "";
    NotKnown Warning "No member is known to have this address." "Declare the networks of members: `atoll join NAME --pod-cidr`.";
    ]

    "Checks of the control plane": [
    NotChecked Info "A check was left out, since a right for it is missing; the message names it." "";
    HubUnreachable Error "The hub's API does not answer." "Check that the hub runs, and --kubeconfig and --context. The hub's API must be reachable from this host.";
    HubKindMissing Error "The hub's API does not serve a kind that Atoll needs." "Restart the hub: it installs its CRDs when it starts. Or: `atoll crds | kubectl apply -f -`.";
    CrdOutdated Warning "A CRD is of an older release." "Join the cluster again with this version of atoll, or: `atoll crds | kubectl --context NAME apply -f -`.";
    NoLeader Error "No hub holds the lease, or the lease is not renewed: nothing is planned or written." "Start the hub, and see its log.";
    ClockSkew Warning "A clock differs. Times in conditions mislead, and tokens may count as not yet valid or as expired." "Synchronize the clock of the host that is named, with NTP.";
    CredentialsEndSoon Warning "A token or certificate ends soon." "Check that the hub runs: it renews its tokens. Or join the cluster again: `atoll join NAME`. Renew certificates with the tool that made the cluster.";
    CredentialsEnded Error "A token or certificate is no longer valid." "Join the cluster again: `atoll join NAME`. Renew certificates with the tool that made the cluster.";
    MemberUnreachable Error "The API of the member does not answer from this host." "Check that its API server runs, and the network between this host and the member.";
    NetworksOverlap Error "Two members use the same addresses for pods or services, so packets go to the wrong cluster." "Give one of the clusters other networks. If a declared range is wrong, join the cluster again with --pod-cidr or --service-cidr.";
    VersionsDiffer Warning "This program and the hub are of different versions." "Use the same version of atoll for both.";
    DnsNotLed Error "CoreDNS of the cluster does not forward clusterset.local to `atoll dns`." "Run `atoll dns setup --apply` against the cluster.";
    DnsServerDown Error "CoreDNS forwards clusterset.local to `atoll dns`, and no server of it is ready." "See the pods of the Deployment atoll-dns: `kubectl -n atoll-system get pods`.";
    ]

    "Checks of the data path": [
    ImportMissing Error "The service is exported, and the cluster has no ServiceImport of it." "Check that the hub runs and that the member is ready. Then: `atoll explain SERVICE --in CLUSTER`.";
    SelectorEmpty Error "The Service has a selector that matches no pods." "Make spec.selector of the Service match the labels of its pods: `kubectl get pods --show-labels`.";
    TargetPortWrong Error "The Service leads to a port that its pods do not have." "Make targetPort of the Service a port of its containers.";
    PortClosed Error "The pod refuses connections to the port: no process listens there." "Check that the program in the pod listens on this port, and on the pod's address instead of 127.0.0.1.";
    NetworkPolicyDrops Error "A NetworkPolicy selects the pods and does not allow this connection." "Allow the pod networks of the other clusters in the policy, with an ipBlock. A podSelector never matches pods of other clusters.";
    NoRoute Error "No pod of the cluster answers from the client's cluster: there is no route between the two pod networks." "Check the routes, tunnels and firewalls between the nodes of the two clusters.";
    EndpointSilent Error "Connections to the endpoint time out, and other endpoints of the cluster answer." "Check the node of the pod, and firewalls and policies of the network plugin.";
    LargePacketsLost Error "Connections open, and large packets are lost: the MTU of the path is smaller than that of the pods." "Lower the MTU of the pod network, or let ICMP `fragmentation needed` messages pass.";
    KubeProxyStopped Error "Endpoints answer by their addresses, and the cluster IP of the service does not: the rules for the service are not written." "Check kube-proxy, or what replaces it, in the client's cluster.";
    ClusterDnsDown Error "The cluster's DNS does not answer at all." "Check CoreDNS in the cluster: `kubectl -n kube-system get pods -l k8s-app=kube-dns`.";
    NameUnknown Error "The name of the service is not answered with the addresses of its ServiceImport." "Check that the pods of `atoll dns` are ready and see their log. CoreDNS may need some seconds to reload its Corefile.";
    ProbeFailed Warning "The probe could not run in the client's cluster; the message says why." "See the message. Choose another image with --image.";
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_wrong_has_a_next_step() {
        for code in Code::ALL {
            assert!(code.meaning().ends_with('.'), "{code:?}");
            let next = code.next();
            assert!(next.is_empty() || next.ends_with('.'), "{code:?}: {next}");
            assert!(code.severity() == Severity::Info || !next.is_empty(), "{code:?} has no next step");
        }
    }
}
