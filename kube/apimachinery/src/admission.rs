//! `ValidatingAdmissionPolicy`: does a policy, bound as it is, allow a request?
//!
//! ```text
//!   policy ──compile──▶ Policy ─┬─ matches(request)? ─▶ parameters are looked up by the server
//!   binding, params, request ───┴─ evaluate ─▶ Outcome: denials, warnings, audit
//! ```
//! `authorizer` is not offered to expressions: one that uses it fails, and the failure policy decides.

mod evaluate;
mod matching;
mod policy;

pub use crate::cel::Budget;
pub use evaluate::{binds, evaluate, evaluate_within, params_missing};
pub use policy::Policy;

use serde_json::Value;

/// What is asked of the API.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: &'a str,
    /// The resource's API group.
    pub group: &'a str,
    /// The resource's version.
    pub version: &'a str,
    /// The object's kind.
    pub kind: &'a str,
    /// The resource, plural.
    pub resource: &'a str,
    /// The subresource, or nothing.
    pub subresource: &'a str,
    /// The object's name; empty while it is to be generated.
    pub name: &'a str,
    /// The object's namespace, or nothing.
    pub namespace: &'a str,
    /// Who asks: `userInfo` with `username`, `groups`, `uid`, `extra`.
    pub user: Option<&'a Value>,
    /// The object as it would be; nothing on DELETE.
    pub object: Option<&'a Value>,
    /// The object as it is; nothing on CREATE.
    pub old_object: Option<&'a Value>,
    /// The namespace's object; nothing for cluster-wide ones.
    pub namespace_object: Option<&'a Value>,
    /// The options of the operation.
    pub options: Option<&'a Value>,
    /// Nothing will be stored.
    pub dry_run: bool,
    /// Which request this is, for `request.uid`.
    pub uid: &'a str,
}

/// What a policy and one of its bindings say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Why the request is refused; the first one of all policies becomes the answer.
    pub denials: Vec<Denial>,
    /// `Warning` headers.
    pub warnings: Vec<String>,
    /// Audit annotations: key and value.
    pub audit: Vec<(String, String)>,
}

/// Why a request is refused. The answer's message is
/// `<resource>.<group> "<name>" is forbidden: <message>`, and `message` is its only cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The HTTP status.
    pub code: u16,
    /// The Status' reason.
    pub reason: String,
    /// What the policy says.
    pub message: String,
}
