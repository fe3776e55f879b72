//! Requests, from what planners want, and what their answers tell.

use super::watch::resource;
use crate::controllers::action::{Action, Kind, Target};
use crate::controllers::cache::News;
use futures_util::{StreamExt, stream};
use kube::api::{
    DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::core::Request;
use kube::{Client, Error, Resource};
use serde_json::{Value, json};

/// How many pods come or go at once, per workload.
const AT_ONCE: usize = 16;

/// What came of a plan.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) news: Vec<(Kind, News)>,
    /// Why it is to be tried again.
    pub(super) failure: Option<Failure>,
}

/// Why a request was of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the API server refused: {0}")]
    Refused(#[from] Box<Error>),
    #[error("cannot build a request: {0}")]
    Request(#[from] kube::core::request::Error),
    #[error("cannot encode a request: {0}")]
    Encoding(#[from] serde_json::Error),
}

impl Failure {
    /// Did another client write or delete it first? Then a watch is about to say so.
    pub(super) fn is_race(&self) -> bool {
        matches!(self, Self::Refused(error) if matches!(&**error, Error::Api(status) if matches!(status.code, 404 | 409)))
    }
}

/// Carries out actions in their order; the first failure ends it.
pub(super) async fn carry_out(client: &Client, actions: Vec<Action>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut actions = actions.into_iter().peekable();
    while let Some(first) = actions.next() {
        let mut stage = vec![first];
        while let Some(next) = actions.next_if(|next| next.has_no_order() && stage[0].has_no_order()) {
            stage.push(next);
        }
        let requests = stage.into_iter().map(|action| one(client.clone(), action));
        let mut answers = stream::iter(requests).buffer_unordered(AT_ONCE);
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(news) => outcome.news.extend(news),
                Err(failure) => outcome.failure = Some(failure),
            }
        }
        if outcome.failure.is_some() {
            break;
        }
    }
    outcome
}

async fn one(client: Client, action: Action) -> Result<Option<(Kind, News)>, Failure> {
    let client = &client;
    match action {
        Action::Create(kind, body) => {
            let path = path(kind, body["metadata"]["namespace"].as_str());
            let request = Request::new(path).create(&PostParams::default(), serde_json::to_vec(&body)?)?;
            match ask(client, request).await {
                Ok(made) => Ok(Some((kind, News::Seen(made)))),
                // Nothing is made in a namespace that goes, and what waits for it goes too.
                Err(error) if ends(&error) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
        Action::Replace(kind, body) => {
            let meta = &body["metadata"];
            let name = meta["name"].as_str().unwrap_or_default();
            let path = path(kind, meta["namespace"].as_str());
            let request =
                Request::new(path).replace(name, &PostParams::default(), serde_json::to_vec(&body)?)?;
            Ok(Some((kind, News::Seen(ask(client, request).await?))))
        }
        Action::Patch { kind, target, status, mut body } => {
            // What was decided on must still be so.
            body["metadata"]["resourceVersion"] = target.version.to_string().into();
            let (patch, params) = (Patch::Merge(body), PatchParams::default());
            let request = Request::new(path(kind, Some(&target.namespace)));
            let request = if status {
                request.patch_subresource("status", &target.name, &params, &patch)?
            } else {
                request.patch(&target.name, &params, &patch)?
            };
            Ok(Some((kind, News::Seen(ask(client, request).await?))))
        }
        Action::Delete(kind, target) => delete(client, kind, &target).await,
    }
}

async fn delete(client: &Client, kind: Kind, target: &Target) -> Result<Option<(Kind, News)>, Failure> {
    let params = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        preconditions: Some(Preconditions { uid: Some(target.uid.clone()), resource_version: None }),
        ..DeleteParams::default()
    };
    let request = Request::new(path(kind, Some(&target.namespace))).delete(&target.name, &params)?;
    let gone = || {
        let meta = json!({"namespace": target.namespace, "name": target.name, "uid": target.uid});
        Some((kind, News::Deleted(json!({"metadata": meta}))))
    };
    match ask(client, request).await {
        // A pod may take its time to end, and others may have a finalizer; whatever else is answered is gone.
        Ok(last) if last["metadata"]["deletionTimestamp"].is_string() && lingers(&last) => {
            Ok(Some((kind, News::Seen(last))))
        }
        Ok(_) => Ok(gone()),
        Err(error) if matches!(&*error, Error::Api(status) if status.code == 404) => Ok(gone()),
        Err(error) => Err(error.into()),
    }
}

fn lingers(object: &Value) -> bool {
    let meta = &object["metadata"];
    let finalizers = meta["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    finalizers || meta["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0
}

async fn ask(client: &Client, request: http::Request<Vec<u8>>) -> Result<Value, Box<Error>> {
    client.request(request).await.map_err(Box::new)
}

/// Is it the namespace's end that refuses?
fn ends(error: &Error) -> bool {
    let Error::Api(status) = error else { return false };
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    status.code == 404 || causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
}

fn path(kind: Kind, namespace: Option<&str>) -> String {
    DynamicObject::url_path(&resource(kind), namespace)
}
