//! The number of replicas of anything that has one, in the same shape for all.

use super::RequestContext;
use super::patch::{Patch, PatchKind};
use super::update::Absent;
use crate::http::answer::Answer;
use crate::http::decode;
use crate::http::negotiate;
use crate::http::request::WriteOptions;
use crate::http::status_error::{StatusError, Subject};
use crate::resources::resource::{Scale, Subresource};
use crate::resources::strategy;
use crate::resources::view;
use atoll_apimachinery::apply::{self, Operation};
use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::selector::labels;
use atoll_apimachinery::strict;
use http::StatusCode;
use serde_json::{Value, json};

const SCALE: Subject<'static> = Subject { group: "autoscaling", name: "Scale" };

impl RequestContext<'_> {
    fn scale_paths(&self) -> Result<&Scale, StatusError> {
        match &self.subresource {
            Some(Subresource::Scale(scale)) => Ok(scale),
            _ => Err(StatusError::unknown_resource()),
        }
    }

    pub(crate) fn get_scale(&self) -> Result<Answer, StatusError> {
        let object = view::shown(&self.resource, &self.stored(&self.target.name)?);
        Ok(self.answer(StatusCode::OK, &self.scale_of(&object)?))
    }

    /// The `Scale` of an object.
    fn scale_of(&self, object: &Value) -> Result<Value, StatusError> {
        let paths = self.scale_paths()?;
        let number = |path: &str| strategy::at(object, path).and_then(Value::as_i64);
        let metadata = &object["metadata"];
        let mut scale = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {
                "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
            },
            "spec": {},
            "status": {"replicas": number(&paths.status).unwrap_or(0)},
        });
        if metadata["namespace"].is_null()
            && let Some(fields) = scale["metadata"].as_object_mut()
        {
            fields.remove("namespace");
        }
        match number(&paths.spec) {
            Some(0) => {}
            Some(replicas) => scale["spec"]["replicas"] = replicas.into(),
            None if self.resource.custom.is_some() => {
                let why = format!("the spec replicas field \".{}\" does not exist", paths.spec);
                return Err(StatusError::internal(&why));
            }
            None => {}
        }
        if let Some(selector) = self.scale_selector(object, paths) {
            scale["status"]["selector"] = selector.into();
        }
        Ok(scale)
    }

    fn scale_selector(&self, object: &Value, paths: &Scale) -> Option<String> {
        if self.resource.custom.is_some() {
            let path = paths.selector.as_deref()?;
            return strategy::at(object, path).and_then(Value::as_str).map(str::to_owned);
        }
        let selector = strategy::at(object, "spec.selector")?;
        if selector.get("matchLabels").is_some() || selector.get("matchExpressions").is_some() {
            return labels::from_object(selector).ok().map(|selector| selector.to_string());
        }
        let pairs = selector.as_object()?;
        Some(
            pairs
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
                .collect::<Vec<_>>()
                .join(","),
        )
    }

    pub(crate) async fn update_scale(&self) -> Result<Answer, StatusError> {
        let options = WriteOptions::parse(&self.info.query, "UpdateOptions", None)?;
        let input = negotiate::input(&self.parts.headers, true)?;
        let (scale, _) = decode::read(input, &self.body).map_err(|why| {
            StatusError::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
        })?;
        self.check_name(&scale)?;
        Box::pin(self.set_scale(&options, |_| Ok(scale.clone()))).await
    }

    pub(crate) async fn patch_scale(&self) -> Result<Answer, StatusError> {
        let kind = self.patch_kind()?;
        let options = WriteOptions::parse(&self.info.query, "PatchOptions", Some(kind == PatchKind::Apply))?;
        if kind == PatchKind::Apply {
            let (applied, _) = strict::parse_yaml(&self.body)
                .map_err(|error| StatusError::bad_request(format!("error decoding YAML: {error}")))?;
            let merged = |scale: &Value| Ok(atoll_apimachinery::patch::merge(scale, &applied));
            return Box::pin(self.set_scale(&options, merged)).await;
        }
        let patch = Patch::read(kind, &self.body, options.validation)?;
        Box::pin(self.set_scale(&options, |scale| patch.patched(scale, &self.resource))).await
    }

    /// Changes the number of replicas to what `make` makes of the scale.
    async fn set_scale(
        &self,
        options: &WriteOptions,
        make: impl Fn(&Value) -> Result<Value, StatusError> + Send + Sync,
    ) -> Result<Answer, StatusError> {
        let paths = self.scale_paths()?.clone();
        let by = self.manager(options, Operation::Update);
        let stamp = self.state.environment.stamp();
        let change = |old: Option<&Value>| {
            let Some(old) = old else { return Err(self.not_found(&self.target.name)) };
            let wanted = make(&self.scale_of(old)?)?;
            let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or(0);
            if replicas < 0 {
                let why = "must be greater than or equal to 0";
                let error = FieldError::invalid("spec.replicas", replicas, why);
                return Err(StatusError::invalid(SCALE, &self.target.name, &[error]));
            }
            let mut new = old.clone();
            let revision = wanted["metadata"]["resourceVersion"].as_str().unwrap_or_default();
            if !revision.is_empty() {
                new["metadata"]["resourceVersion"] = revision.into();
            }
            if let Some(place) = strategy::at_mut(&mut new, &paths.spec) {
                *place = replicas.into();
            }
            decode::fill(&self.resource, &mut new);
            apply::track(Some(old), &mut new, &self.resource.schema, &by, &stamp);
            Ok(new)
        };
        let changed = Box::pin(self.change(&change, Absent::Refuse, options)).await?;
        Ok(self.answer(StatusCode::OK, &self.scale_of(&changed.object.into_value(&self.resource))?))
    }
}
