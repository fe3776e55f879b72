//! What to do about something, with the names that are at hand. Where nothing is said here, the code's own words stand.

use atoll_api::names::code::Code;
use atoll_engine::names::{ClusterId, ServiceKey};

/// What to do in a cluster, for a service if it is about one.
pub(super) fn next(code: Code, key: Option<&ServiceKey>, cluster: &ClusterId) -> Option<String> {
    of_member(code, cluster).or_else(|| of_service(code, key?, cluster))
}

/// What to do about a member. Contexts are taken to be called like members.
fn of_member(code: Code, cluster: &ClusterId) -> Option<String> {
    let text = match code {
        Code::Forbidden => {
            format!("Run `atoll join {cluster} --cluster-kubeconfig FILE` again. It restores the hub's role.")
        }
        Code::KindMissing => {
            format!("Install the CRDs: `atoll crds | kubectl --context {cluster} apply -f -`.")
        }
        Code::MemberSilent | Code::MemberLost | Code::NotHeard | Code::KeptWithoutProbe | Code::Withdrawn => {
            format!("Check the cluster: `atoll check --cluster {cluster}`.")
        }
        Code::KeptByPolicy => format!(
            "Check the cluster: `atoll check --cluster {cluster}`. To remove endpoints of lost clusters, set the liveness policy of the export to Withdraw."
        ),
        Code::MemberBlocked | Code::MemberNotReady => {
            format!("Run `kubectl describe cluster {cluster}` in the hub.")
        }
        Code::AddressRefused => format!(
            "See the networks of {cluster}: `atoll clusters -o wide`. To declare more, run `atoll join {cluster} --pod-cidr CIDR`."
        ),
        _ => return None, // the codes of all subjects are in one enum
    };
    Some(text)
}

fn of_service(code: Code, key: &ServiceKey, cluster: &ClusterId) -> Option<String> {
    let ServiceKey { namespace, name } = key;
    let kubectl = format!("kubectl --context {cluster}");
    let text = match code {
        Code::NoNamespace => format!(
            "Create the namespace: `{kubectl} create namespace {namespace}`. Creating it in the hub creates it in every member (unless `--namespace-sync=false`)."
        ),
        Code::NamespaceTerminating => {
            format!("Wait until namespace {namespace} is gone in {cluster}, then create it again.")
        }
        Code::NoService => format!(
            "Create Service {name} in namespace {namespace} of {cluster}, or check the spelling: `{kubectl} -n {namespace} get services,serviceexports`."
        ),
        Code::NoEndpoints => format!(
            "Check that spec.selector of Service {name} matches labels of running pods: `{kubectl} -n {namespace} describe service {name}`."
        ),
        Code::NoReadyEndpoints => {
            format!("Check the readiness probes of its pods: `{kubectl} -n {namespace} get pods -o wide`.")
        }
        Code::AllEndpointsRefused | Code::EndpointsRefused | Code::NoBackends => {
            format!("See the reason of each address: `atoll explain {name} -n {namespace} --all`.")
        }
        Code::NothingToServe => {
            format!(
                "See what each exporting cluster gives: `atoll explain {name} -n {namespace} --in {cluster}`."
            )
        }
        Code::DerivedServiceNamesTaken => {
            format!("Rename or delete one of these Services: `{kubectl} -n {namespace} get services`.")
        }
        Code::LocalWithoutOwnEndpoints => format!(
            "Set spec.internalTrafficPolicy of Service {name} to Cluster in the exporting clusters, or run pods of it in {cluster}."
        ),
        _ => return None, // the codes of all subjects are in one enum
    };
    Some(text)
}
