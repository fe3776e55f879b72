//! Each request passes here before its verb: authentication, impersonation, authorisation.

use crate::access::audit;
use crate::access::authn::{Claims, TokenIdentity, User};
use crate::access::rbac::{self, Attributes, Authorizer, Decision, Target};
use crate::api::{ApiState, Caller};
use crate::http::encode;
use crate::http::request::RequestInfo;
use crate::http::status_error::{StatusError, Subject};
use crate::storage::cache::Cache;
use crate::storage::store::{Key, Store};
use http::HeaderMap;
use http::header::AUTHORIZATION;
use http::request::Parts;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Roles and bindings as the store has them; read again after each change.
#[derive(Default)]
pub(crate) struct RbacCache {
    known: Cache<Authorizer>,
}

const RESOURCES: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];

impl RbacCache {
    /// Something of `rbac.authorization.k8s.io` was written.
    pub(crate) fn changed(&self) {
        self.known.invalidate();
    }

    /// The roles and bindings of this moment.
    pub(crate) fn now(&self, store: &Store) -> Arc<Authorizer> {
        self.known.get(|| {
            let mut authorizer = Authorizer::default();
            for resource in RESOURCES {
                let page = store.list(&Key::resource_prefix(rbac::GROUP, resource), None, None, None);
                for object in page.map(|page| page.objects).unwrap_or_default() {
                    authorizer.put(resource, &encode::read(&object.body));
                }
            }
            authorizer
        })
    }
}

impl ApiState {
    /// Who sent this request. A wrong token is an error, none is the anonymous user.
    pub(crate) fn identify(&self, parts: &Parts, who: &Caller) -> Result<User, StatusError> {
        let headers = &parts.headers;
        let user = match who {
            Caller::Trusted(user) => user.clone(),
            Caller::Remote(certified) => match bearer(headers) {
                // A certificate was checked by the handshake; a token beside it is not needed.
                _ if certified.is_some() => certified.clone().unwrap_or_else(User::anonymous),
                Some(token) => self.user_of(token, &[]).ok_or_else(StatusError::unauthorized)?.0,
                None => User::anonymous(),
            },
        };
        audit::authenticated(parts, &user);
        self.impersonated(parts, user)
    }

    /// The user that a token stands for, and the audiences that it is good for.
    pub(crate) fn user_of(&self, token: &str, audiences: &[String]) -> Option<(User, Vec<String>)> {
        let tokens = self.tokens.as_ref()?;
        match tokens.authenticate(token, audiences, self.environment.now().as_second()).ok()? {
            TokenIdentity::Admin(user) => Some((user, Vec::new())),
            TokenIdentity::Account(claims) => {
                self.is_there(&claims).then(|| (claims.user(), claims.audiences.clone()))
            }
        }
    }

    /// Is the account of a token still there, and what the token is bound to?
    fn is_there(&self, claims: &Claims) -> bool {
        let (namespace, name, uid) = &claims.account;
        let lives = |resource: &str, name: &str, uid: &str| {
            let found = self.store.get(&Key::new("", resource, namespace, name));
            found.is_some_and(|object| encode::PartialObject::of(&object.body).metadata.uid == uid)
        };
        let bound = claims.bound.as_ref().is_none_or(|bound| match bound.kind.as_str() {
            "Pod" => lives("pods", &bound.name, &bound.uid),
            "Secret" => lives("secrets", &bound.name, &bound.uid),
            _ => true,
        });
        lives("serviceaccounts", name, uid) && bound
    }

    /// The user after impersonation, if the request asks for it and the user may.
    fn impersonated(&self, parts: &Parts, user: User) -> Result<User, StatusError> {
        let headers = &parts.headers;
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let groups: Vec<String> = headers
            .get_all("impersonate-group")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .map(str::to_owned)
            .collect();
        let Some(name) = text("impersonate-user") else {
            if groups.is_empty() && text("impersonate-uid").is_none() {
                return Ok(user);
            }
            return Err(StatusError::internal("requested impersonation without impersonating a user"));
        };
        let account = name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        let (resource, namespace, target) = match account {
            Some((namespace, account)) => ("serviceaccounts", namespace, account),
            None => ("users", "", name.as_str()),
        };
        let may = |resource: &str, namespace: &str, name: &str| {
            let target = Target::Resource { group: "", resource, subresource: "", namespace, name };
            self.authorize(&Attributes { user: &user, verb: "impersonate", target })
        };
        let asked = User { name: name.clone(), groups: groups.clone(), ..User::default() };
        audit::impersonated(parts, &asked);
        may(resource, namespace, target)?;
        for group in &groups {
            may("groups", "", group)?;
        }
        let mut other = match account {
            Some((namespace, account)) if groups.is_empty() => User::service_account(namespace, account, ""),
            _ if name == "system:anonymous" => User::anonymous(),
            _ => User::authenticated(name, groups),
        };
        other.extra = BTreeMap::new();
        audit::impersonated(parts, &other);
        Ok(other)
    }

    /// May they? Otherwise the error says why not.
    pub(crate) fn authorize(&self, attributes: &Attributes<'_>) -> Result<(), StatusError> {
        judged(attributes, self.rbac.now(&self.store).authorize(attributes))
    }

    /// May this call be made?
    pub(crate) fn authorize_request(
        &self,
        parts: &Parts,
        user: &User,
        info: &RequestInfo,
    ) -> Result<(), StatusError> {
        let target = match &info.target {
            None => Target::Path(&info.path),
            Some(target) => Target::Resource {
                group: &target.group,
                resource: &target.resource,
                subresource: &target.subresource,
                namespace: &target.namespace,
                name: &info.named,
            },
        };
        let attributes = Attributes { user, verb: info.verb, target };
        let decision = self.rbac.now(&self.store).authorize(&attributes);
        audit::decided(parts, &decision);
        judged(&attributes, decision)
    }
}

fn judged(attributes: &Attributes<'_>, decision: Decision) -> Result<(), StatusError> {
    match decision {
        Decision::Allow { .. } => Ok(()),
        Decision::NoOpinion { reason } => {
            let why = rbac::denial(attributes, &reason);
            let (subject, name) = match attributes.target {
                Target::Resource { group, resource, name, .. } => (Subject { group, name: resource }, name),
                Target::Path(_) => (Subject { group: "", name: "" }, ""),
            };
            Err(StatusError::forbidden(subject, name, &why))
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
