//! Which address families the Services of a cluster can have: asked until it is certain.

use std::time::{Duration, Instant};

use atoll_api::names::service;
use atoll_engine::facts::Capabilities;
use atoll_engine::network::Family;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, PostParams};
use kube::core::Status;
use tracing::debug;

use crate::edge::service::families;

/// When the families are asked for again, the first time and at the latest.
const PROBE_AGAIN: Duration = Duration::from_secs(1);
const PROBE_LATEST: Duration = Duration::from_secs(60);

/// What is known of the families, and when to ask again.
#[derive(Default)]
pub(super) struct Probing {
    pub(super) known: Option<Capabilities>,
    /// Whether nothing is left to ask for this version.
    certain: bool,
    failures: u32,
    again: Option<Instant>,
}

impl Probing {
    /// Whether it is time to ask.
    pub(super) fn is_due(&self, minor: u16, now: Instant) -> bool {
        let new = self.known.as_ref().is_some_and(|known| known.kubernetes_minor != minor);
        (new || !self.certain) && self.again.is_none_or(|again| now >= again)
    }

    /// Takes in an answer; says what the cluster can do, if that is news.
    pub(super) fn take(&mut self, minor: u16, served: Served, now: Instant) -> Option<Capabilities> {
        let (families, certain) = match served {
            Served::Certain(families) => (Some(families), true),
            // What was certain before an upgrade is better than a guess.
            Served::Likely(families, _) => (Some(families).filter(|_| !self.certain), false),
            Served::Unknown(_) => (None, false),
        };
        if certain {
            (self.certain, self.failures, self.again) = (true, 0, None);
        } else {
            self.failures = self.failures.saturating_add(1);
            let pause = PROBE_AGAIN.saturating_mul(1 << (self.failures - 1).min(10));
            self.again = Some(now + pause.min(PROBE_LATEST));
        }
        let families = families?;
        let capabilities = Capabilities { families, kubernetes_minor: minor };
        let news = self.known.as_ref() != Some(&capabilities);
        self.known = Some(capabilities.clone());
        news.then_some(capabilities)
    }
}

/// The families that Services can have, the primary one first.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The API server has said so.
    Certain(Vec<Family>),
    /// We may not try; there is at least the family of the API's own Service.
    Likely(Vec<Family>, String),
    /// Nothing follows from what it said.
    Unknown(String),
}

/// What a refused dry run says of a policy.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// The cluster has no such families.
    Unsupported,
    /// We have no right to try, or admission denies it.
    Denied,
    /// Nothing: the next try may succeed.
    Later,
}

fn refusal(status: &Status) -> Refusal {
    let about_families = |text: &str| text.contains("ipFamilyPolicy") || text.contains("ipFamilies");
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let about_families =
        about_families(&status.message) || causes.into_iter().any(|cause| about_families(&cause.field));
    match status.code {
        422 if about_families => Refusal::Unsupported,
        400 | 403 | 422 => Refusal::Denied,
        _ => Refusal::Later,
    }
}

/// Asks for the families by making a Service that is not made.
///
/// A dry run allocates nothing and answers like a real one: `RequireDualStack` is refused where there is one family
/// only. Where we may not even try, the API's own Service tells the primary family.
pub(super) async fn served(client: &Client) -> Served {
    let api: Api<Service> = Api::namespaced(client.clone(), service::KUBERNETES_NAMESPACE);
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let mut denied = None;
    for policy in ["RequireDualStack", "SingleStack"] {
        let probe = Service {
            metadata: ObjectMeta {
                generate_name: Some("atoll-dry-run-".to_owned()),
                ..ObjectMeta::default()
            },
            spec: Some(ServiceSpec {
                ports: Some(vec![ServicePort {
                    port: 1,
                    protocol: Some("TCP".to_owned()),
                    ..ServicePort::default()
                }]),
                ip_family_policy: Some(policy.to_owned()),
                ..ServiceSpec::default()
            }),
            ..Service::default()
        };
        match api.create(&dry, &probe).await {
            Ok(service) => {
                let found = families(service.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()));
                match denied {
                    None if !found.is_empty() => return Served::Certain(found),
                    Some(why) if !found.is_empty() => return Served::Likely(found, why),
                    None | Some(_) => denied = Some("a Service without ipFamilies came back".to_owned()),
                }
            }
            Err(kube::Error::Api(status)) => match refusal(&status) {
                Refusal::Unsupported => {
                    debug!(%policy, %status, "the API server does not support this IP family policy");
                }
                Refusal::Denied => denied = Some(status.message.clone()),
                Refusal::Later => return Served::Unknown(status.message.clone()),
            },
            Err(error) => return Served::Unknown(error.to_string()),
        }
    }
    let why = denied.unwrap_or_else(|| "the API server accepts no IP family policy".to_owned());
    match api.get(service::KUBERNETES).await {
        Ok(own) => {
            let found = families(own.spec.as_ref().and_then(|spec| spec.ip_families.as_deref()));
            Served::Likely(if found.is_empty() { vec![Family::V4] } else { found }, why)
        }
        Err(error) => Served::Unknown(format!("{why}; {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status(code: u16, message: &str, field: &str) -> Status {
        let details = json!({"causes": [{"field": field}]});
        serde_json::from_value(json!({"code": code, "message": message, "details": details})).unwrap()
    }

    #[test]
    fn only_a_word_on_families_says_that_there_is_one() {
        for (code, message, field, want) in [
            (422, "is invalid", "spec.ipFamilyPolicy", Refusal::Unsupported),
            (422, "spec.ipFamilies[1]: not configured", "", Refusal::Unsupported),
            (422, "labels are missing", "metadata.labels", Refusal::Denied),
            (403, "exceeded quota", "", Refusal::Denied),
            (429, "too many requests", "", Refusal::Later),
            (500, "etcdserver: request timed out; ipFamilyPolicy", "", Refusal::Later),
            (503, "starting", "", Refusal::Later),
        ] {
            assert_eq!(refusal(&status(code, message, field)), want, "{code} {message}");
        }
    }

    #[test]
    fn families_are_asked_for_until_they_are_certain() {
        let start = Instant::now();
        let (both, one) = (vec![Family::V4, Family::V6], vec![Family::V4]);
        let mut probing = Probing::default();
        assert!(probing.is_due(36, start));
        assert_eq!(probing.take(36, Served::Unknown("500".to_owned()), start), None);
        assert!(!probing.is_due(36, start) && probing.is_due(36, start + PROBE_AGAIN));
        let likely = probing.take(36, Served::Likely(one.clone(), "403".to_owned()), start).unwrap();
        assert_eq!(likely.families, one);
        assert!(!probing.is_due(36, start + PROBE_AGAIN) && probing.is_due(36, start + PROBE_AGAIN * 2));
        let certain = probing.take(36, Served::Certain(both.clone()), start).unwrap();
        assert_eq!(certain.families, both);
        assert!(!probing.is_due(36, start + PROBE_LATEST), "nothing is left to ask");
        assert!(probing.is_due(37, start), "another version may serve others");
        assert_eq!(
            probing.take(37, Served::Likely(one, "403".to_owned()), start),
            None,
            "a guess takes nothing away"
        );
        for _ in 0..40 {
            let _ = probing.take(37, Served::Unknown(String::new()), start);
        }
        assert!(probing.is_due(37, start + PROBE_LATEST));
        assert_eq!(probing.take(37, Served::Certain(both), start).unwrap().kubernetes_minor, 37);
    }
}
