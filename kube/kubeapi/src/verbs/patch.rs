//! A patched object: JSON patch, merge patch, strategic merge patch. Server-side apply is next door.

use super::RequestContext;
use super::update::Absent;
use crate::http::answer::Answer;
use crate::http::decode;
use crate::http::encode;
use crate::http::negotiate;
use crate::http::request::{Validation, WriteOptions};
use crate::http::status_error::{StatusError, Subject};
use crate::resources::resource::Resource;
use crate::verbs::create::dedup_owners;
use atoll_apimachinery::apply::{self, Operation};
use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::patch::{self, PatchError};
use atoll_apimachinery::strict;
use serde_json::Value;

/// The ways to patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

/// The most operations that a JSON patch may have.
const MOST_OPERATIONS: usize = 10_000;

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl RequestContext<'_> {
    pub(super) fn patch_kind(&self) -> Result<PatchKind, StatusError> {
        match negotiate::content_type(&self.parts.headers) {
            JSON => Ok(PatchKind::Json),
            MERGE => Ok(PatchKind::Merge),
            STRATEGIC if self.resource.custom.is_none() => Ok(PatchKind::Strategic),
            APPLY => Ok(PatchKind::Apply),
            _ if self.resource.custom.is_none() => Err(StatusError::unsupported_patch()),
            _ => Err(StatusError::unsupported_media(&[JSON, MERGE, APPLY])),
        }
    }

    pub(crate) async fn patch(&self) -> Result<Answer, StatusError> {
        let kind = self.patch_kind()?;
        let options = WriteOptions::parse(&self.info.query, "PatchOptions", Some(kind == PatchKind::Apply))?;
        if kind == PatchKind::Apply {
            return Box::pin(self.apply(&options)).await;
        }
        let patch = Patch::read(kind, &self.body, options.validation)?;
        let by = self.manager(&options, Operation::Update);
        let stamp = self.state.environment.stamp();
        let change = |old: Option<&Value>| {
            let Some(old) = old else { return Err(self.not_found(&self.target.name)) };
            let mut new = patch.carry_out(&self.resource, old, options.validation, &mut self.warnings())?;
            apply::track(Some(old), &mut new, &self.resource.schema, &by, &stamp);
            self.check_namespace(&mut new)?;
            self.check_name(&new)?;
            dedup_owners(&mut new, &mut self.warnings());
            Ok(new)
        };
        let changed = Box::pin(self.change(&change, Absent::Refuse, &options)).await?;
        Ok(self.answer_changed(&changed))
    }
}

/// A patch that has been read.
pub(super) struct Patch {
    kind: PatchKind,
    body: Value,
    /// Fields that are there twice.
    duplicates: Vec<String>,
}

impl Patch {
    pub(super) fn read(kind: PatchKind, bytes: &[u8], validation: Validation) -> Result<Self, StatusError> {
        let (body, duplicates) = strict::parse(bytes).map_err(|error| {
            let why = error.to_string();
            StatusError::bad_request(match kind {
                PatchKind::Strategic => why,
                _ if validation == Validation::Ignore => why,
                _ => format!("error decoding patch: {why}"),
            })
        })?;
        if let (PatchKind::Json, Value::Array(operations)) = (kind, &body)
            && operations.len() > MOST_OPERATIONS
        {
            return Err(StatusError::too_large(&format!(
                "The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {}",
                operations.len()
            )));
        }
        let fits = match kind {
            PatchKind::Json => {
                body.as_array().is_some_and(|operations| operations.iter().all(Value::is_object))
            }
            PatchKind::Merge | PatchKind::Strategic | PatchKind::Apply => body.is_object(),
        };
        if !fits {
            let (got, want) = match (&body, kind) {
                (Value::Object(_), _) => ("object", "[]handlers.jsonPatchOp"),
                (Value::Array(_), PatchKind::Json) => ("array", "[]handlers.jsonPatchOp"),
                (Value::Array(_), _) => ("array", "map[string]interface {}"),
                (Value::String(_), _) => ("string", "map[string]interface {}"),
                (Value::Number(_), _) => ("number", "map[string]interface {}"),
                _ => ("bool", "map[string]interface {}"),
            };
            let why = format!("json: cannot unmarshal {got} into Go value of type {want}");
            let prefix = if kind == PatchKind::Strategic { "" } else { "error decoding patch: " };
            return Err(StatusError::bad_request(format!("{prefix}{why}")));
        }
        let prefix = if kind == PatchKind::Json { "json patch " } else { "" };
        let duplicates = duplicates.iter().map(|path| format!("{prefix}duplicate field {path:?}")).collect();
        Ok(Self { kind, body, duplicates })
    }

    /// The object with the patch applied, completed as a body would be.
    fn carry_out(
        &self,
        resource: &Resource,
        old: &Value,
        validation: Validation,
        warnings: &mut Vec<String>,
    ) -> Result<Value, StatusError> {
        let mut new = self.patched(old, resource)?;
        // Refusals tell what the patch made, before anything is filled in. They are rare, and patch again for that.
        let refuse = |why: &str| match self.patched(old, resource) {
            Ok(patched) => invalid_patch(&patched, why),
            Err(error) => error,
        };
        if !new.is_object() {
            return Err(refuse("json: cannot unmarshal value into an object"));
        }
        for (field, own) in [("apiVersion", resource.api_version()), ("kind", resource.names.kind.clone())] {
            let given = new[field].as_str().unwrap_or_default();
            if !given.is_empty() && given != own {
                let why = format!("{field} {given:?} is not that of the object, {own:?}");
                return Err(refuse(&why));
            }
            new[field] = own.into();
        }
        if let Err(why) = decode::check_shape(resource, &new) {
            return Err(refuse(&why));
        }
        let mut problems = self.duplicates.clone();
        problems.extend(decode::complete(resource, &mut new));
        match validation {
            Validation::Ignore => {}
            Validation::Warn => warnings.extend(problems),
            Validation::Strict if problems.is_empty() => {}
            Validation::Strict => {
                return Err(refuse(&format!("strict decoding error: {}", problems.join(", "))));
            }
        }
        Ok(new)
    }

    pub(super) fn patched(&self, old: &Value, resource: &Resource) -> Result<Value, StatusError> {
        let result = match self.kind {
            PatchKind::Json => patch::json(old, &self.body),
            PatchKind::Merge => Ok(patch::merge(old, &self.body)),
            PatchKind::Strategic => patch::strategic(old, &self.body, &resource.schema),
            PatchKind::Apply => Ok(self.body.clone()),
        };
        result.map_err(|error| match error {
            PatchError::Malformed(why) => StatusError::bad_request(why),
            PatchError::Unprocessable(_) => StatusError::unprocessable(),
            PatchError::Failed(why) => StatusError::plain(why),
        })
    }
}

fn invalid_patch(patched: &Value, why: &str) -> StatusError {
    let text = String::from_utf8_lossy(&encode::write(patched)).into_owned();
    StatusError::invalid(Subject { group: "", name: "" }, "", &[FieldError::invalid("patch", text, why)])
}
