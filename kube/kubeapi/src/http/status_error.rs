//! Why a request is refused: an error that becomes a `Status` object, worded as a Kubernetes API server words it.

use atoll_apimachinery::invalid::{FieldError, TOLD_MOST};
use http::StatusCode;
use serde_json::{Map, Value, json};
use std::fmt;

/// A request that is not carried out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusError(Box<Inner>);

#[derive(Clone, Debug, PartialEq)]
struct Inner {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Map<String, Value>,
    /// Some errors have details with nothing in them.
    empty_details: bool,
    /// Where a list that expired can go on.
    resume: Option<String>,
}

/// What an error speaks of: a resource by its plural, or a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    /// The API group, empty for the core.
    pub(crate) group: &'a str,
    /// The resource's plural, or the kind.
    pub(crate) name: &'a str,
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.group.is_empty() {
            write!(out, "{}", self.name)
        } else {
            write!(out, "{}.{}", self.name, self.group)
        }
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.0.message)
    }
}

impl std::error::Error for StatusError {}

impl StatusError {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            reason,
            message: message.into(),
            details: Map::new(),
            empty_details: false,
            resume: None,
        }))
    }

    fn about(mut self, subject: Subject<'_>, name: &str) -> Self {
        for (key, value) in [("name", name), ("group", subject.group), ("kind", subject.name)] {
            if !value.is_empty() {
                self.0.details.insert(key.to_owned(), value.into());
            }
        }
        self
    }

    fn with_empty_details(mut self) -> Self {
        self.0.empty_details = true;
        self
    }

    /// No such object.
    pub(crate) fn not_found(subject: Subject<'_>, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{subject} {name:?} not found"))
            .about(subject, name)
    }

    /// Not found, in the caller's words.
    pub(crate) fn nothing_there(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    /// No such resource.
    pub(crate) fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with_empty_details()
    }

    /// The name is taken.
    pub(crate) fn exists(subject: Subject<'_>, name: &str) -> Self {
        let message = format!("{subject} {name:?} already exists");
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(subject, name)
    }

    /// The name is taken by an object that is going.
    pub(crate) fn exists_deleting(subject: Subject<'_>, name: &str) -> Self {
        let mut error = Self::exists(subject, name);
        error.0.message = format!("object is being deleted: {}", error.0.message);
        error
    }

    /// No free name was found.
    pub(crate) fn no_free_name(subject: Subject<'_>, name: &str) -> Self {
        let message = format!(
            "{subject} {name:?} already exists, the server was not able to generate a unique name for the object"
        );
        let mut error = Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(subject, name);
        error.0.details.insert("retryAfterSeconds".to_owned(), 1.into());
        error
    }

    /// Something else was written in between, or a precondition does not hold.
    pub(crate) fn conflict(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {subject} {name:?}: {why}");
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(subject, name)
    }

    /// The object was changed since it was read.
    pub(crate) fn modified(subject: Subject<'_>, name: &str) -> Self {
        const WHY: &str =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(subject, name, WHY)
    }

    /// Server-side apply met fields of others.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        let mut error = Self::new(StatusCode::CONFLICT, "Conflict", message);
        error.0.details.insert("causes".to_owned(), causes.into());
        error
    }

    /// The object breaks rules.
    pub(crate) fn invalid(subject: Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
        let errors = &errors[..errors.len().min(TOLD_MOST)];
        let mut said: Vec<String> = Vec::new();
        for error in errors {
            let text = error.to_string();
            if !said.contains(&text) {
                said.push(text);
            }
        }
        let list = match said.as_slice() {
            [] => String::new(),
            [one] => format!(": {one}"),
            many => format!(": [{}]", many.join(", ")),
        };
        let message = format!("{subject} {name:?} is invalid{list}");
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(subject, name);
        let causes: Vec<Value> = errors.iter().map(cause).collect();
        if !causes.is_empty() {
            error.0.details.insert("causes".to_owned(), causes.into());
        }
        error
    }

    /// A patch that can't be applied to this object.
    pub(crate) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).with_empty_details()
    }

    /// The request makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The user is not known.
    pub(crate) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// The user may not do this.
    pub(crate) fn forbidden(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message = match (subject.name, name) {
            ("", _) => format!("forbidden: {why}"),
            (_, "") => format!("{subject} is forbidden: {why}"),
            _ => format!("{subject} {name:?} is forbidden: {why}"),
        };
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(subject, name)
    }

    /// The same, and one cause is given.
    #[must_use]
    pub(crate) fn because(mut self, cause: Value) -> Self {
        self.0.details.insert("causes".to_owned(), Value::Array(vec![cause]));
        self
    }

    /// A policy says no: the code is that of the policy's reason.
    pub(crate) fn denied(
        subject: Subject<'_>,
        name: &str,
        reason: &str,
        why: &str,
        causes: Vec<Value>,
    ) -> Self {
        let (code, reason) = match reason {
            "Unauthorized" => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            "Forbidden" => (StatusCode::FORBIDDEN, "Forbidden"),
            "RequestEntityTooLarge" => (StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge"),
            _ => (StatusCode::UNPROCESSABLE_ENTITY, "Invalid"),
        };
        let message = format!("{subject} {name:?} is forbidden: {why}");
        let mut error = Self::new(code, reason, message).about(subject, name);
        if !causes.is_empty() {
            error.0.details.insert("causes".to_owned(), causes.into());
        }
        error
    }

    /// The resource has no such verb.
    pub(crate) fn not_supported(subject: Subject<'_>, verb: &str) -> Self {
        let message = format!("{verb} is not supported on resources of kind {:?}", subject.to_string());
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).about(subject, "")
    }

    /// The method is not for this.
    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message).with_empty_details()
    }

    /// The body has a type that is not read here.
    pub(crate) fn unsupported_media(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// A patch of a type that is not read here, of a built-in kind.
    pub(crate) fn unsupported_patch() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message).with_empty_details()
    }

    /// The client accepts nothing that a built-in kind can be written in.
    pub(crate) fn no_representation() -> Self {
        const WHY: &str = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
            application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", WHY).with_empty_details()
    }

    /// The client accepts nothing that can be written.
    pub(crate) fn not_acceptable(accepted: &[&str]) -> Self {
        let message = format!("only the following media types are accepted: {}", accepted.join(", "));
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// The revision asked for is no longer known.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// A list broke off; it can go on, inconsistently, from `token`.
    pub(crate) fn expired_list(token: String) -> Self {
        const WHY: &str = "The provided continue parameter is too old to display a consistent list result. \
            You can start a new list without the continue parameter, or use the continue token in this response \
            to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - \
            objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
        let mut error = Self::expired(WHY);
        error.0.resume = Some(token);
        error
    }

    /// The body is too long.
    pub(crate) fn too_large(message: &str) -> Self {
        let message = format!("Request entity too large: {message}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// The revision asked for has not been reached.
    pub(crate) fn too_new(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut error = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        error.0.details.insert("retryAfterSeconds".to_owned(), 1.into());
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        error.because(cause)
    }

    /// The client was too slow in sending its request.
    pub(crate) fn timeout(message: &str) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "Timeout", message)
    }

    /// This user has too much under way.
    pub(crate) fn too_many_requests() -> Self {
        let message = "too many requests, please try again later";
        let mut error = Self::new(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests", message);
        error.0.details.insert("retryAfterSeconds".to_owned(), 1.into());
        error
    }

    /// Nothing can be done at this time.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable", message)
    }

    /// Something that should not happen.
    pub(crate) fn internal(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        error.because(json!({"message": why}))
    }

    /// An error without a reason, code 500: how an API server passes on what its storage says.
    pub(crate) fn plain(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// The HTTP status.
    pub(crate) fn code(&self) -> StatusCode {
        self.0.code
    }

    /// The `Status` object.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.0.message, "code": self.0.code.as_u16(),
        });
        if let Some(token) = &self.0.resume {
            status["metadata"]["continue"] = token.as_str().into();
        }
        if !self.0.reason.is_empty() {
            status["reason"] = self.0.reason.into();
        }
        if !self.0.details.is_empty() || self.0.empty_details {
            status["details"] = Value::Object(self.0.details.clone());
        }
        status
    }
}

/// An error of one field, as a cause of a `Status`.
fn cause(error: &FieldError) -> Value {
    let mut cause = Map::new();
    cause.insert("reason".to_owned(), error.reason().into());
    cause.insert("message".to_owned(), error.body().into());
    if !error.field.is_empty() {
        cause.insert("field".to_owned(), error.field.as_str().into());
    }
    Value::Object(cause)
}
