//! Reads the facts. Every request has a deadline, and all of one API are under way at once.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::crds;
use atoll_api::names::annotation;
use atoll_api::names::{kind, property, secret};
use atoll_api::revision::Verdict;
use atoll_api::types::{Cluster, ClusterProperty, ServiceExport};
use atoll_hub::join;
use atoll_hub::options::{LEASE, NAMESPACE};
use http::Request;
use http::header::DATE;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use k8s_openapi::api::authorization::v1::{ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, PostParams};
use kube::client::Body;
use kube::{Api, Client, ResourceExt};

use super::facts::{ApiFact, Crd, HubFacts, LeaseFact, MemberFacts};
use crate::commands::check::dns;
use crate::commands::check::ways::{Trouble, Way, ask};

/// How many objects of a kind are read.
const MOST: u32 = 5000;

fn many() -> ListParams {
    ListParams::default().limit(MOST)
}

/// What an API says of itself, and its clock.
async fn api(client: &Client) -> Result<ApiFact, Trouble> {
    let request =
        Request::get("/version").body(Body::empty()).map_err(|error| Trouble::Other(error.to_string()))?;
    let begun = Timestamp::now();
    let response = ask(client.send(request)).await?;
    // The time was told in the middle of the exchange, and without its fraction of a second.
    let middle = (begun.as_second() + Timestamp::now().as_second()) / 2;
    let (head, body) = response.into_parts();
    let told = head.headers.get(DATE).and_then(|value| value.to_str().ok());
    let told = told.and_then(|text| rfc2822::parse(text).ok()).map(|time| time.timestamp().as_second());
    let bytes = ask(body.collect_bytes()).await?;
    match head.status.as_u16() {
        401 => {
            return Err(Trouble::Forbidden("the API refuses the credentials (401 Unauthorized)".to_owned()));
        }
        200 => {}
        other => return Err(Trouble::Other(format!("the API answers {other}"))),
    }
    let version: serde_json::Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let version = version["gitVersion"].as_str().unwrap_or("unknown").to_owned();
    Ok(ApiFact { version, ahead: told.map(|told| told - middle) })
}

/// Reads the hub.
pub(crate) async fn hub(client: &Client, namespace: &str) -> HubFacts {
    let clusters = Api::<Cluster>::all(client.clone());
    let leases = Api::<Lease>::namespaced(client.clone(), namespace);
    let namespaces = Api::<Namespace>::all(client.clone());
    let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
    let all = many();
    let lease = async {
        let lease = ask(leases.get(LEASE)).await;
        (lease, Timestamp::now())
    };
    let (api, missing, (lease, at), said, clusters, secrets, namespaces) = tokio::join!(
        api(client),
        missing(client),
        lease,
        leaders_word(client),
        ask(clusters.list(&all)),
        ask(secrets.list(&all)),
        ask(namespaces.list(&all)),
    );
    let lease = lease.map(|lease| {
        let spec = lease.spec.unwrap_or_default();
        LeaseFact {
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            renewed: spec.renew_time.map(|time| time.0),
            seconds: i64::from(spec.lease_duration_seconds.unwrap_or_default()),
        }
    });
    let explicit = |one: &Namespace| {
        one.annotations().get(annotation::IMPORT).is_some_and(|value| value == annotation::import::EXPLICIT)
    };
    let namespaces = namespaces.map(|list| list.items).unwrap_or_default();
    let (hub_version, status) = said.unwrap_or_default();
    HubFacts {
        at,
        api,
        missing,
        lease,
        hub_version,
        status,
        clusters: clusters.map(|list| list.items),
        secrets: secrets.map(|list| list.items),
        explicit: namespaces.iter().filter(|one| explicit(one)).map(ResourceExt::name_any).collect(),
    }
}

/// The leader's own word, where it is asked; no other has it. Its version, and what it says is wrong.
async fn leaders_word(client: &Client) -> Option<(Option<String>, Option<String>)> {
    let explain = (kind::explain::GROUP, kind::explain::VERSION, kind::explain::CLUSTERSETS);
    let path = format!("/apis/{}/{}/{}/{}", explain.0, explain.1, explain.2, kind::explain::CLUSTERSET);
    let request = Request::get(path).body(Vec::new()).ok()?;
    let status: serde_json::Value = ask(client.request(request)).await.ok()?;
    Some((status["version"].as_str().map(str::to_owned), wrong(&status["verdict"])))
}

/// A verdict in one line, unless it says that nothing is wrong.
fn wrong(verdict: &serde_json::Value) -> Option<String> {
    let severity = verdict["severity"].as_str().filter(|one| *one != "Info");
    severity.and_then(|_| Some(format!("{}: {}", verdict["code"].as_str()?, verdict["message"].as_str()?)))
}

/// The kinds that a hub needs and its API does not serve. Whoever may ask the API anything may ask this.
async fn missing(client: &Client) -> Vec<String> {
    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for crd in crds::of_hub() {
        let Some(stored) = crd.spec.versions.iter().find(|version| version.storage) else { continue };
        let group = format!("{}/{}", crd.spec.group, stored.name);
        wanted.entry(group).or_default().push(crd.spec.names.plural.clone());
    }
    let asked = wanted.iter().map(async |(group, plurals)| {
        let served = ask(client.list_api_group_resources(group)).await;
        let served: BTreeSet<String> = match served {
            Ok(list) => list.resources.into_iter().map(|one| one.name).collect(),
            Err(Trouble::Missing) => BTreeSet::new(),
            // What could not be asked is not said to be missing.
            Err(Trouble::Forbidden(_) | Trouble::Silent(_) | Trouble::Other(_)) => return Vec::new(),
        };
        plurals.iter().filter(|one| !served.contains(*one)).map(|one| format!("{one} ({group})")).collect()
    });
    futures_util::future::join_all(asked).await.concat()
}

/// Reads a member.
pub(crate) async fn member(hub: &Client, cluster: Cluster, way: &Way) -> MemberFacts {
    let name = way.name.clone();
    let client = match way.any() {
        Ok(client) => client.clone(),
        Err(why) => {
            let silent = || Trouble::Other(why.to_owned());
            return MemberFacts {
                name,
                no_way: Some(why.to_owned()),
                api: Err(silent()),
                lacks: Err(silent()),
                crds: Vec::new(),
                token_ends: token_ends(hub, &cluster).await,
                properties: Err(silent()),
                exports: Vec::new(),
                namespaces: None,
                dns: dns::look(way).await,
                cluster,
            };
        }
    };
    let properties = Api::<ClusterProperty>::all(client.clone());
    let exports = Api::<ServiceExport>::all(client.clone());
    let namespaces = Api::<Namespace>::all(client.clone());
    let all = many();
    let (api, lacks, crds, token_ends, properties, exports, namespaces, dns) = tokio::join!(
        api(&client),
        lacks(way),
        of_member(&client),
        token_ends(hub, &cluster),
        ask(properties.list(&all)),
        ask(exports.list(&all)),
        ask(namespaces.list_metadata(&all)),
        dns::look(way),
    );
    let valued = |list: Vec<ClusterProperty>| {
        list.into_iter().map(|one| (one.name_any(), one.spec.value)).collect::<BTreeMap<String, String>>()
    };
    let exports = exports.map(|list| list.items).unwrap_or_default();
    MemberFacts {
        name,
        no_way: None,
        api,
        lacks,
        crds,
        token_ends,
        properties: properties.map(|list| valued(list.items)),
        exports: exports.iter().map(|one| (one.namespace().unwrap_or_default(), one.name_any())).collect(),
        namespaces: namespaces.ok().map(|list| list.items.iter().map(ResourceExt::name_any).collect()),
        dns,
        cluster,
    }
}

async fn token_ends(hub: &Client, cluster: &Cluster) -> Result<Option<Timestamp>, Trouble> {
    let Some(at) = &cluster.spec.secret_ref else { return Ok(None) };
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), &at.namespace);
    let data = ask(secrets.get(&at.name)).await?.data.unwrap_or_default();
    let text = data.get(secret::TOKEN_EXPIRES_AT).and_then(|bytes| std::str::from_utf8(&bytes.0).ok());
    Ok(text.and_then(|text| text.parse().ok()))
}

/// The rights that the hub lacks in a member, asked as the hub.
async fn lacks(way: &Way) -> Result<Vec<String>, Trouble> {
    let client = way.stored.as_ref().map_err(|why| Trouble::Other(why.clone()))?;
    let spec = SelfSubjectRulesReviewSpec { namespace: Some(NAMESPACE.to_owned()) };
    let question = SelfSubjectRulesReview { spec, ..SelfSubjectRulesReview::default() };
    let answer = ask(Api::all(client.clone()).create(&PostParams::default(), &question)).await?;
    let status = answer.status.unwrap_or_default();
    if status.incomplete {
        return Err(Trouble::Other("the member's API can't list all rights".to_owned()));
    }
    Ok(not_covered(&join::needed(), &status.resource_rules))
}

/// Each verb and resource that is needed and not granted.
fn not_covered(needed: &[PolicyRule], granted: &[ResourceRule]) -> Vec<String> {
    let has = |list: &[String], word: &str| list.iter().any(|one| one == "*" || one == word);
    let mut lacks = BTreeSet::new();
    for rule in needed {
        let names = rule.resource_names.as_deref().unwrap_or_default();
        let named = |one: &ResourceRule| {
            let own = one.resource_names.as_deref().unwrap_or_default();
            own.is_empty() || (!names.is_empty() && names.iter().all(|name| own.contains(name)))
        };
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                for verb in &rule.verbs {
                    let covered = granted.iter().any(|one| {
                        has(&one.verbs, verb)
                            && has(one.api_groups.as_deref().unwrap_or_default(), group)
                            && has(one.resources.as_deref().unwrap_or_default(), resource)
                            && named(one)
                    });
                    if !covered {
                        let dot = if group.is_empty() { "" } else { "." };
                        lacks.insert(format!("{verb} {resource}{dot}{group}"));
                    }
                }
            }
        }
    }
    lacks.into_iter().collect()
}

async fn of_member(client: &Client) -> Vec<(String, Crd)> {
    let installed = Api::<CustomResourceDefinition>::all(client.clone());
    let asked = crds::of_members().into_iter().map(|ours| {
        let installed = installed.clone();
        async move {
            let name = ours.name_any();
            let state = match ask(installed.get(&name)).await {
                Ok(theirs) => judge(&ours, &theirs),
                Err(Trouble::Missing) => Crd::Missing("is not installed".to_owned()),
                Err(Trouble::Forbidden(_) | Trouble::Silent(_) | Trouble::Other(_)) => Crd::Unknown,
            };
            (name, state)
        }
    });
    futures_util::future::join_all(asked).await
}

fn judge(ours: &CustomResourceDefinition, theirs: &CustomResourceDefinition) -> Crd {
    let stored =
        ours.spec.versions.iter().find(|version| version.storage).map(|version| version.name.as_str());
    let served =
        |name: &str| theirs.spec.versions.iter().any(|version| version.name == name && version.served);
    match stored {
        Some(version) if !served(version) => Crd::Missing(format!("does not serve {version}")),
        _ => match crds::judge(ours, theirs) {
            Verdict::Keep(_) => Crd::Fine,
            Verdict::Replace(_) => Crd::Older,
        },
    }
}

/// The properties that a member has by our word.
pub(super) const PROPERTIES: [&str; 2] = [property::CLUSTER_ID, property::CLUSTERSET];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_covered_by_others_and_by_wildcards_and_else_named() {
        let rule = |group: &str, resource: &str, verbs: &[&str], names: &[&str]| ResourceRule {
            api_groups: Some(vec![group.to_owned()]),
            resources: Some(vec![resource.to_owned()]),
            verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
            resource_names: Some(names.iter().map(|&name| name.to_owned()).collect()),
        };
        assert!(not_covered(&join::needed(), &[rule("*", "*", &["*"], &[])]).is_empty());
        let as_granted: Vec<ResourceRule> = join::needed()
            .into_iter()
            .map(|rule| ResourceRule {
                api_groups: rule.api_groups,
                resources: rule.resources,
                verbs: rule.verbs,
                resource_names: rule.resource_names,
            })
            .collect();
        assert!(not_covered(&join::needed(), &as_granted).is_empty());
        let without: Vec<ResourceRule> = as_granted
            .into_iter()
            .filter(|rule| rule.resources.as_ref().is_none_or(|all| !all.contains(&"services".to_owned())))
            .collect();
        let lacks = not_covered(&join::needed(), &without);
        assert_eq!(lacks[0], "create services", "{lacks:?}");
        assert!(lacks.iter().all(|one| one.ends_with(" services")), "{lacks:?}");
        let named = rule("apiextensions.k8s.io", "customresourcedefinitions", &["get"], &["others"]);
        let lacks = not_covered(&join::needed(), &[named]);
        assert!(
            lacks.contains(&"get customresourcedefinitions.apiextensions.k8s.io".to_owned()),
            "{lacks:?}"
        );
    }

    #[test]
    fn a_crd_without_our_version_is_missing_and_an_unlabelled_one_is_older() {
        let ours = crds::service_export();
        assert_eq!(judge(&ours, &ours), Crd::Fine);
        let mut old = ours.clone();
        old.metadata.labels = None;
        assert_eq!(judge(&ours, &old), Crd::Older);
        old.spec.versions.retain(|version| !version.storage);
        assert_eq!(judge(&ours, &old), Crd::Missing("does not serve v1beta1".to_owned()));
    }
}
