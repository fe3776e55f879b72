//! Columns of built-in kinds, as a kube-apiserver prints them. Descriptions of columns are left empty: nothing prints
//! them.

mod config;
mod network;
mod object;
mod storage;
mod workload;

pub(super) use object::Object;

use serde_json::{Value, json};

/// Makes the cells of one object.
pub(super) type Row = fn(&Object<'_>) -> Vec<Value>;

/// The columns of a kind, and what fills them.
///
/// Columns are names with marks: `/n` the object's name, `/i` an integer, `/b` a boolean, `/d` a date, `+` only
/// printed wide.
pub(super) fn of(group: &str, kind: &str) -> Option<(&'static str, Row)> {
    Some(match (group, kind) {
        ("", "Namespace") => ("Name/n,Status,Age", config::namespace),
        ("", "ConfigMap") => ("Name/n,Data,Age", config::config_map),
        ("", "Secret") => ("Name/n,Type,Data,Age", config::secret),
        ("", "ServiceAccount") => ("Name/n,Age", config::name_and_age),
        ("", "Event") | ("events.k8s.io", "Event") => (
            "Last Seen,Type,Reason,Object,Subobject+,Source+,Message,First Seen+,Count+,Name/n+",
            config::event,
        ),
        ("", "ResourceQuota") => ("Name/n,Request,Limit,Age", config::resource_quota),
        ("coordination.k8s.io", "Lease") => ("Name/n,Holder,Age", config::lease),
        ("scheduling.k8s.io", "PriorityClass") => {
            ("Name/n,Value/i,Global-Default/b,Age,PreemptionPolicy", config::priority_class)
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => {
            ("Name/n,Role,Age,Users+,Groups+,ServiceAccounts+", config::role_binding)
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => ("Name/n,Webhooks/i,Age", config::webhooks),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            ("Name/n,Validations/i,ParamKind,Age", config::policy)
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            ("Name/n,PolicyName,ParamRef,Age", config::policy_binding)
        }
        ("apiregistration.k8s.io", "APIService") => ("Name/n,Service,Available,Age", config::api_service),

        ("", "Service") => ("Name/n,Type,Cluster-IP,External-IP,Port(s),Age,Selector+", network::service),
        ("", "Endpoints") => ("Name/n,Endpoints,Age", network::endpoints),
        ("discovery.k8s.io", "EndpointSlice") => {
            ("Name/n,AddressType,Ports,Endpoints,Age", network::endpoint_slice)
        }
        ("networking.k8s.io", "Ingress") => ("Name/n,Class,Hosts,Address,Ports,Age", network::ingress),
        ("networking.k8s.io", "IngressClass") => ("Name/n,Controller,Parameters,Age", network::ingress_class),
        ("networking.k8s.io", "NetworkPolicy") => ("Name/n,Pod-Selector,Age", network::network_policy),

        ("", "Node") => (
            "Name/n,Status,Roles,Age,Version,Internal-IP+,External-IP+,OS-Image+,Kernel-Version+,Container-Runtime+",
            workload::node,
        ),
        ("", "Pod") => {
            ("Name/n,Ready,Status,Restarts,Age,IP+,Node+,Nominated Node+,Readiness Gates+", workload::pod)
        }
        ("", "PodTemplate") => ("Name/n,Containers,Images,Pod Labels", workload::pod_template),
        ("", "ReplicationController") | ("apps", "ReplicaSet") => {
            ("Name/n,Desired/i,Current/i,Ready/i,Age,Containers+,Images+,Selector+", workload::replica_set)
        }
        ("apps", "Deployment") => {
            ("Name/n,Ready,Up-to-date,Available,Age,Containers+,Images+,Selector+", workload::deployment)
        }
        ("apps", "StatefulSet") => ("Name/n,Ready,Age,Containers+,Images+", workload::stateful_set),
        ("apps", "DaemonSet") => (
            "Name/n,Desired/i,Current/i,Ready/i,Up-to-date/i,Available/i,Node Selector,Age,Containers+,Images+,\
             Selector+",
            workload::daemon_set,
        ),
        ("apps", "ControllerRevision") => ("Name/n,Controller,Revision,Age", workload::controller_revision),
        ("batch", "Job") => {
            ("Name/n,Status,Completions,Duration,Age,Containers+,Images+,Selector+", workload::job)
        }
        ("batch", "CronJob") => (
            "Name/n,Schedule,Timezone,Suspend/b,Active/i,Last Schedule,Age,Containers+,Images+,Selector+",
            workload::cron_job,
        ),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            ("Name/n,Reference,Targets,MinPods,MaxPods,Replicas,Age", workload::autoscaler)
        }
        ("autoscaling", "Scale") => ("Name,Desired/i,Available/i,Age", workload::scale),
        ("policy", "PodDisruptionBudget") => {
            ("Name/n,Min Available,Max Unavailable,Allowed Disruptions/i,Age", workload::disruption_budget)
        }

        ("", "PersistentVolume") => (
            "Name/n,Capacity,Access Modes,Reclaim Policy,Status,Claim,StorageClass,VolumeAttributesClass,Reason,Age,\
             VolumeMode+",
            storage::volume,
        ),
        ("", "PersistentVolumeClaim") => (
            "Name/n,Status,Volume,Capacity,Access Modes,StorageClass,VolumeAttributesClass,Age,VolumeMode+",
            storage::claim,
        ),
        ("storage.k8s.io", "StorageClass") => {
            ("Name/n,Provisioner,ReclaimPolicy,VolumeBindingMode,AllowVolumeExpansion,Age", storage::class)
        }
        _ => return None,
    })
}

/// The `columnDefinitions` of marked names.
pub(super) fn definitions(columns: &str) -> Vec<Value> {
    let definition = |column: &str| {
        let (column, priority) = column.strip_suffix('+').map_or((column, 0), |column| (column, 1));
        let (name, mark) = column.split_once('/').unwrap_or((column, ""));
        let (kind, format) = match mark {
            "n" => ("string", "name"),
            "i" => ("integer", ""),
            "b" => ("boolean", ""),
            "d" => ("date", ""),
            _ => ("string", ""),
        };
        json!({"name": name, "type": kind, "format": format, "description": "", "priority": priority})
    };
    columns.split(',').map(definition).collect()
}
