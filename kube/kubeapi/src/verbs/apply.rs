//! Server-side apply: a manager says what it wants of an object; what it no longer says goes.

use super::RequestContext;
use super::update::Absent;
use crate::http::answer::Answer;
use crate::http::decode;
use crate::http::request::{Validation, WriteOptions};
use crate::http::status_error::StatusError;
use crate::resources::resource::split_api_version;
use atoll_apimachinery::apply::{self, ApplyError, Operation};
use atoll_apimachinery::strict;
use serde_json::{Value, json};

impl RequestContext<'_> {
    pub(super) async fn apply(&self, options: &WriteOptions) -> Result<Answer, StatusError> {
        let (applied, duplicates) = strict::parse_yaml(&self.body)
            .map_err(|error| StatusError::bad_request(yaml_problem(&error.to_string())))?;
        self.check_applied_type(&applied)?;
        let by = self.manager(options, Operation::Apply);
        let stamp = self.state.environment.stamp();
        let change = |old: Option<&Value>| {
            let merged = apply::apply(old, &applied, &self.resource.schema, &by, options.force, &stamp);
            let mut new = merged.map_err(refuse)?;
            match options.validation {
                Validation::Strict if !duplicates.is_empty() => {
                    let why = format!("error strict decoding YAML: {}", duplicated(&duplicates).join(", "));
                    return Err(StatusError::bad_request(why));
                }
                Validation::Warn => self.warnings().extend(duplicated(&duplicates)),
                Validation::Strict | Validation::Ignore => {}
            }
            decode::complete_merged(&self.resource, &mut new);
            self.check_namespace(&mut new)?;
            self.check_name(&new)?;
            Ok(new)
        };
        let absent = if self.subresource.is_some() { Absent::Refuse } else { Absent::Create };
        let changed = Box::pin(self.change(&change, absent, options)).await?;
        Ok(self.answer_changed(&changed))
    }
}

impl RequestContext<'_> {
    /// What is applied must say what it is, and be what the path says.
    fn check_applied_type(&self, applied: &Value) -> Result<(), StatusError> {
        let text = |field: &str| applied[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if api_version == self.resource.api_version() && kind == self.resource.names.kind {
            return Ok(());
        }
        let (group, version) = split_api_version(api_version);
        Err(StatusError::bad_request(format!("invalid object type: {group}/{version}, Kind={kind}")))
    }
}

fn duplicated(paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| decode::duplicate(path)).collect()
}

/// Why YAML can't be read, without the place.
fn yaml_problem(why: &str) -> String {
    let why = why.split(" at line ").next().unwrap_or(why);
    format!("error decoding YAML: error converting YAML to JSON: {why}")
}

pub(super) fn refuse(error: ApplyError) -> StatusError {
    let message = error.to_string();
    match error {
        ApplyError::Conflicts(conflicts) => {
            let causes = conflicts.iter().map(|conflict| {
                json!({"reason": "FieldManagerConflict", "message": conflict.message(), "field": conflict.field})
            });
            StatusError::apply_conflict(message, causes.collect())
        }
        ApplyError::Malformed(_) => StatusError::bad_request(message),
        ApplyError::Untyped(_) => StatusError::plain(message),
    }
}
