//! Requests on objects of any kind.

use anyhow::Context;
use futures_util::StreamExt;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, WARNING};
use kube::client::Body;
use kube::core::{Status, WatchEvent};
use serde_json::{Value, json};

use super::catalog::{Catalog, Resource, escaped};

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
    client: kube::Client,
    pub(crate) namespace: String,
}

impl Rest {
    pub(crate) fn new(config: kube::Config) -> anyhow::Result<Self> {
        let namespace = config.default_namespace.clone();
        Ok(Self { client: atoll_hub::connect::client(config)?, namespace })
    }

    /// What the cluster serves.
    pub(crate) async fn catalog(&self) -> Result<Catalog, kube::Error> {
        let core = self.client.list_core_api_versions_aggregated().await?;
        let named = self.client.list_api_groups_aggregated().await?;
        Ok(Catalog::read(&[core, named]))
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
        let status = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
            Status::failure(String::from_utf8_lossy(&bytes).trim(), "").with_code(head.status.as_u16())
        });
        Err(kube::Error::Api(status.boxed()))
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
            match event.context("the watch broke off")? {
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

/// How an object is applied.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Apply {
    /// Take fields over that others own.
    pub(crate) force: bool,
    /// Only try.
    pub(crate) dry_run: bool,
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
