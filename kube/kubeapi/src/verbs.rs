//! What can be asked of a resource: one file for each verb, one [`RequestContext`] for all.
//!
//! ```text
//!   create ───────────────────────┐
//!   update ◀── patch, apply, scale ├─▶ strategy ─▶ validate ─▶ admission ─▶ storage::write
//!   delete, deletecollection ─────┘
//!   get, list, watch ──▶ select ──▶ storage::store ──▶ whole objects, a table, or metadata only
//!   stream ──▶ pods: log, exec, attach
//! ```

mod apply;
mod create;
mod delete;
mod get;
mod list;
mod patch;
mod scale;
mod select;
mod stream;
pub(crate) mod table;
mod update;
mod validate;
mod watch;

pub(crate) use delete::{CLEANUP, FOREGROUND, ORPHAN, Step, next_step};
pub(crate) use select::Selection;
pub(crate) use update::is_finished;

use crate::access::authn::User;
use crate::api::{Admitted, ApiState};
use crate::http::answer::Answer;
use crate::http::encode;
use crate::http::negotiate::{self, Output, Shape};
use crate::http::request::{RequestInfo, Target, WriteOptions};
use crate::http::status_error::StatusError;
use crate::resources::resource::{Resource, Subresource};
use crate::resources::view;
use crate::storage::store::{Key, Object, WriteError};
use atoll_apimachinery::apply::{Manager, Operation};
use bytes::Bytes;
use http::StatusCode;
use http::header::USER_AGENT;
use http::request::Parts;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A request on a resource, and everything that is needed to carry it out.
pub(crate) struct RequestContext<'a> {
    pub(crate) state: &'a Arc<ApiState>,
    pub(crate) parts: &'a Parts,
    pub(crate) admitted: &'a Admitted,
    pub(crate) user: &'a User,
    pub(crate) info: &'a RequestInfo,
    pub(crate) target: &'a Target,
    pub(crate) resource: Arc<Resource>,
    pub(crate) subresource: Option<Subresource>,
    pub(crate) body: Bytes,
    pub(crate) output: Output,
    /// Warnings that the client gets with the answer.
    warnings: Mutex<Vec<String>>,
}

impl<'a> RequestContext<'a> {
    pub(crate) fn new(
        state: &'a Arc<ApiState>,
        parts: &'a Parts,
        admitted: &'a Admitted,
        target: &'a Target,
        resource: Arc<Resource>,
        subresource: Option<Subresource>,
        body: Bytes,
    ) -> Result<Self, StatusError> {
        let output = negotiate::output(&parts.headers).map_err(|error| {
            if resource.custom.is_some() { error } else { StatusError::no_representation() }
        })?;
        let warnings = resource.custom.as_ref().and_then(|custom| custom.deprecation.clone());
        let warnings = Mutex::new(warnings.into_iter().collect());
        let Admitted { info, user, .. } = admitted;
        Ok(Self { state, parts, admitted, user, info, target, resource, subresource, body, output, warnings })
    }

    /// Warnings that the client gets with the answer.
    pub(crate) fn warnings(&self) -> MutexGuard<'_, Vec<String>> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The namespace that objects of this resource are in: none for those of the whole cluster.
    pub(crate) fn namespace(&self) -> &str {
        if self.resource.namespaced { &self.target.namespace } else { "" }
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        self.resource.key(self.namespace(), name)
    }

    fn not_found(&self, name: &str) -> StatusError {
        StatusError::not_found(self.resource.plural(), name)
    }

    /// The stored object of this name.
    pub(crate) fn stored(&self, name: &str) -> Result<Object, StatusError> {
        self.state.store.get(&self.key(name)).ok_or_else(|| self.not_found(name))
    }

    /// Who comes to own the fields that this request writes.
    fn manager(&self, options: &WriteOptions, operation: Operation) -> Manager {
        let agent =
            self.parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let agent = agent.split('/').next().unwrap_or_default();
        let name = options.field_manager.clone().unwrap_or_else(|| agent.chars().take(128).collect());
        let rules = &self.resource.rules;
        let (subresource, resets) = match &self.subresource {
            None => (None, rules.resets.clone()),
            Some(Subresource::Status) => (Some("status".to_owned()), rules.status_resets.clone()),
            Some(other) => (Some(other.name().to_owned()), Vec::new()),
        };
        Manager { name, operation, api_version: self.resource.api_version(), subresource, resets }
    }

    /// Answers with what came of a write.
    fn answer_outcome(&self, code: StatusCode, outcome: &Outcome) -> Answer {
        match outcome {
            Outcome::Stored(object) => self.answer_stored(code, object),
            Outcome::Shown(object) => self.answer(code, object),
        }
    }

    /// Answers with one object.
    fn answer(&self, code: StatusCode, object: &Value) -> Answer {
        let answer = match self.output.shape {
            Shape::Whole => Answer::value(code, object, self.output.media_type),
            Shape::Table(version) => {
                Answer::value(code, &self.table_of(version, &[object], object), self.output.media_type)
            }
            Shape::Metadata(version) => {
                Answer::value(code, &table::metadata_only(object, version), self.output.media_type)
            }
        };
        answer.warn(&self.warnings())
    }

    /// Answers with one stored object.
    fn answer_stored(&self, code: StatusCode, object: &Object) -> Answer {
        if self.output.shape != Shape::Whole {
            return self.answer(code, &view::shown(&self.resource, object));
        }
        let bytes = view::shown_bytes(&self.resource, object.revision, &object.body);
        Answer::bytes(code, bytes, self.output.media_type).warn(&self.warnings())
    }
}

/// An object after a write.
enum Outcome {
    /// As it is kept now: its bytes are the answer, and need no reading.
    Stored(Object),
    /// As it would be, or was at last.
    Shown(Value),
}

impl Outcome {
    /// The object as this resource shows it.
    fn into_value(self, resource: &Resource) -> Value {
        match self {
            Self::Stored(object) => view::shown(resource, &object),
            Self::Shown(object) => object,
        }
    }
}

/// What a failed write means to the client.
pub(crate) fn refused(resource: &Resource, name: &str, error: &WriteError) -> StatusError {
    match error {
        WriteError::Exists(found) => {
            if encode::PartialObject::of(&found.body).metadata.deletion_timestamp.is_some() {
                return StatusError::exists_deleting(resource.plural(), name);
            }
            StatusError::exists(resource.plural(), name)
        }
        WriteError::Missing => StatusError::not_found(resource.plural(), name),
        WriteError::Conflict(_) => StatusError::modified(resource.plural(), name),
        WriteError::Full(_) | WriteError::Io(_) | WriteError::Closed => {
            StatusError::internal(&error.to_string())
        }
    }
}
