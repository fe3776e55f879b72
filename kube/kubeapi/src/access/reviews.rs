//! Questions about users: who is this token, may they, what may they; and tokens for service accounts.

use crate::access::authn::{Bound, Issue, User};
use crate::access::rbac::{Attributes, Decision, Target};
use crate::environment::seconds;
use crate::http::answer::Answer;
use crate::http::decode;
use crate::http::encode;
use crate::http::negotiate;
use crate::http::negotiate::Input;
use crate::http::request::WriteOptions;
use crate::http::status_error::StatusError;
use crate::resources::resource::split_api_version;
use crate::resources::strategy::strings;
use crate::storage::store::Key;
use crate::verbs::RequestContext;
use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::{protobuf, strict};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How long a token lasts by default, at most and at least.
const LASTS: i64 = 3600;
const LONGEST: i64 = 1 << 32;
const SHORTEST: i64 = 600;
/// The audience of this API.
const AUDIENCE: &str = "https://kubernetes.default.svc.cluster.local";

/// Answers a review.
pub(crate) fn answer(context: &RequestContext<'_>) -> Result<Answer, StatusError> {
    let options = WriteOptions::parse(&context.info.query, "CreateOptions", None)?;
    let input = negotiate::input(&context.parts.headers, true)?;
    let mut review =
        decode::object(&context.resource, &context.body, input, options.validation, &mut context.warnings())?;
    let spec = review["spec"].clone();
    match context.resource.names.kind.as_str() {
        "SelfSubjectReview" => review["status"] = json!({"userInfo": context.user.info()}),
        "TokenReview" => {
            if spec["token"].as_str().unwrap_or_default().is_empty() {
                return Err(StatusError::bad_request("token is required for TokenReview in authentication"));
            }
            review["status"] = token_status(context, &spec);
        }
        "SelfSubjectAccessReview" => review["status"] = access(context, context.user, &spec, &review)?,
        "SelfSubjectRulesReview" => review["status"] = rules(context, &spec)?,
        _ => {
            let user = named_user(&spec);
            if user.name.is_empty() && user.groups.is_empty() {
                let why = "at least one of user or group must be specified";
                let error = FieldError::invalid("spec.user", "", why);
                return Err(StatusError::invalid(context.resource.kind(), "", &[error]));
            }
            if context.resource.namespaced
                && spec["resourceAttributes"]["namespace"] != context.target.namespace.as_str()
            {
                let why = format!("must match metadata.namespace: {}", context.target.namespace);
                let shown = spec["resourceAttributes"]["namespace"].clone();
                let error = FieldError::invalid("spec.resourceAttributes.namespace", shown, why);
                return Err(StatusError::invalid(context.resource.kind(), "", &[error]));
            }
            review["status"] = access(context, &user, &spec, &review)?;
        }
    }
    review["metadata"]["creationTimestamp"] = Value::Null;
    if context.resource.names.kind == "SelfSubjectReview" {
        review["metadata"]["creationTimestamp"] = context.state.environment.stamp().into();
    }
    Ok(Answer::value(StatusCode::CREATED, &review, context.output.media_type).warn(&context.warnings()))
}

fn named_user(spec: &Value) -> User {
    let extra: BTreeMap<String, Vec<String>> =
        serde_json::from_value(spec["extra"].clone()).unwrap_or_default();
    User {
        name: spec["user"].as_str().unwrap_or_default().to_owned(),
        uid: spec["uid"].as_str().unwrap_or_default().to_owned(),
        groups: strings(&spec["groups"]).map(str::to_owned).collect(),
        extra,
    }
}

fn token_status(context: &RequestContext<'_>, spec: &Value) -> Value {
    let token = spec["token"].as_str().unwrap_or_default();
    let audiences: Vec<String> = strings(&spec["audiences"]).map(str::to_owned).collect();
    match context.state.user_of(token, &audiences) {
        Some((user, good_for)) => {
            let shared: Vec<String> =
                good_for.into_iter().filter(|one| audiences.is_empty() || audiences.contains(one)).collect();
            json!({"authenticated": true, "user": user.info(), "audiences": shared})
        }
        None => json!({"user": {}, "error": "[invalid bearer token]"}),
    }
}

/// May this user do what the review describes?
fn access(
    context: &RequestContext<'_>,
    user: &User,
    spec: &Value,
    review: &Value,
) -> Result<Value, StatusError> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    let name = text(&review["metadata"]["name"]);
    let both = match (resource.is_object(), path.is_object()) {
        (true, true) => Some("cannot be specified in combination with resourceAttributes"),
        (false, false) => {
            Some("exactly one of nonResourceAttributes or resourceAttributes must be specified")
        }
        _ => None,
    };
    if let Some(why) = both {
        let field =
            if resource.is_object() { "spec.nonResourceAttributes" } else { "spec.resourceAttributes" };
        let error = FieldError::invalid(field, Value::Null, why);
        return Err(StatusError::invalid(context.resource.kind(), &name, &[error]));
    }
    let field = |name: &str| text(&resource[name]);
    let (verb, group, plural) = (field("verb"), field("group"), field("resource"));
    let (subresource, namespace, object) = (field("subresource"), field("namespace"), field("name"));
    let (path_verb, path_text) = (text(&path["verb"]), text(&path["path"]));
    let attributes = if resource.is_object() {
        let target = Target::Resource {
            group: &group,
            resource: &plural,
            subresource: &subresource,
            namespace: &namespace,
            name: &object,
        };
        Attributes { user, verb: &verb, target }
    } else {
        Attributes { user, verb: &path_verb, target: Target::Path(&path_text) }
    };
    Ok(match context.state.rbac.now(&context.state.store).authorize(&attributes) {
        Decision::Allow { reason } if reason.is_empty() => json!({"allowed": true}),
        Decision::Allow { reason } => json!({"allowed": true, "reason": reason}),
        Decision::NoOpinion { reason } if reason.is_empty() => json!({"allowed": false}),
        Decision::NoOpinion { reason } => json!({"allowed": false, "reason": reason}),
    })
}

fn rules(context: &RequestContext<'_>, spec: &Value) -> Result<Value, StatusError> {
    let namespace = spec["namespace"].as_str().unwrap_or_default();
    if namespace.is_empty() {
        return Err(StatusError::bad_request("no namespace on request"));
    }
    let (rules, problems) = context.state.rbac.now(&context.state.store).rules_for(context.user, namespace);
    let rules = json!(rules);
    let mut status = json!({"resourceRules": [], "nonResourceRules": [], "incomplete": !problems.is_empty()});
    let everything = context.user.is_master();
    if everything {
        status["resourceRules"] = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
        status["nonResourceRules"] = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
        return Ok(status);
    }
    for rule in rules.as_array().into_iter().flatten() {
        let paths = strings(&rule["nonResourceURLs"]).next().is_some();
        let list = if paths { "nonResourceRules" } else { "resourceRules" };
        if let Some(list) = status[list].as_array_mut() {
            list.push(rule.clone());
        }
    }
    if !problems.is_empty() {
        status["evaluationError"] = problems.join(", ").into();
    }
    Ok(status)
}

/// A token for a service account.
pub(crate) fn token(context: &RequestContext<'_>) -> Result<Answer, StatusError> {
    let wrong = |why: String| StatusError::bad_request(why);
    let mut request = match negotiate::input(&context.parts.headers, true)? {
        Input::Json if context.body.is_empty() => json!({}),
        Input::Json => strict::parse(&context.body).map_err(|error| wrong(error.to_string()))?.0,
        Input::Yaml => strict::parse_yaml(&context.body).map_err(|error| wrong(error.to_string()))?.0,
        Input::Protobuf => protobuf::decode(&context.body).map_err(|error| wrong(error.to_string()))?,
    };
    let account = encode::read(&context.stored(&context.target.name)?.body);
    let Some(tokens) = &context.state.tokens else {
        return Err(StatusError::unavailable("this API has no key for tokens"));
    };
    let kind = crate::http::status_error::Subject { group: "authentication.k8s.io", name: "TokenRequest" };
    let spec = &request["spec"];
    let asked = spec["expirationSeconds"].as_i64().unwrap_or(LASTS);
    let mut errors = Vec::new();
    if asked < SHORTEST {
        let why = "may not specify a duration less than 10 minutes";
        errors.push(FieldError::invalid("spec.expirationSeconds", asked, why));
    }
    if asked > LONGEST {
        let why = "may not specify a duration larger than 2^32 seconds";
        errors.push(FieldError::invalid("spec.expirationSeconds", asked, why));
    }
    if !errors.is_empty() {
        return Err(StatusError::invalid(kind, "", &errors));
    }
    let mut audiences: Vec<String> = strings(&spec["audiences"]).map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences.push(AUDIENCE.to_owned());
    }
    let bound = bound(context, &spec["boundObjectRef"])?;
    let mut asks = request.clone();
    asks["spec"]["expirationSeconds"] = asked.into();
    context.admit("CREATE", &context.target.name, Some(&asks), None, false)?;
    let uid = account["metadata"]["uid"].as_str().unwrap_or_default();
    let now = context.state.environment.now().as_second();
    let id = context.state.environment.uid();
    let issue = Issue {
        namespace: &context.target.namespace,
        name: &context.target.name,
        uid,
        audiences: &audiences,
        bound,
        now,
        seconds: asked,
        id: &id,
    };
    let made = tokens.key().and_then(|key| key.issue(&issue));
    let token = made.map_err(|error| StatusError::internal(&error.to_string()))?;
    let ends = Timestamp::from_second(now + asked).map(seconds).unwrap_or_default();
    request["kind"] = "TokenRequest".into();
    request["apiVersion"] = "authentication.k8s.io/v1".into();
    request["metadata"] = json!({
        "name": context.target.name, "namespace": context.target.namespace, "creationTimestamp": context.state.environment.stamp(),
    });
    request["spec"]["audiences"] = json!(audiences);
    request["spec"]["expirationSeconds"] = asked.into();
    if request["spec"].get("boundObjectRef").is_none() {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    request["status"] = json!({"token": token, "expirationTimestamp": ends});
    Ok(Answer::value(StatusCode::CREATED, &request, context.output.media_type).warn(&context.warnings()))
}

/// The object that a token ends with.
fn bound(context: &RequestContext<'_>, reference: &Value) -> Result<Option<Bound>, StatusError> {
    if !reference.is_object() {
        return Ok(None);
    }
    let text = |field: &str| reference[field].as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text("kind"), text("name"));
    let plural = match (text("apiVersion").as_str(), kind.as_str()) {
        ("v1", "Pod") => "pods",
        ("v1", "Secret") => "secrets",
        (_, other) => {
            let (group, version) = split_api_version(reference["apiVersion"].as_str().unwrap_or_default());
            let why = format!("cannot bind token to object of type {group}/{version}, Kind={other}");
            return Err(StatusError::bad_request(why));
        }
    };
    let subject = crate::http::status_error::Subject { group: "", name: plural };
    let key = Key::new("", plural, &context.target.namespace, &name);
    let found = context.state.store.get(&key).ok_or_else(|| StatusError::not_found(subject, &name))?;
    let uid = encode::PartialObject::of(&found.body).metadata.uid.into_owned();
    let account = &context.target.name;
    let runs_as = |pod: &Value| pod["spec"]["serviceAccountName"].as_str().unwrap_or("default") == account;
    if plural == "pods" && !runs_as(&encode::read(&found.body)) {
        let why = format!(
            "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
        );
        return Err(StatusError::bad_request(why));
    }
    if !text("uid").is_empty() && text("uid") != uid {
        let why = format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        );
        return Err(StatusError::conflict(subject, &name, &why));
    }
    Ok(Some(Bound { kind, name, uid }))
}
