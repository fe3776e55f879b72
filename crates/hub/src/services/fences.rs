//! The operator's fences: `SharingPolicies` of the hub's API, and flags. Listed before anything is planned; then followed.

use std::collections::BTreeMap;
use std::pin::pin;

use atoll_api::types::SharingPolicy;
use atoll_engine::fences::{Fences, Pattern, Policy};
use atoll_engine::names::Namespace;
use atoll_watch::{Change, Config, Known, watch};
use futures_util::StreamExt;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

use crate::options::Options;

/// All policies there are.
pub(crate) async fn list(client: &Client) -> Result<Vec<Policy>, kube::Error> {
    let policies = Api::<SharingPolicy>::all(client.clone()).list(&ListParams::default()).await?;
    Ok(policies.items.iter().map(read).collect())
}

/// Says all policies whenever one has changed, until its receiver ends. Before they are listed anew nothing is said: half a list would open
/// or close what it should not.
pub(crate) async fn follow(client: Client, news: UnboundedSender<Vec<Policy>>) {
    let mut events = pin!(watch(Api::<SharingPolicy>::all(client), Config::default()));
    let (mut known, mut policies, mut listed) = (Known::default(), BTreeMap::new(), false);
    while let Some(event) = events.next().await {
        let mut changed = false;
        for change in known.take(event, |policy: &SharingPolicy| Some(policy.name_any())) {
            match change {
                Change::Seen(name, policy) => {
                    let new = read(&policy);
                    changed |= policies.insert(name, new.clone()) != Some(new);
                }
                Change::Gone(name) => changed |= policies.remove(&name).is_some(),
                Change::Listed => (listed, changed) = (true, true),
                Change::Failed(failure) => {
                    tracing::warn!(%failure, "cannot watch SharingPolicies in the hub's API");
                }
            }
        }
        if listed && changed && news.send(policies.values().cloned().collect()).is_err() {
            return;
        }
    }
}

/// The policies, with what flags say.
pub(crate) fn with_flags(options: &Options, policies: Vec<Policy>) -> Fences {
    Fences {
        allowed: options.allowed_namespaces.iter().cloned().collect(),
        denied: options.denied_namespaces.iter().map(|pattern| Pattern::new(pattern)).collect(),
        own: Namespace::parse(options.namespace.as_str()).ok(),
        policies,
    }
}

/// What a policy says.
pub(crate) fn read(policy: &SharingPolicy) -> Policy {
    let patterns = |texts: &[String]| texts.iter().map(|text| Pattern::new(text)).collect();
    let (spec, quota) = (&policy.spec, policy.spec.quota.clone().unwrap_or_default());
    let most = |said: Option<i32>| said.map(|most| u32::try_from(most).unwrap_or_default());
    Policy {
        namespaces: patterns(&spec.namespaces),
        export_from: patterns(&spec.export_from),
        import_into: patterns(&spec.import_into),
        services: most(quota.services),
        endpoints: most(quota.endpoints_per_service),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_read_and_what_it_does_not_say_is_nothing() {
        let policy: SharingPolicy = serde_json::from_value(json!({
            "apiVersion": "atoll.dev/v1alpha1", "kind": "SharingPolicy", "metadata": { "name": "shop" },
            "spec": { "namespaces": ["shop"], "exportFrom": ["paris"], "quota": { "services": 10 } },
        }))
        .unwrap();
        let read = read(&policy);
        assert_eq!((read.services, read.endpoints, read.import_into.len()), (Some(10), None, 0));
        let fences = with_flags(&Options::new("hub"), vec![read]);
        assert_eq!(fences.own, Namespace::parse("atoll-system").ok());
    }
}
