//! Each request passes here before its verb: authentication, impersonation, authorisation.

use crate::access::audit;
use crate::access::authn::{Claims, MASTERS, TokenIdentity, User};
use crate::access::impersonation::{Impersonation, Right};
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
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Roles and bindings as the store has them; each is read again after it has changed.
#[derive(Default)]
pub(crate) struct RbacCache {
    known: Cache<Authorizer>,
}

const RESOURCES: [&str; 4] = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"];

impl RbacCache {
    /// Anything may have been written.
    pub(crate) fn changed(&self) {
        self.known.invalidate();
    }

    /// This was written. It alone is read again: who writes often must not have all roles read as often.
    pub(crate) fn written(&self, store: &Store, key: &Key) {
        self.known.update(|authorizer| match store.get(key) {
            Some(object) => authorizer.put(key.resource(), &encode::read(&object.body)),
            None => authorizer.remove(key.resource(), key.namespace(), key.name()),
        });
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
    /// As whom this request is served: its sender, or who they impersonate.
    pub(crate) fn served_as(&self, parts: &Parts, sender: User) -> Result<User, StatusError> {
        audit::authenticated(parts, &sender);
        self.impersonated(parts, sender)
    }

    /// Who sent this request. A wrong token is an error, none is the anonymous user.
    pub(crate) fn sender(&self, headers: &HeaderMap, who: &Caller) -> Result<User, StatusError> {
        Ok(match who {
            Caller::Trusted(user) => user.clone(),
            Caller::Remote(certified) => match bearer(headers) {
                // A certificate was checked by the handshake; a token beside it is not needed.
                _ if certified.is_some() => certified.clone().unwrap_or_else(User::anonymous),
                Some(token) => self.user_of(token, &[]).ok_or_else(StatusError::unauthorized)?.0,
                None => User::anonymous(),
            },
        })
    }

    /// A controller's name is for the process itself: whoever could borrow it could write as whom they like.
    pub(crate) fn check_controller(&self, who: &Caller, served_as: &User) -> Result<(), StatusError> {
        let itself = matches!(who, Caller::Trusted(user) if user.name == served_as.name);
        if itself || !self.stamping.controllers.contains(&served_as.name) {
            return Ok(());
        }
        let why = format!("the user {:?} is this server's own", served_as.name);
        Err(StatusError::forbidden(Subject { group: "", name: "" }, "", &why))
    }

    /// What has all keys in it is for `system:masters` alone, whatever roles say: for who sent the request and as whom it is
    /// served, since a role can allow impersonation too.
    pub(crate) fn check_master(sent_by_one: bool, served_as: &User, path: &str) -> Result<(), StatusError> {
        if sent_by_one && served_as.is_master() {
            return Ok(());
        }
        let why =
            format!("only members of the group {MASTERS:?} may get path {path:?}, whatever roles allow");
        Err(StatusError::forbidden(Subject { group: "", name: "" }, "", &why))
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
        let now = self.environment.now();
        let lives = |resource: &str, namespace: &str, name: &str, uid: &str| {
            let found = self.store.get(&Key::new("", resource, namespace, name));
            found.is_some_and(|object| {
                let metadata = encode::PartialObject::of(&object.body).metadata;
                metadata.uid == uid && !is_long_gone(metadata.deletion_timestamp.as_deref(), now)
            })
        };
        let bound = claims.bound.as_ref().is_none_or(|bound| match bound.kind.as_str() {
            "Pod" => lives("pods", namespace, &bound.name, &bound.uid),
            "Secret" => lives("secrets", namespace, &bound.name, &bound.uid),
            "Node" => lives("nodes", "", &bound.name, &bound.uid),
            // Nothing here makes such a token.
            _ => false,
        });
        lives("serviceaccounts", namespace, name, uid) && bound
    }

    /// The user after impersonation, if the request asks for it and the user may.
    fn impersonated(&self, parts: &Parts, user: User) -> Result<User, StatusError> {
        let asked = Impersonation::read(&parts.headers)
            .map_err(|error| StatusError::bad_request(error.to_string()))?;
        let Some(asked) = asked else { return Ok(user) };
        let mut rights = asked.rights();
        let may = rights.try_for_each(|Right { group, resource, subresource, namespace, name }| {
            let target = Target::Resource { group, resource, subresource, namespace, name };
            self.authorize(&Attributes { user: &user, verb: "impersonate", target })
        });
        drop(rights);
        let other = asked.into_user();
        audit::impersonated(parts, &other); // who was refused is in the log too
        may.map(|()| other)
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

/// Was it deleted so long ago that its tokens are no good any more, though a finalizer holds it? An ending pod keeps its own
/// for a minute.
fn is_long_gone(deleted: Option<&str>, now: Timestamp) -> bool {
    const LEEWAY: SignedDuration = SignedDuration::from_secs(60);
    let deleted = deleted.and_then(|at| at.parse::<Timestamp>().ok());
    deleted.is_some_and(|at| now.duration_since(at) > LEEWAY)
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
