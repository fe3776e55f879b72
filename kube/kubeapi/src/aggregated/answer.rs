//! One call of an aggregated resource: the same on this API and behind another one.

use super::{Answerer, Call, Reply};
use crate::access::authn::User;
use crate::http::answer::Answer;
use crate::http::decode;
use crate::http::negotiate::{self, Shape};
use crate::http::request::{RequestInfo, Target};
use crate::http::status_error::StatusError;
use crate::resources::resource::Resource;
use crate::verbs::table;
use atoll_apimachinery::names;
use atoll_apimachinery::table::{Include, TableConvertor};
use bytes::Bytes;
use http::StatusCode;
use http::request::Parts;
use jiff::Timestamp;
use serde_json::{Value, json};

/// Carries a call out, for a user who may make it.
pub(crate) async fn carry_out(
    answerer: &Answerer,
    resource: &Resource,
    request: (&Parts, Bytes),
    user: &User,
    (info, target): (&RequestInfo, &Target),
    now: Timestamp,
) -> Result<Answer, StatusError> {
    let (parts, body) = request;
    let output = negotiate::output(&parts.headers)?;
    let verb = verb(resource, info, target)?;
    check_place(resource, verb, target)?;
    // Whoever may see one name may list by it: only what is asked for by name, or all, is answered.
    for selector in ["fieldSelector", "labelSelector"] {
        if info.query.first(selector).is_some_and(|text| !text.trim().is_empty()) {
            let what =
                format!("{} has no {selector}: get one by its name, or list all", resource.names.plural);
            return Err(StatusError::bad_request(what));
        }
    }
    let body = match verb {
        "create" => Some(object(resource, parts, &body)?),
        _ => None,
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let call = Call {
        user: user.clone(),
        verb,
        resource: resource.names.plural.clone(),
        namespace: some(&target.namespace),
        name: some(&target.name),
        query: info.query.pairs().to_vec(),
        body,
    };
    let Reply { status, body } = answerer.handler.answer(call).await;
    let code =
        StatusCode::from_u16(status).map_err(|_| StatusError::internal("an answer without a status"))?;
    if !code.is_success() {
        return Ok(Answer::refusal(code, &body, output.media_type));
    }
    let shown = match output.shape {
        Shape::Whole => body,
        Shape::Table(version) => printed(answerer, version, &body, info, now),
        Shape::Metadata(version) => metadata(&body, version),
    };
    Ok(Answer::value(code, &shown, output.media_type))
}

/// The verb, if the resource has it.
fn verb(resource: &Resource, info: &RequestInfo, target: &Target) -> Result<&'static str, StatusError> {
    if target.deeper || !target.subresource.is_empty() {
        return Err(StatusError::unknown_resource());
    }
    let known = resource.verbs.iter().copied().find(|verb| *verb == info.verb);
    known.ok_or_else(|| StatusError::not_supported(resource.plural(), info.verb))
}

/// Is the path one of this resource?
fn check_place(resource: &Resource, verb: &str, target: &Target) -> Result<(), StatusError> {
    let in_namespace = !target.namespace.is_empty();
    if in_namespace && !resource.namespaced {
        return Err(StatusError::unknown_resource());
    }
    if resource.namespaced && !in_namespace && verb != "list" {
        return Err(StatusError::unknown_resource());
    }
    if verb == "create" && !target.name.is_empty() {
        return Err(StatusError::method_not_allowed());
    }
    for text in [&target.namespace, &target.name] {
        if text.len() > 253 || !names::path_segment(text, false).is_empty() {
            return Err(StatusError::not_found(resource.plural(), &target.name));
        }
    }
    Ok(())
}

/// The body of a `create`: an object of the kind, each field once.
fn object(resource: &Resource, parts: &Parts, body: &Bytes) -> Result<Value, StatusError> {
    let kind = &resource.names.kind;
    let input = negotiate::input(&parts.headers, false)?;
    let wrong = |why: String| StatusError::bad_request(format!("the body is not a {kind}: {why}"));
    let (mut object, duplicates) = decode::read(input, body).map_err(wrong)?;
    if !object.is_object() {
        return Err(wrong("it is not an object".to_owned()));
    }
    if let Some(path) = duplicates.first() {
        return Err(wrong(decode::duplicate(path)));
    }
    for (field, want) in [("apiVersion", resource.api_version()), ("kind", kind.clone())] {
        match &object[field] {
            Value::Null => object[field] = want.into(),
            Value::String(text) if *text == want => {}
            other => return Err(wrong(format!("{field} is {other} and has to be {want:?}"))),
        }
    }
    Ok(object)
}

/// The objects of a list, or the one object.
fn items(body: &Value) -> Vec<&Value> {
    match body["items"].as_array() {
        Some(items) if is_list(body) => items.iter().collect(),
        _ => vec![body],
    }
}

fn is_list(body: &Value) -> bool {
    body["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
}

fn printed(answerer: &Answerer, version: &str, body: &Value, info: &RequestInfo, now: Timestamp) -> Value {
    let include = match info.query.first("includeObject").unwrap_or_default() {
        "None" => Include::None,
        "Object" => Include::Object,
        _ => Include::Metadata,
    };
    let convertor = TableConvertor::custom(answerer.columns.as_array().map(Vec::as_slice));
    table::table(&convertor, version, &items(body), body, include, now)
}

fn metadata(body: &Value, version: &str) -> Value {
    if !is_list(body) {
        return table::metadata_only(body, version);
    }
    let items: Vec<Value> = items(body).into_iter().map(|one| table::metadata_only(one, version)).collect();
    json!({"kind": "PartialObjectMetadataList", "apiVersion": format!("meta.k8s.io/{version}"),
        "metadata": body["metadata"], "items": items})
}
