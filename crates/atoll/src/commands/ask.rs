//! Asks the running hub why things are as they are: `/apis/explain.atoll.dev`.

use std::net::IpAddr;

use atoll_api::explain::{AddressExplanation, ClusterSetStatus, ServiceExplanation, ServiceList};
use atoll_api::names::kind::cluster;
use atoll_api::names::kind::explain::{ADDRESSES, CLUSTERSET, CLUSTERSETS, GROUP, SERVICES, VERSION};
use kube::Error;
use serde::de::DeserializeOwned;

use crate::context::{FoundHub, WhichHub};
use crate::failure::Failure;
use crate::objects::catalog::escaped;
use crate::objects::rest::{Form, Rest};

/// How many services are looked at to find a name like one that is not there.
const CANDIDATES: usize = 5000;
/// How many of one page.
const PAGE: usize = 500;

/// The way to a hub that is asked.
pub(crate) struct Asked {
    pub(crate) hub: FoundHub,
    rest: Rest,
}

/// Which right a question needs.
#[derive(Debug, Clone, Copy)]
struct Right<'a> {
    verb: &'static str,
    resource: &'static str,
    namespace: Option<&'a str>,
}

impl Right<'_> {
    /// How an administrator of the hub grants it.
    fn hint(self) -> String {
        let Self { verb, resource, namespace } = self;
        let (kind, scope) = match namespace {
            Some(namespace) => ("role", format!(" -n {namespace}")),
            None => ("clusterrole", String::new()),
        };
        format!(
            "ask an administrator of the hub for the right to {verb} {resource}.{GROUP}: `kubectl create {kind} atoll-explain --verb=get,list --resource={resource}.{GROUP}{scope}` and `kubectl create {kind}binding atoll-explain-NAME --{kind}=atoll-explain --user=NAME{scope}` (NAME is this user's)"
        )
    }
}

impl Asked {
    /// Finds the hub; where others could be meant, stderr names it.
    pub(crate) async fn hub(which: &WhichHub) -> Result<Self, Failure> {
        let asked = Self::quietly(which).await?;
        asked.hub.place.tell_in_doubt();
        Ok(asked)
    }

    /// Finds the hub, and says nothing.
    pub(crate) async fn quietly(which: &WhichHub) -> Result<Self, Failure> {
        let hub = which.find_quietly().await?;
        let rest = hub.rest()?;
        Ok(Self { hub, rest })
    }

    /// Why a service is as it is; nothing if the hub does not know it.
    pub(crate) async fn service(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ServiceExplanation>, Failure> {
        let path = format!("{}/namespaces/{}/{SERVICES}/{}", root(), escaped(namespace), escaped(name));
        let right = Right { verb: "get", resource: SERVICES, namespace: Some(namespace) };
        self.get(&path, &format!("cannot explain the service {namespace}/{name}"), right).await
    }

    /// Whose an address is.
    pub(crate) async fn address(&self, address: IpAddr) -> Result<Option<AddressExplanation>, Failure> {
        let path = format!("{}/{ADDRESSES}/{}", root(), escaped(&address.to_string()));
        let right = Right { verb: "get", resource: ADDRESSES, namespace: None };
        self.get(&path, &format!("cannot explain the address {address}"), right).await
    }

    /// How the clusterset is.
    pub(crate) async fn status(&self) -> Result<ClusterSetStatus, Failure> {
        let path = format!("{}/{CLUSTERSETS}/{CLUSTERSET}", root());
        let right = Right { verb: "get", resource: CLUSTERSETS, namespace: None };
        let what = "cannot get the status of the clusterset";
        match self.get(&path, what, right).await? {
            Some(status) => Ok(status),
            None => Err(self.too_old(what)),
        }
    }

    /// Services that the user may see, of one namespace or of all; as `namespace/name`.
    pub(crate) async fn services(&self, namespace: Option<&str>) -> Result<Vec<String>, Failure> {
        let base = match namespace {
            Some(namespace) => format!("{}/namespaces/{}/{SERVICES}", root(), escaped(namespace)),
            None => format!("{}/{SERVICES}", root()),
        };
        let mut all = Vec::new();
        let mut next: Option<String> = None;
        loop {
            let path = match &next {
                Some(next) => format!("{base}?limit={PAGE}&continue={}", escaped(next)),
                None => format!("{base}?limit={PAGE}"),
            };
            let right = Right { verb: "list", resource: SERVICES, namespace };
            let list: Option<ServiceList> = self.get(&path, "cannot list services", right).await?;
            let Some(list) = list else { return Ok(all) };
            all.extend(list.items.iter().map(|line| {
                let namespace = line.metadata.namespace.as_deref().unwrap_or_default();
                format!("{namespace}/{}", line.metadata.name)
            }));
            next = list.metadata.next.filter(|_| all.len() < CANDIDATES);
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        what: &str,
        right: Right<'_>,
    ) -> Result<Option<T>, Failure> {
        match self.rest.get(path, Form::Objects).await {
            Ok(value) => serde_json::from_value(value).map(Some).map_err(|error| {
                Failure::ended(what, &format!("the hub's answer is not as expected: {error}"))
                    .with_hint("use the version of atoll that the hub has: `atoll version` shows both")
                    .at(&self.hub.place.shown())
            }),
            Err(Error::Api(status)) if status.code == 404 => {
                if self.answers_questions().await {
                    Ok(None)
                } else {
                    Err(self.no_answers(what).await)
                }
            }
            Err(error) => Err(self.failure(what, &error, right)),
        }
    }

    fn failure(&self, what: &str, error: &Error, right: Right<'_>) -> Failure {
        let failure = self.hub.place.failure(what, error);
        match error {
            Error::Api(status) if status.code == 403 => failure.with_hint(&right.hint()),
            Error::Api(status) if status.code == 503 => failure
                .with_hint("no hub leads at the moment, or it has just started: ask again in a few seconds"),
            _ => failure,
        }
    }

    /// Whether the group is served at all.
    async fn answers_questions(&self) -> bool {
        self.rest.get(&root(), Form::Objects).await.is_ok()
    }

    /// Why the group is not served.
    async fn no_answers(&self, what: &str) -> Failure {
        let clusters =
            format!("/apis/{}/{}/{}?limit=1", cluster::GROUP, cluster::V1ALPHA1, cluster::CLUSTERS);
        match self.rest.get(&clusters, Form::Objects).await {
            Err(Error::Api(status)) if status.code == 404 => self.hub.place.no_hub(&self.rest).await,
            _ => self.too_old(what),
        }
    }

    fn too_old(&self, what: &str) -> Failure {
        Failure::ended(what, &format!("the hub does not serve {GROUP}/{VERSION}"))
            .with_hint("it is older than this atoll, or no hub runs: start or upgrade the hub; `atoll clusters` works with older hubs")
            .at(&self.hub.place.shown())
    }
}

fn root() -> String {
    format!("/apis/{GROUP}/{VERSION}")
}

/// Names like one that was asked for, the nearest first: a slip of the fingers, another namespace, or a part of the name.
pub(crate) fn similar<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    /// As many as a person reads.
    const MOST: usize = 3;
    let bare = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    let asked_bare = bare(asked);
    let rank = |name: &str| {
        let (whole, part) = (distance(asked, name), distance(&asked_bare, &bare(name)));
        let contained =
            !asked_bare.is_empty() && (bare(name).contains(&asked_bare) || asked_bare.contains(&bare(name)));
        let near = part <= 1 + asked_bare.len() / 4;
        (near || contained).then_some((part, whole))
    };
    let mut near: Vec<((usize, usize), &str)> = known
        .into_iter()
        .filter(|name| *name != asked)
        .filter_map(|name| Some((rank(name)?, name)))
        .collect();
    near.sort_unstable();
    near.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect()
}

/// How many letters have to be changed, added, left out or swapped with the next to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // The rows of the table for the last letter and the one before it.
    let mut last: Vec<usize> = (0..=other.len()).collect();
    let mut before = last.clone();
    for i in 0..one.len() {
        let mut row = vec![i + 1];
        for j in 0..other.len() {
            let changed = last[j] + usize::from(one[i] != other[j]);
            let swapped = i > 0 && j > 0 && one[i] == other[j - 1] && one[i - 1] == other[j];
            let swapped = if swapped { before[j - 1] + 1 } else { usize::MAX };
            row.push(changed.min(last[j + 1] + 1).min(row[j] + 1).min(swapped));
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_another_namespace_and_a_part_are_similar() {
        let known = ["shop/web", "shop/webhook", "test/web", "shop/db", "shop/payments"];
        for (asked, want) in [
            ("shop/wbe", &["shop/web", "test/web"][..]),
            ("prod/web", &["shop/web", "test/web", "shop/webhook"]),
            ("shop/payment", &["shop/payments"]),
            ("shop/nothing", &[]),
        ] {
            assert_eq!(similar(asked, known), want, "{asked}");
        }
    }

    #[test]
    fn letters_are_counted() {
        for (one, other, want) in [
            ("", "", 0),
            ("a", "", 1),
            ("", "ab", 2),
            ("web", "wbe", 1),
            ("ab", "ba", 1),
            ("web", "web", 0),
            ("web", "ueb", 1),
        ] {
            assert_eq!(distance(one, other), want, "{one} {other}");
        }
    }
}
