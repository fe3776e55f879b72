//! A new object.

use super::{Outcome, RequestContext, refused, validate};
use crate::access::audit;
use crate::http::answer::Answer;
use crate::http::decode;
use crate::http::negotiate;
use crate::http::request::WriteOptions;
use crate::http::status_error::{StatusError, Subject};
use crate::resources::resource::Resource;
use crate::resources::strategy;
use crate::storage::store::{Key, WriteError};
use atoll_apimachinery::apply::{self, Operation};
use atoll_apimachinery::invalid::TOLD_MOST;
use http::StatusCode;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};

/// How many names are tried for `generateName`.
const NAME_ATTEMPTS: usize = 8;

impl RequestContext<'_> {
    pub(crate) async fn create(&self) -> Result<Answer, StatusError> {
        let options = WriteOptions::parse(&self.info.query, "CreateOptions", None)?;
        let input = negotiate::input(&self.parts.headers, self.resource.custom.is_none())?;
        let mut object =
            decode::object(&self.resource, &self.body, input, options.validation, &mut self.warnings())?;
        self.check_namespace(&mut object)?;
        self.check_counts(&object, None)?;
        wipe(&mut object);
        dedup_owners(&mut object, &mut self.warnings());
        let by = self.manager(&options, Operation::Update);
        apply::track(None, &mut object, &self.resource.schema, &by, &self.state.environment.stamp());
        let made = Box::pin(self.make(object, &options)).await?;
        Ok(self.answer_outcome(StatusCode::CREATED, &made))
    }

    /// Creates an object that is decoded and has its managed fields.
    pub(super) async fn make(&self, object: Value, options: &WriteOptions) -> Result<Outcome, StatusError> {
        let state = self.state.clone();
        // While this is held the namespace can't be deleted.
        let _there = state.namespaces.read().await;
        let generated = object["metadata"]["name"].as_str().unwrap_or_default().is_empty()
            && !object["metadata"]["generateName"].as_str().unwrap_or_default().is_empty();
        for _ in 1..if generated { NAME_ATTEMPTS } else { 1 } {
            match Box::pin(self.make_once(object.clone(), options)).await {
                Err((_, true)) => {}
                Err((error, false)) => return Err(error),
                Ok(made) => return Ok(made),
            }
        }
        Box::pin(self.make_once(object, options)).await.map_err(|(error, _)| error)
    }

    /// One attempt; true beside the error if another name may help.
    async fn make_once(
        &self,
        mut object: Value,
        options: &WriteOptions,
    ) -> Result<Outcome, (StatusError, bool)> {
        let plain = |error: StatusError| (error, false);
        let resource = &self.resource;
        let metadata = &mut object["metadata"];
        metadata["uid"] = self.state.environment.uid().into();
        metadata["creationTimestamp"] = self.state.environment.stamp().into();
        let prefix = metadata["generateName"].as_str().unwrap_or_default().to_owned();
        let generated = metadata["name"].as_str().unwrap_or_default().is_empty() && !prefix.is_empty();
        if generated {
            // There must be room for the letters that follow.
            let short: String = prefix.chars().take(58).collect();
            metadata["name"] = format!("{short}{}", self.state.environment.suffix()).into();
        }
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        audit::named(self.parts, &name);
        let given_revision = metadata["resourceVersion"].as_str().unwrap_or_default().to_owned();
        self.check_namespace_there(resource, &name).map_err(plain)?;
        self.check_terminating(&name).map_err(plain)?;
        strategy::prepare_create(resource, &mut object);
        decode::tidy(resource, &mut object);
        self.state.stamping.stamp(resource, None, self.user, &mut object, None);
        let reservation = self.state.addresses.reserve(resource, &mut object, None, &self.state.environment);
        atoll_apimachinery::builtin::stored(&mut object, &resource.schema);
        let errors = validate::create(resource, &object);
        if !errors.is_empty() {
            return Err(plain(StatusError::invalid(resource.kind(), &name, &errors)));
        }
        let reservation =
            reservation.map_err(|errors| plain(StatusError::invalid(resource.kind(), &name, &errors)))?;
        self.check_escalation(&object, None).map_err(plain)?;
        self.warn_of(&object, None);
        self.admit("CREATE", &name, Some(&object), None, options.dry_run).map_err(plain)?;
        if !given_revision.is_empty() && given_revision != "0" {
            return Err(plain(StatusError::plain(
                "resourceVersion should not be set on objects to be created",
            )));
        }
        let key = resource.key(self.namespace(), &name);
        if options.dry_run {
            if let Some(found) = self.state.store.get(&key) {
                let error = refused(resource, &name, &WriteError::Exists(found));
                return Err((error, generated));
            }
            return Ok(Outcome::Shown(object));
        }
        match self.state.write(resource, key, &object, None).await {
            Ok(written) => {
                reservation.keep();
                Ok(Outcome::Stored(written))
            }
            Err(WriteError::Exists(_)) if generated => {
                Err((StatusError::no_free_name(resource.plural(), &name), true))
            }
            Err(error) => Err(plain(refused(resource, &name, &error))),
        }
    }

    /// The object's namespace is the request's.
    pub(super) fn check_namespace(&self, object: &mut Value) -> Result<(), StatusError> {
        let said = object["metadata"]["namespace"].as_str().unwrap_or_default();
        if self.resource.namespaced {
            if !said.is_empty() && said != self.target.namespace {
                let why =
                    "the namespace of the provided object does not match the namespace sent on the request";
                return Err(StatusError::bad_request(why));
            }
            object["metadata"]["namespace"] = self.target.namespace.as_str().into();
        } else if !said.is_empty() {
            if self.resource.custom.is_none() && !self.resource.is("", "namespaces") {
                return Err(StatusError::bad_request("namespace must not be set on cluster-scoped objects"));
            }
            if let Some(fields) = object["metadata"].as_object_mut() {
                fields.remove("namespace");
            }
        }
        Ok(())
    }

    /// Nothing is created in a namespace that is not there, or that is going.
    fn check_namespace_there(&self, resource: &Resource, object: &str) -> Result<(), StatusError> {
        if !resource.namespaced {
            return Ok(());
        }
        let name = &self.target.namespace;
        let namespaces = Subject { group: "", name: "namespaces" };
        let Some(found) = self.state.store.get(&Key::new("", "namespaces", "", name)) else {
            return Err(StatusError::not_found(namespaces, name));
        };
        let partial = crate::http::encode::PartialObject::of(&found.body);
        if partial.metadata.deletion_timestamp.is_some() {
            let why =
                format!("unable to create new content in namespace {name} because it is being terminated");
            let cause = json!({"reason": "NamespaceTerminating", "message": format!("namespace {name} is being terminated"), "field": "metadata.namespace"});
            return Err(StatusError::forbidden(resource.plural(), object, &why).because(cause));
        }
        Ok(())
    }

    /// Nothing is created of a kind that is going.
    fn check_terminating(&self, name: &str) -> Result<(), StatusError> {
        if self.resource.custom.as_ref().is_some_and(|custom| custom.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(StatusError::forbidden(self.resource.plural(), name, why));
        }
        Ok(())
    }

    /// Says what is legal but unwise.
    pub(super) fn warn_of(&self, object: &Value, old: Option<&Value>) {
        if self.resource.custom.is_none() {
            return;
        }
        let known: BTreeSet<&str> =
            old.map(|old| strategy::strings(&old["metadata"]["finalizers"]).collect()).unwrap_or_default();
        for name in strategy::strings(&object["metadata"]["finalizers"])
            .filter(|name| !known.contains(name))
            .take(TOLD_MOST)
        {
            if !name.contains('/') && !matches!(name, "orphan" | "foregroundDeletion") {
                self.warnings().push(format!(
                    "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"
                ));
            }
        }
    }
}

/// What only the server may set is not taken from a client.
fn wipe(object: &mut Value) {
    if let Some(fields) = object["metadata"].as_object_mut() {
        for field in
            ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
        {
            fields.remove(field);
        }
    }
}

/// An owner that is named twice is named once.
pub(super) fn dedup_owners(object: &mut Value, warnings: &mut Vec<String>) {
    let Some(owners) = object["metadata"].get_mut("ownerReferences").and_then(Value::as_array_mut) else {
        return;
    };
    let mut seen = HashSet::new();
    let mut twice: Vec<String> = Vec::new();
    owners.retain(|owner| {
        let first = seen.insert(owner.to_string());
        if !first && twice.len() < TOLD_MOST {
            twice.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
        first
    });
    if !twice.is_empty() {
        warnings.push(format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        ));
    }
}
