//! How many requests the product makes per change, counted in the clusters' audit logs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::environment::{Environment, Recording, Request};
use crate::error::Error;
use crate::options::Who;

/// What one cluster's API got while the product dealt with some changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Counted {
    /// The cluster.
    pub cluster: String,
    /// Requests about the changed services, per change.
    pub per_change: f64,
    /// The same by `verb resource`, in all.
    pub about_services: BTreeMap<String, u64>,
    /// Everything else in that time: leases, status of clusters, watches that were opened anew.
    pub elsewhere: BTreeMap<String, u64>,
}

/// Who the benchmark is in a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Own {
    /// The user.
    pub user: String,
    /// Whether this is the hub's API, where the hub may be the same user.
    pub hub: bool,
}

impl Own {
    /// Whether a request is the benchmark's own. In the hub it changes nothing that is there, and makes neither bindings nor events.
    fn asked(&self, request: &Request) -> bool {
        let changes = ["patch", "update"].contains(&request.verb.as_str());
        let products = changes || ["resourcebindings", "events"].contains(&request.resource.as_str());
        request.user == self.user && !(self.hub && products)
    }
}

/// Counts what others than `bench`, the benchmark itself, asked for. Outside the namespace the hub may be the same
/// user, on its own API; there only what the benchmark asks for is left out.
pub fn count(cluster: &str, bench: &Own, changes: usize, requests: &[Request]) -> Counted {
    let mut counted = Counted {
        cluster: cluster.to_owned(),
        per_change: 0.0,
        about_services: BTreeMap::new(),
        elsewhere: BTreeMap::new(),
    };
    for request in requests {
        let by_bench = bench.asked(request);
        let into = match Who::of(&request.namespace) {
            Some(Who::Ours) if !by_bench => &mut counted.about_services,
            Some(_) => continue,
            None if request.user == bench.user && ["list", "watch"].contains(&request.verb.as_str()) => {
                continue;
            }
            None => &mut counted.elsewhere,
        };
        *into.entry(spelled(request)).or_default() += 1;
    }
    let all: u64 = counted.about_services.values().sum();
    #[allow(clippy::cast_precision_loss, reason = "no run makes 2^52 requests")]
    let per_change = all as f64 / changes.max(1) as f64;
    counted.per_change = per_change;
    counted
}

pub(crate) fn spelled(request: &Request) -> String {
    let Request { verb, resource, subresource, .. } = request;
    if subresource.is_empty() {
        format!("{verb} {resource}")
    } else {
        format!("{verb} {resource}/{subresource}")
    }
}

/// Recordings in every cluster that has an audit log.
pub(crate) struct Recordings(Vec<(String, Box<dyn Recording>)>);

impl Recordings {
    pub(crate) fn start(environment: &Environment) -> Result<Self, Error> {
        let start = |audit: &std::sync::Arc<dyn crate::environment::Audit>| {
            let recording =
                audit.record().map_err(|why| Error::Hook { action: "read the audit log", why })?;
            Ok((audit.cluster().to_owned(), recording))
        };
        Ok(Self(environment.audits.iter().map(start).collect::<Result<_, Error>>()?))
    }

    /// Counts per cluster. Between rounds of a cold sync services are withdrawn, and that counts only `with_deletes`.
    pub(crate) async fn count(
        self,
        users: &BTreeMap<String, Own>,
        changes: usize,
        with_deletes: bool,
    ) -> Result<Vec<Counted>, Error> {
        let mut all = Vec::new();
        for (cluster, recording) in self.0 {
            let mut requests = recording
                .requests()
                .await
                .map_err(|why| Error::Hook { action: "read the audit log", why })?;
            requests.retain(|request| with_deletes || !request.verb.starts_with("delete"));
            let bench = users.get(&cluster).cloned().unwrap_or_default();
            all.push(count(&cluster, &bench, changes, &requests));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(user: &str, verb: &str, resource: &str, namespace: &str) -> Request {
        let [verb, resource, namespace, user] = [verb, resource, namespace, user].map(str::to_owned);
        Request { verb, resource, namespace, user, ..Request::default() }
    }

    #[test]
    fn only_the_products_requests_count() {
        let (ours, floor) = (Who::Ours.namespace(), Who::Floor.namespace());
        let requests = [
            request("admin", "update", "endpointslices", ours),
            request("hub", "update", "endpointslices", ours),
            request("hub", "update", "endpointslices", ours),
            request("admin", "update", "endpointslices", floor),
            request("admin", "watch", "endpointslices", ""),
            request("hub", "watch", "endpointslices", ""),
            request("admin", "update", "leases", "atoll-system"),
            Request { subresource: "status".into(), ..request("hub", "update", "clusters", "") },
        ];
        let bench = Own { user: "admin".to_owned(), hub: false };
        let counted = count("b", &bench, 2, &requests);
        assert!((counted.per_change - 1.0).abs() < 1e-9);
        assert_eq!(counted.about_services, BTreeMap::from([("update endpointslices".to_owned(), 2)]));
        let elsewhere: Vec<_> = counted.elsewhere.iter().map(|(what, n)| (what.as_str(), *n)).collect();
        assert_eq!(
            elsewhere,
            [("update clusters/status", 1), ("update leases", 1), ("watch endpointslices", 1)]
        );
    }

    #[test]
    fn in_the_hub_a_request_tells_by_what_it_does_whose_it_is() {
        let ours = Who::Ours.namespace();
        let requests = [
            request("admin", "create", "multiclusterservices", ours),
            request("admin", "create", "services", ours),
            request("admin", "list", "multiclusterservices", ours),
            request("admin", "patch", "multiclusterservices", ours),
            request("admin", "create", "resourcebindings", ours),
            request("admin", "create", "events", ours),
        ];
        let bench = Own { user: "admin".to_owned(), hub: true };
        let counted = count("hub", &bench, 1, &requests);
        let products: Vec<_> = counted.about_services.keys().map(String::as_str).collect();
        assert_eq!(products, ["create events", "create resourcebindings", "patch multiclusterservices"]);
    }
}
