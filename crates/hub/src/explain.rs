//! Questions to the leader, and its answers: typed JSON, made from the leader's own state. Who may ask is decided before a question gets
//! here, by the API server that it came through.
//!
//! ```text
//!   the hub's own API ────────────────────────────────▶ serve: a group ──▶ Questions ──▶ the leader's task: world, plans,
//!   kube-apiserver ──▶ listen (TLS, its CA) ──▶ access ──▶     ▲                         what members said ──▶ an answer
//!        └── APIService, Service, EndpointSlice ◀── registration (the leader)
//! ```
//! Answers are read off the last plan and the facts that it was made of; nothing is planned anew, and nothing changes. The work for one
//! answer is bounded: see `service::MOST_CANDIDATES`, `list::MOST` and `tally::AT_ONCE`.

pub(crate) mod access;
mod address;
mod conflicts;
mod crossing;
mod export;
mod import;
mod known;
mod list;
pub(crate) mod listen;
mod member;
pub(crate) mod plan;
mod questions;
pub(crate) mod registration;
mod roles;
mod serve;
mod service;
mod sources;
mod status;
mod steps;
mod tally;
#[cfg(test)]
mod tests;

pub use serve::group;

use std::net::IpAddr;

use atoll_api::explain::Template;
use atoll_api::names::kind::explain as names;
use atoll_engine::names::{BadName, ClusterId, Namespace, ServiceKey};
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use known::{About, Known};
pub(crate) use questions::Question;
pub use questions::{Answered, Asked, Questions, Verb};
pub(crate) use tally::Tally;

use service::Scope;

/// Which cluster's imports are asked for.
const IN: &str = "in";
/// Which source is asked for.
const FROM: &str = "from";

/// Answers from the leader's state.
pub(crate) fn answer(known: &Known<'_>, tally: &mut Tally, asked: &Asked) -> Answered {
    let name = asked.name.as_deref();
    let answered = match (asked.resource.as_str(), asked.verb, name) {
        (names::SERVICES, Verb::Get, Some(name)) => about_service(known, asked, name),
        (names::SERVICES, Verb::List, _) => list_services(known, asked),
        (names::ADDRESSES, Verb::Get, Some(name)) => match name.parse::<IpAddr>() {
            Ok(address) => Ok(found(&address::explain(known, address))),
            Err(_) => Err(bad(format!("{name:?} is not an IP address"))),
        },
        (names::CLUSTERSETS, Verb::List, _) => {
            let list = json!({
                "apiVersion": format!("{}/{}", names::GROUP, names::VERSION),
                "kind": format!("{}List", names::CLUSTERSET_STATUS),
                "metadata": {},
                "items": [status::status(known, tally)],
            });
            Ok(Answered::found(list))
        }
        (names::CLUSTERSETS, Verb::Get, Some(names::CLUSTERSET)) => Ok(found(&status::status(known, tally))),
        (names::CLUSTERSETS, Verb::Get, Some(name)) => {
            let message =
                format!("there is one clusterset, {:?}, and none of the name {name:?}", names::CLUSTERSET);
            Err(Answered::refused(404, "NotFound", message))
        }
        (
            names::SERVICES | names::ADDRESSES | names::CLUSTERSETS,
            Verb::Get | Verb::List | Verb::Create,
            _,
        ) => {
            let message = format!("{} can't be asked for in this way", asked.resource);
            Err(Answered::refused(405, "MethodNotAllowed", message))
        }
        (other, _, _) => Err(questions::unknown(other)),
    };
    answered.unwrap_or_else(|refused| refused)
}

/// The service of which policies have more to say.
pub(crate) fn template_of(asked: &Asked) -> Option<ServiceKey> {
    let asks = asked.resource == names::SERVICES && asked.verb == Verb::Get;
    let key = ServiceKey::parse(asked.namespace.as_deref()?, asked.name.as_deref()?);
    key.ok().filter(|_| asks)
}

/// An answer about a service, with what policies do with it as a template.
pub(crate) fn with_template(mut answered: Answered, template: Option<Template>) -> Answered {
    if let (Some(template), Some(body)) = (template, answered.body.as_object_mut())
        && let Ok(template) = serde_json::to_value(template)
    {
        body.insert("template".to_owned(), template);
    }
    answered
}

fn about_service(known: &Known<'_>, asked: &Asked, name: &str) -> Result<Answered, Answered> {
    let namespace = asked.namespace.as_deref().unwrap_or_default();
    let key = ServiceKey::parse(namespace, name).map_err(bad_name)?;
    let cluster = |parameter: &str| -> Result<Option<ClusterId>, Answered> {
        let Some(text) = asked.parameter(parameter) else { return Ok(None) };
        let id = ClusterId::parse(text).map_err(bad_name)?;
        if known.world().clusters.contains_key(&id) {
            return Ok(Some(id));
        }
        Err(bad(format!("{id} is not a member of the clusterset; see `atoll clusters`")))
    };
    let scope = Scope { into: cluster(IN)?, from: cluster(FROM)?, candidates: service::MOST_CANDIDATES };
    Ok(found(&service::explain(known, &key, &scope)))
}

fn list_services(known: &Known<'_>, asked: &Asked) -> Result<Answered, Answered> {
    let namespace = asked.namespace.as_deref().or_else(|| asked.parameter("namespace"));
    let namespace = namespace.map(Namespace::parse).transpose().map_err(bad_name)?;
    let limit = match asked.parameter("limit") {
        None | Some("0") => list::MOST,
        Some(text) => text.parse().map_err(|_| bad(format!("limit is not a number: {text:?}")))?,
    };
    let after = match asked.parameter("continue").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => {
            let (namespace, name) = text
                .split_once('/')
                .ok_or_else(|| bad("continue is not what a list has given".to_owned()))?;
            Some(ServiceKey::parse(namespace, name).map_err(bad_name)?)
        }
    };
    let mut answered = found(&list::list(known, namespace.as_ref(), after.as_ref(), limit));
    // Columns of a table are the same for one service and for a list of them.
    let items = answered.body.get_mut("items").and_then(Value::as_array_mut);
    for item in items.into_iter().flatten() {
        item["verdict"] = json!({ "code": item["code"], "message": item["message"] });
    }
    Ok(answered)
}

fn found(answer: &impl Serialize) -> Answered {
    match serde_json::to_value(answer) {
        Ok(body) => Answered::found(body),
        Err(error) => Answered::refused(500, "InternalError", error.to_string()),
    }
}

fn bad(message: String) -> Answered {
    Answered::refused(400, "BadRequest", message)
}

#[allow(clippy::needless_pass_by_value, reason = "an error is turned into an answer")]
fn bad_name(error: BadName) -> Answered {
    bad(error.to_string())
}
