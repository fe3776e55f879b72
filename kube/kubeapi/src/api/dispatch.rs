//! One request: who, what, may they, and which function does it.

use super::ApiState;
use super::service::Caller;
use crate::access::authn::User;
use crate::access::reviews;
use crate::aggregated::answer as aggregated;
use crate::flow::weigh::{self, Load};
use crate::http::answer::Answer;
use crate::http::negotiate::{self, MediaType, Shape};
use crate::http::request::{RequestInfo, Target};
use crate::http::server::Link;
use crate::http::status_error::StatusError;
use crate::resources::discovery;
use crate::resources::openapi;
use crate::resources::resource::{Resource, Subresource};
use crate::storage::backup::{BACKUP_PATH, Backup};
use crate::verbs::RequestContext;
use atoll_apimachinery::admission::Request;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::json;
use std::sync::Arc;

/// A request that its user may make, as far as its head tells.
pub(crate) struct Admitted {
    pub(crate) info: RequestInfo,
    /// Whom it is made for.
    pub(crate) user: User,
    /// Whose seats it takes: those of the user (or the namespace of the account) who sent it, whomever they impersonate. None for the administrators' group
    /// and for callers in this process.
    pub(crate) payer: Option<String>,
    /// The connection; none within the process.
    pub(crate) link: Option<Arc<Link>>,
}

impl ApiState {
    /// Who asks for what, and may they? Nothing of the body is read before.
    pub(crate) fn admitted(&self, parts: &Parts, who: &Caller) -> Result<Admitted, StatusError> {
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let info = RequestInfo::parse(&parts.method, path, query)
            .ok_or_else(|| StatusError::bad_request("the path is not valid UTF-8"))?;
        let sender = self.sender(&parts.headers, who)?;
        let master = sender.is_master();
        let exempt = master || matches!(who, Caller::Trusted(_));
        let payer = (!exempt).then(|| sender.payer());
        let user = self.served_as(parts, sender)?;
        self.check_controller(who, &user)?;
        self.authorize_request(parts, &user, &info)?;
        if is_own_path(&info.path) {
            Self::check_master(master, &user, &info.path)?;
        }
        Ok(Admitted { info, user, payer, link: None })
    }

    /// What is known of a request's weight before it is carried out.
    pub(crate) fn load(&self, parts: &Parts, admitted: &Admitted, body: usize) -> Load {
        let (info, load) = (&admitted.info, Load { body, ..Load::default() });
        let Some(target) = &info.target else {
            return Load { dear: info.path.starts_with("/openapi"), ..load };
        };
        let registry = self.served.now();
        let Some(resource) = registry.find(&target.group, &target.version, &target.resource) else {
            return load;
        };
        let namespace = if resource.namespaced { target.namespace.as_str() } else { "" };
        let operation = match info.verb {
            "create" => "CREATE",
            "update" | "patch" => "UPDATE",
            "delete" | "deletecollection" => "DELETE",
            _ => "",
        };
        let listed = if weigh::lists(info) {
            self.store.weigh(&resource.prefix(namespace), weigh::HEAVY_LIST)
        } else {
            0
        };
        let stored = if target.name.is_empty() {
            0
        } else {
            self.store.get(&resource.key(namespace, &target.name)).map_or(0, |object| object.body.len())
        };
        if operation.is_empty() {
            let formed = negotiate::output(&parts.headers).is_ok_and(|output| {
                output.media_type != MediaType::Json || matches!(output.shape, Shape::Table(_))
            });
            return Load { listed: listed.max(weigh::shown(stored, formed)), ..load };
        }
        let ruled = resource.custom.as_ref().is_some_and(|custom| custom.rules.are_dear());
        let asked = Request {
            operation,
            group: &resource.group,
            version: &resource.version,
            kind: &resource.names.kind,
            resource: &resource.names.plural,
            subresource: &target.subresource,
            name: &target.name,
            namespace,
            ..Request::default()
        };
        Load { stored, listed, dear: ruled || self.policies.are_dear(&self.store, &asked), ..load }
    }

    /// Carries a request out.
    pub(crate) async fn carry_out(
        self: &Arc<Self>,
        parts: &Parts,
        body: Bytes,
        admitted: &Admitted,
    ) -> Result<Answer, StatusError> {
        match &admitted.info.target {
            None => Ok(self.page(parts, &admitted.info)),
            Some(target) => Box::pin(self.resource(parts, body, admitted, target)).await,
        }
    }

    /// Paths that are no resources.
    fn page(&self, parts: &Parts, info: &RequestInfo) -> Answer {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Answer::error(&StatusError::method_not_allowed(), MediaType::Json);
        }
        let registry = self.served.now();
        match info.path.trim_end_matches('/') {
            page @ ("/healthz" | "/livez" | "/readyz") if info.query.first("verbose").is_some() => {
                let name = page.trim_start_matches('/');
                Answer::text(StatusCode::OK, &format!("[+]ping ok\n[+]store ok\n{name} check passed\n"))
            }
            "/healthz" | "/livez" | "/readyz" => Answer::text(StatusCode::OK, "ok"),
            "/.well-known/openid-configuration" => Answer::value(StatusCode::OK, &openid(), MediaType::Json),
            path if path.starts_with("/healthz/")
                || path.starts_with("/livez/")
                || path.starts_with("/readyz/") =>
            {
                Answer::text(StatusCode::OK, "ok")
            }
            "/version" => Answer::value(StatusCode::OK, &self.version_info(), MediaType::Json),
            "/openid/v1/jwks" => match &self.tokens {
                Some(tokens) => Answer::value(StatusCode::OK, &tokens.key_set(), MediaType::Json),
                None => Answer::no_page(),
            },
            BACKUP_PATH => self.backup(),
            path if path.starts_with("/openapi") => openapi::page(&registry, path, parts),
            path => discovery::page(&registry, path, parts).unwrap_or_else(Answer::no_page),
        }
    }

    /// A backup goes out while it is read: it is of one revision, and of what is in memory.
    fn backup(&self) -> Answer {
        let Some(data_dir) = &self.data_dir else { return Answer::no_page() };
        match Backup::take(&self.store, data_dir, &self.keys) {
            Ok(backup) => Answer::stream(futures_util::stream::iter(backup)),
            Err(error) => Answer::error(&StatusError::internal(&error.to_string()), MediaType::Json),
        }
    }

    fn version_info(&self) -> serde_json::Value {
        let mut numbers = self.version.split('.');
        json!({
            "major": numbers.next(), "minor": numbers.next(), "gitVersion": format!("v{}+atoll", self.version),
            "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
            "goVersion": "", "compiler": "rustc", "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        })
    }

    async fn resource(
        self: &Arc<Self>,
        parts: &Parts,
        body: Bytes,
        admitted: &Admitted,
        target: &Target,
    ) -> Result<Answer, StatusError> {
        let info = &admitted.info;
        let registry = self.served.now();
        let Some(resource) = registry.find(&target.group, &target.version, &target.resource) else {
            // Below a built-in version the answer is a Status of an unknown resource; elsewhere it is a plain 404.
            let known = registry.version(&target.group, &target.version);
            let built_in =
                known.is_some_and(|version| version.resources.values().any(|one| one.custom.is_none()));
            return if built_in { Err(StatusError::unknown_resource()) } else { Ok(Answer::no_page()) };
        };
        if let Some(answerer) = &resource.aggregated {
            let now = self.environment.now();
            return aggregated::carry_out(
                answerer,
                resource,
                (parts, body),
                &admitted.user,
                (info, target),
                now,
            )
            .await;
        }
        let missing = || {
            if resource.custom.is_some() {
                Ok(Answer::no_page())
            } else {
                Err(StatusError::unknown_resource())
            }
        };
        let across = matches!(info.verb, "list" | "watch") && target.name.is_empty();
        let in_namespace = !target.namespace.is_empty();
        let is_namespace = resource.is("", "namespaces") && target.name == target.namespace;
        if target.deeper || (!resource.namespaced && in_namespace && !is_namespace) {
            return missing();
        }
        if resource.namespaced && !in_namespace && !across {
            return match (resource.custom.is_some(), info.verb) {
                (false, "create" | "deletecollection") => Err(StatusError::method_not_allowed()),
                _ => missing(),
            };
        }
        let subresource = match target.subresource.as_str() {
            "" => None,
            name => match resource.subresource(name) {
                Some(known) => Some(known.clone()),
                None if resource.custom.is_some() => {
                    return Err(StatusError::not_found(resource.plural(), &target.name));
                }
                None => return Err(StatusError::unknown_resource()),
            },
        };
        let resource = Arc::clone(resource);
        let context = RequestContext::new(self, parts, admitted, target, resource, subresource, body)?;
        Box::pin(route(context)).await
    }
}

/// Everything below `/atoll/` is the hub's own: it has all keys in it.
fn is_own_path(path: &str) -> bool {
    path.trim_start_matches('/').split('/').next() == BACKUP_PATH.trim_start_matches('/').split('/').next()
}

/// How tokens of service accounts can be checked elsewhere.
fn openid() -> serde_json::Value {
    json!({
        "issuer": crate::access::authn::ISSUER,
        "jwks_uri": format!("{}/openid/v1/jwks", crate::access::authn::ISSUER),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

async fn route(context: RequestContext<'_>) -> Result<Answer, StatusError> {
    let resource = Arc::clone(&context.resource);
    if resource.verbs == ["create"] {
        return match context.info.verb {
            "create" => reviews::answer(&context),
            _ => Err(StatusError::method_not_allowed()),
        };
    }
    match (&context.subresource, context.info.verb) {
        (None, "get") => context.get(),
        (None, "list") => context.list(),
        (None, "watch") => context.watch(),
        (None, "create") if context.target.name.is_empty() => context.create().await,
        (None, "update") if !context.target.name.is_empty() => context.update().await,
        (None, "patch") if !context.target.name.is_empty() => context.patch().await,
        (None, "delete") => context.delete().await,
        (None, "deletecollection") if allows(&resource, "deletecollection") => {
            context.delete_collection().await
        }
        (Some(Subresource::Status), "get") => context.get(),
        (Some(Subresource::Status | Subresource::Finalize), "update") => context.update().await,
        (Some(Subresource::Status), "patch") => context.patch().await,
        (Some(Subresource::Scale(_)), "get") => context.get_scale(),
        (Some(Subresource::Scale(_)), "update") => context.update_scale().await,
        (Some(Subresource::Scale(_)), "patch") => context.patch_scale().await,
        (Some(Subresource::Token), "create") => reviews::token(&context),
        (Some(Subresource::Log), "get") => context.log(),
        (Some(Subresource::Exec | Subresource::Attach), "get" | "create") => context.session(),
        (_, verb) if resource.custom.is_some() => Err(StatusError::not_supported(resource.plural(), verb)),
        _ => Err(StatusError::method_not_allowed()),
    }
}

fn allows(resource: &Resource, verb: &str) -> bool {
    resource.verbs.contains(&verb)
}
