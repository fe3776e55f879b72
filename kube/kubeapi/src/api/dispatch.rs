//! One request: who, what, may they, and which function does it.

use super::Core;
use super::service::Who;
use crate::access::authn::User;
use crate::access::reviews;
use crate::http::answer::Answer;
use crate::http::negotiate::{self, Notation};
use crate::http::refusal::Refusal;
use crate::http::request::{Call, Target};
use crate::resources::discovery;
use crate::resources::openapi;
use crate::resources::resource::{Resource, Subresource};
use crate::storage::backup::{BACKUP_PATH, Backup};
use crate::verbs::Ask;
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use serde_json::json;
use std::sync::Arc;

impl Core {
    /// Answers a request.
    pub(crate) async fn answer(self: &Arc<Self>, parts: &Parts, body: Bytes, who: &Who) -> Answer {
        let notation = match negotiate::output(&parts.headers) {
            Ok(output) => output.notation,
            Err(_) => Notation::Json,
        };
        match self.try_answer(parts, body, who).await {
            Ok(answer) => answer,
            Err(refusal) => Answer::refusal(&refusal, notation),
        }
    }

    async fn try_answer(self: &Arc<Self>, parts: &Parts, body: Bytes, who: &Who) -> Result<Answer, Refusal> {
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let call = Call::parse(&parts.method, path, query)
            .ok_or_else(|| Refusal::bad_request("the path is not valid UTF-8"))?;
        let user = self.identify(&parts.headers, who)?;
        self.authorize_call(&user, &call)?;
        match &call.target {
            None => Ok(self.page(parts, &call)),
            Some(target) => Box::pin(self.resource(parts, body, &user, &call, target)).await,
        }
    }

    /// Paths that are no resources.
    fn page(&self, parts: &Parts, call: &Call) -> Answer {
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Answer::refusal(&Refusal::method_not_allowed(), Notation::Json);
        }
        let registry = self.served.now();
        match call.path.trim_end_matches('/') {
            page @ ("/healthz" | "/livez" | "/readyz") if call.query.first("verbose").is_some() => {
                let name = page.trim_start_matches('/');
                Answer::text(StatusCode::OK, &format!("[+]ping ok\n[+]store ok\n{name} check passed\n"))
            }
            "/healthz" | "/livez" | "/readyz" => Answer::text(StatusCode::OK, "ok"),
            "/.well-known/openid-configuration" => Answer::value(StatusCode::OK, &openid(), Notation::Json),
            path if path.starts_with("/healthz/")
                || path.starts_with("/livez/")
                || path.starts_with("/readyz/") =>
            {
                Answer::text(StatusCode::OK, "ok")
            }
            "/version" => Answer::value(StatusCode::OK, &self.version_info(), Notation::Json),
            "/openid/v1/jwks" => match &self.bearers {
                Some(bearers) => Answer::value(StatusCode::OK, &bearers.key().key_set(), Notation::Json),
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
        match Backup::take(&self.store, data_dir) {
            Ok(backup) => Answer::stream(futures_util::stream::iter(backup)),
            Err(error) => Answer::refusal(&Refusal::internal(&error.to_string()), Notation::Json),
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
        user: &User,
        call: &Call,
        target: &Target,
    ) -> Result<Answer, Refusal> {
        let registry = self.served.now();
        let Some(resource) = registry.find(&target.group, &target.version, &target.resource) else {
            // Below a built-in version somebody knows that there is no such resource; elsewhere there is just no page.
            let known = registry.version(&target.group, &target.version);
            let built_in =
                known.is_some_and(|version| version.resources.values().any(|one| one.custom.is_none()));
            return if built_in { Err(Refusal::unknown_resource()) } else { Ok(Answer::no_page()) };
        };
        let missing = || {
            if resource.custom.is_some() { Ok(Answer::no_page()) } else { Err(Refusal::unknown_resource()) }
        };
        let across = matches!(call.verb, "list" | "watch") && target.name.is_empty();
        let in_namespace = !target.namespace.is_empty();
        let is_namespace = resource.is("", "namespaces") && target.name == target.namespace;
        if target.deeper || (!resource.namespaced && in_namespace && !is_namespace) {
            return missing();
        }
        if resource.namespaced && !in_namespace && !across {
            return match (resource.custom.is_some(), call.verb) {
                (false, "create" | "deletecollection") => Err(Refusal::method_not_allowed()),
                _ => missing(),
            };
        }
        let subresource = match target.subresource.as_str() {
            "" => None,
            name => match resource.subresource(name) {
                Some(known) => Some(known.clone()),
                None if resource.custom.is_some() => {
                    return Err(Refusal::not_found(resource.plural(), &target.name));
                }
                None => return Err(Refusal::unknown_resource()),
            },
        };
        let resource = Arc::clone(resource);
        let ask = Ask::new(self, parts, user, call, target, resource, subresource, body)?;
        Box::pin(route(ask)).await
    }
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

async fn route(ask: Ask<'_>) -> Result<Answer, Refusal> {
    let resource = Arc::clone(&ask.resource);
    if resource.verbs == ["create"] {
        return match ask.call.verb {
            "create" => reviews::answer(&ask),
            _ => Err(Refusal::method_not_allowed()),
        };
    }
    match (&ask.subresource, ask.call.verb) {
        (None, "get") => ask.get(),
        (None, "list") => ask.list(),
        (None, "watch") => ask.watch(),
        (None, "create") if ask.target.name.is_empty() => ask.create().await,
        (None, "update") if !ask.target.name.is_empty() => ask.update().await,
        (None, "patch") if !ask.target.name.is_empty() => ask.patch().await,
        (None, "delete") => ask.delete().await,
        (None, "deletecollection") if allows(&resource, "deletecollection") => ask.delete_collection().await,
        (Some(Subresource::Status), "get") => ask.get(),
        (Some(Subresource::Status | Subresource::Finalize), "update") => ask.update().await,
        (Some(Subresource::Status), "patch") => ask.patch().await,
        (Some(Subresource::Scale(_)), "get") => ask.get_scale(),
        (Some(Subresource::Scale(_)), "update") => ask.update_scale().await,
        (Some(Subresource::Scale(_)), "patch") => ask.patch_scale().await,
        (Some(Subresource::Token), "create") => reviews::token(&ask),
        (Some(Subresource::Log), "get") => ask.log(),
        (Some(Subresource::Exec | Subresource::Attach), "get" | "create") => ask.session(),
        (_, verb) if resource.custom.is_some() => Err(Refusal::not_supported(resource.plural(), verb)),
        _ => Err(Refusal::method_not_allowed()),
    }
}

fn allows(resource: &Resource, verb: &str) -> bool {
    resource.verbs.contains(&verb)
}
