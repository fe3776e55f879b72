//! Requests on objects of any kind.

use anyhow::Context;
use futures_util::StreamExt;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, WARNING};
use kube::client::Body;
use kube::core::{Status, WatchEvent};
use serde_json::{Value, json};

use super::catalog::{Catalog, Resource, escaped};
use crate::context::Reached;
use crate::failure::Failure;

/// A table rather than objects.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// What comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Objects,
    Table,
}

impl Form {
    fn accept(self) -> &'static str {
        match self {
            Self::Objects => "application/json",
            Self::Table => TABLE,
        }
    }
}

/// A cluster, and a namespace in it.
#[derive(Clone)]
pub(crate) struct Rest {
    pub(crate) client: kube::Client,
    pub(crate) namespace: String,
    /// The member that it is, if it is reached with the hub's credentials.
    as_hub: Option<String>,
}

impl Rest {
    pub(crate) fn new(config: kube::Config) -> Result<Self, Failure> {
        Self::of(Reached { config, as_hub: None })
    }

    pub(crate) fn of(reached: Reached) -> Result<Self, Failure> {
        let namespace = reached.config.default_namespace.clone();
        let client = atoll_hub::connect::client(reached.config).map_err(|error| Failure::connect(&error))?;
        Ok(Self { client, namespace, as_hub: reached.as_hub })
    }

    /// A request that failed; `permissions` is what has to be granted for it, as in `join --allow-propagation`.
    pub(crate) fn failure(&self, what: &str, error: &kube::Error, permissions: &str) -> Failure {
        let failure = Failure::request(what, error);
        let Some(member) = &self.as_hub else { return failure };
        match error {
            kube::Error::Api(status) if status.code == 403 => failure.with_hint(&format!(
                "the hub lacks this permission in `{member}`; grant it with `atoll join {member} --cluster-kubeconfig FILE \
                 --allow-propagation={permissions}`"
            )),
            kube::Error::Api(status) if status.code == 401 => failure.with_hint(&format!(
                "the hub's credentials for `{member}` are no longer valid; renew them with `atoll join {member} --cluster-kubeconfig FILE`"
            )),
            kube::Error::Api(_) => failure,
            _ => failure.with_hint(&format!(
                "check `atoll clusters -o wide`; the API of `{member}` must also be reachable from this host"
            )),
        }
    }

    /// What the cluster serves.
    pub(crate) async fn catalog(&self) -> Result<Catalog, Failure> {
        let asked = async {
            let core = self.client.list_core_api_versions_aggregated().await?;
            let named = self.client.list_api_groups_aggregated().await?;
            Ok(Catalog::read(&[core, named]))
        };
        asked.await.map_err(|error| self.failure("cannot discover the API resources", &error, "namespaces"))
    }

    pub(crate) async fn get(&self, path: &str, form: Form) -> Result<Value, kube::Error> {
        let request = Request::get(path).header(ACCEPT, form.accept());
        self.client.request(request.body(Vec::new()).map_err(kube::Error::HttpError)?).await
    }

    /// One object; none if it is not there.
    pub(crate) async fn find(&self, path: &str) -> Result<Option<Value>, kube::Error> {
        match self.get(path, Form::Objects).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 && status.reason == "NotFound" => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies an object; the answer is what it is now. Warnings go to stderr.
    pub(crate) async fn apply(
        &self,
        path: &str,
        object: &Value,
        options: Apply,
    ) -> Result<Value, kube::Error> {
        let mut path =
            format!("{path}?fieldManager={}&fieldValidation=Strict", atoll_api::names::CLI_FIELD_MANAGER);
        if options.force {
            path.push_str("&force=true");
        }
        if options.dry_run {
            path.push_str("&dryRun=All");
        }
        let request = Request::patch(path).header(CONTENT_TYPE, "application/apply-patch+yaml");
        let request = request.header(ACCEPT, Form::Objects.accept());
        let body = serde_json::to_vec(object).map_err(kube::Error::SerdeError)?;
        let request = request.body(Body::from(body)).map_err(kube::Error::HttpError)?;
        let response = self.client.send(request).await?;
        let (head, body) = response.into_parts();
        for warning in head.headers.get_all(WARNING).iter().filter_map(|value| value.to_str().ok()) {
            eprintln!("Warning: {}", warning_text(warning));
        }
        let bytes = body.collect_bytes().await?;
        if head.status.is_success() {
            return serde_json::from_slice(&bytes).map_err(kube::Error::SerdeError);
        }
        Err(refusal(head.status, &bytes))
    }

    /// Makes an object in its collection; fails if it is there.
    pub(crate) async fn create(
        &self,
        collection: &str,
        object: &Value,
        dry_run: bool,
    ) -> Result<Value, kube::Error> {
        let request = Request::post(by_person(collection, dry_run)).header(CONTENT_TYPE, "application/json");
        let body = object.to_string().into_bytes();
        self.client.request(request.body(body).map_err(kube::Error::HttpError)?).await
    }

    /// Changes what the patch names; a `resourceVersion` in it has to be the one that is there.
    pub(crate) async fn merge(&self, path: &str, patch: &Value, dry_run: bool) -> Result<Value, kube::Error> {
        let request = Request::patch(by_person(path, dry_run));
        let request = request.header(CONTENT_TYPE, "application/merge-patch+json");
        let body = patch.to_string().into_bytes();
        self.client.request(request.body(body).map_err(kube::Error::HttpError)?).await
    }

    /// Deletes an object, and what it owns in the background.
    pub(crate) async fn delete(&self, path: &str) -> Result<Value, kube::Error> {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        let request = Request::delete(path).header(CONTENT_TYPE, "application/json");
        self.client
            .request(request.body(options.to_string().into_bytes()).map_err(kube::Error::HttpError)?)
            .await
    }

    /// What happens after a revision, until the server ends it or `each` has enough.
    ///
    /// Not by `atoll_watch`: rows come as the server prints them, and whoever looks at a terminal wants to see that a watch has ended.
    pub(crate) async fn watch(
        &self,
        path: &str,
        form: Form,
        revision: &str,
        mut each: impl FnMut(Value) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let sign = if path.contains('?') { '&' } else { '?' };
        let path = format!("{path}{sign}watch=true&resourceVersion={}", escaped(revision));
        let request = Request::get(path).header(ACCEPT, form.accept()).body(Vec::new())?;
        let events = self.client.request_events::<Value>(request).await?;
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event.context("the watch failed")? {
                WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                    if !each(object)? {
                        return Ok(());
                    }
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            }
        }
        Ok(())
    }
}

/// What an API says when it says no.
pub(crate) fn refusal(code: http::StatusCode, body: &[u8]) -> kube::Error {
    let status: Status = serde_json::from_slice(body).unwrap_or_else(|_| {
        Status::failure(String::from_utf8_lossy(body).trim(), "").with_code(code.as_u16())
    });
    kube::Error::Api(status.boxed())
}

/// How an object is applied.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Apply {
    /// Take fields over that others own.
    pub(crate) force: bool,
    /// Only try.
    pub(crate) dry_run: bool,
}

/// A path that says who writes, and whether that is only tried.
fn by_person(path: &str, dry_run: bool) -> String {
    let query =
        [("fieldManager", atoll_api::names::CLI_FIELD_MANAGER), ("dryRun", if dry_run { "All" } else { "" })];
    with_query(path, &query)
}

/// A path with a query of what is not empty.
pub(crate) fn with_query(path: &str, pairs: &[(&str, &str)]) -> String {
    let said = pairs.iter().filter(|(_, value)| !value.is_empty());
    let query: Vec<String> = said.map(|(key, value)| format!("{key}={}", escaped(value))).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

/// What a resource's objects are called in an error.
pub(crate) fn subject(resource: &Resource, name: &str) -> String {
    format!("{}/{name}", resource.label())
}

/// The words of a warning: `299 - "words"`.
fn warning_text(header: &str) -> String {
    let quoted = header.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"')).map(|(text, _)| text);
    quoted.unwrap_or(header).replace("\\\"", "\"").replace("\\\\", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_said_without_its_code() {
        assert_eq!(warning_text(r#"299 - "unknown field \"x\"""#), "unknown field \"x\"");
        assert_eq!(warning_text("odd"), "odd");
    }

    #[test]
    fn only_what_is_said_is_asked() {
        assert_eq!(with_query("/p", &[("labelSelector", ""), ("limit", "")]), "/p");
        assert_eq!(
            with_query("/p", &[("labelSelector", "a=b,c"), ("x", "1")]),
            "/p?labelSelector=a%3Db%2Cc&x=1"
        );
    }
}
