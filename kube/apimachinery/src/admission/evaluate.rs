//! What a policy says about one request.

use super::policy::{Policy, Source, listed, text};
use super::{Denial, Outcome, Request, matching};
use crate::cel::{self, Budget, Exceeded, Failure};
use crate::invalid::go_json;
use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Most bytes of a message that an expression made.
const MESSAGE_MOST: usize = 5 * 1024;
/// Most bytes of an audit annotation's value.
const ANNOTATION_MOST: usize = 10 * 1024;

/// What this policy says under this binding. `params` is one object that `paramRef` found: nothing when the policy has
/// no `paramKind` or the binding no `paramRef`. With several parameters, ask once for each.
#[must_use]
pub fn evaluate(policy: &Policy, binding: &Value, params: Option<&Value>, request: &Request<'_>) -> Outcome {
    evaluate_within(policy, binding, params, request, &mut Budget::request())
}

/// The same, where all policies that the request is put to share what they may cost.
#[must_use]
pub fn evaluate_within(
    policy: &Policy,
    binding: &Value,
    params: Option<&Value>,
    request: &Request<'_>,
    budget: &mut Budget,
) -> Outcome {
    let resources = binding.pointer("/spec/matchResources").unwrap_or(&Value::Null);
    if !policy.matches(request) || !matching::matches(resources, request) {
        return Outcome::default();
    }
    let mut asked = Asked::new(policy, params, request, budget.within(&Budget::object()));
    let outcome = asked.outcome(binding, budget.within(&Budget::conditions()));
    budget.take(asked.cost + asked.budget.spent());
    policy.note(asked.cost + asked.budget.spent());
    outcome
}

fn some((at, decision): (usize, Option<Decision>)) -> Option<(usize, Decision)> {
    decision.map(|decision| (at, decision))
}

/// Does this binding put its policy into force for this request? Decide before fetching parameters.
#[must_use]
pub fn binds(binding: &Value, request: &Request<'_>) -> bool {
    matching::matches(binding.pointer("/spec/matchResources").unwrap_or(&Value::Null), request)
}

/// What is said when `paramRef` found nothing: with `parameterNotFoundAction: Deny` the request is refused.
#[must_use]
pub fn params_missing(policy: &Policy, binding: &Value) -> Outcome {
    let action = binding.pointer("/spec/paramRef/parameterNotFoundAction").and_then(Value::as_str);
    if action != Some("Deny") || !policy.fails_closed {
        return Outcome::default();
    }
    let why =
        "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    let message = refused(policy, binding, why);
    Outcome {
        denials: vec![Denial { code: 422, reason: "Invalid".to_owned(), message }],
        ..Outcome::default()
    }
}

fn refused(policy: &Policy, binding: &Value, why: &str) -> String {
    let name = binding.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    format!("ValidatingAdmissionPolicy '{}' with binding '{name}' denied request: {why}", policy.name)
}

struct Decision {
    message: String,
    reason: String,
}

/// One request put to one policy: variables are worked out when an expression needs them, and once.
struct Asked<'a> {
    policy: &'a Policy,
    given: Vec<(&'static str, Cel)>,
    worked_out: BTreeMap<&'a str, Result<Cel, String>>,
    budget: Budget,
    /// What the conditions cost.
    cost: u64,
    /// The budget is spent: nothing more is asked.
    ended: bool,
}

impl<'a> Asked<'a> {
    fn new(policy: &'a Policy, params: Option<&Value>, request: &Request<'_>, budget: Budget) -> Self {
        let plain = |value: Option<&Value>| value.map_or(Cel::Null, cel::plain);
        let mut given = vec![
            ("object", plain(request.object)),
            ("oldObject", plain(request.old_object)),
            ("request", cel::plain(&described(request))),
            ("namespaceObject", plain(request.namespace_object)),
        ];
        if policy.has_params {
            given.push(("params", plain(params)));
        }
        Self { policy, given, worked_out: BTreeMap::new(), budget, cost: 0, ended: false }
    }

    /// What the policy says.
    fn outcome(&mut self, binding: &Value, conditions: Budget) -> Outcome {
        match self.conditions_hold(conditions) {
            Ok(true) => {}
            Ok(false) => return Outcome::default(),
            Err(why) => {
                let failure = vec![(0, self.failure(why))];
                return self.acted(binding, failure.into_iter().flat_map(some).collect());
            }
        }
        let mut decisions = Vec::new();
        for (at, validation) in self.policy.validations.iter().enumerate() {
            match self.value(&validation.source) {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => {
                    let made = validation.message_source.as_ref().and_then(|source| self.text(source));
                    let message = made.filter(|text| text.len() <= MESSAGE_MOST && !text.contains('\n'));
                    let message = message.unwrap_or_else(|| validation.message.clone());
                    let message = match message.as_str() {
                        "" => format!("failed expression: {}", validation.source.text.trim()),
                        _ => message,
                    };
                    decisions.push((at, Decision { message, reason: validation.reason.clone() }));
                }
                Err(why) => decisions.extend(self.failure(why).map(|decision| (at, decision))),
            }
            if self.ended {
                break;
            }
        }
        let mut outcome = self.acted(binding, decisions);
        for (key, source) in &self.policy.annotations {
            let mut value = self.text(source).unwrap_or_default();
            if !value.is_empty() {
                value.truncate(value.floor_char_boundary(ANNOTATION_MOST));
                outcome.audit.push((format!("{}/{key}", self.policy.name), value));
            }
        }
        outcome
    }

    /// All conditions must be true; one that is false counts more than one that fails. They have a budget of their own.
    fn conditions_hold(&mut self, budget: Budget) -> Result<bool, String> {
        let whole = std::mem::replace(&mut self.budget, budget);
        let held = self.ask_conditions();
        self.cost += std::mem::replace(&mut self.budget, whole).spent();
        held
    }

    fn ask_conditions(&mut self) -> Result<bool, String> {
        let mut failed = Vec::new();
        for condition in &self.policy.conditions {
            match self.value(condition) {
                Ok(Cel::Bool(true)) => {}
                Ok(_) => return Ok(false),
                Err(why) => failed.push(why),
            }
        }
        match failed.len() {
            0 => Ok(true),
            _ if !self.policy.fails_closed => Ok(false),
            1 => Err(failed.remove(0)),
            _ => Err(format!("[{}]", failed.join(", "))),
        }
    }

    fn value(&mut self, source: &'a Source) -> Result<Cel, String> {
        self.bare(source).map_err(|why| format!("expression '{}' resulted in error: {why}", source.text))
    }

    fn bare(&mut self, source: &'a Source) -> Result<Cel, String> {
        let needed = cel::fields_of(&source.expression, "variables");
        for name in &needed {
            self.work_out(name);
        }
        let known = self.worked_out.iter().filter_map(|(name, value)| {
            Some((Key::String(Arc::new((*name).to_owned())), value.as_ref().ok()?.clone()))
        });
        let mut variables = self.given.clone();
        variables.push(("variables", Cel::Map(Map { map: Arc::new(known.collect::<HashMap<_, _>>()) })));
        source.expression.value(&variables, &mut self.budget).map_err(|failure| {
            self.ended |= failure == Failure::Exceeded(Exceeded::Budget);
            let why = failure.into_words();
            let failed = |name: &String| {
                Some((name.clone(), self.worked_out.get(name.as_str())?.as_ref().err()?.clone()))
            };
            match needed.iter().find_map(failed) {
                Some((name, inner)) => format!("composited variable \"{name}\" fails to evaluate: {inner}"),
                None => why,
            }
        })
    }

    fn work_out(&mut self, name: &str) {
        let Some((known, source)) = self.policy.variables.iter().find(|(known, _)| known == name) else {
            return;
        };
        if self.worked_out.contains_key(known.as_str()) {
            return;
        }
        // A variable that needs itself finds this.
        let itself = Err("it depends on itself".to_owned());
        self.worked_out.insert(known, itself);
        let value = self.bare(source);
        self.worked_out.insert(known, value);
    }

    fn text(&mut self, source: &'a Source) -> Option<String> {
        match self.value(source) {
            Ok(Cel::String(text)) => Some(text.trim().to_owned()),
            _ => None,
        }
    }

    /// What an expression that fails decides.
    fn failure(&self, message: String) -> Option<Decision> {
        self.policy.fails_closed.then(|| Decision { message, reason: "Invalid".to_owned() })
    }

    /// Carries out the binding's `validationActions`.
    fn acted(&self, binding: &Value, decisions: Vec<(usize, Decision)>) -> Outcome {
        let mut outcome = Outcome::default();
        let spec = binding.get("spec").unwrap_or(&Value::Null);
        let bound = binding.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let actions: Vec<&str> = listed(spec, "validationActions").filter_map(Value::as_str).collect();
        for (at, Decision { message, reason }) in decisions {
            for action in &actions {
                match *action {
                    "Deny" => outcome.denials.push(Denial {
                        code: code(&reason),
                        reason: reason.clone(),
                        message: refused(self.policy, binding, &message),
                    }),
                    "Warn" => outcome.warnings.push(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{bound}': {message}",
                        self.policy.name
                    )),
                    "Audit" => {
                        let text = |text: &str| go_json(&Value::from(text));
                        let value = format!(
                            "[{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{at},\
                             \"validationActions\":{}}}]",
                            text(&message),
                            text(&self.policy.name),
                            text(bound),
                            go_json(&json!(actions)),
                        );
                        outcome.audit.push(("validation.policy.admission.k8s.io/validation_failure".to_owned(), value));
                    }
                    _ => {}
                }
            }
        }
        outcome
    }
}

fn code(reason: &str) -> u16 {
    match reason {
        "Unauthorized" => 401,
        "Forbidden" => 403,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    }
}

/// The request as expressions see it.
fn described(request: &Request<'_>) -> Value {
    let kind = json!({"group": request.group, "version": request.version, "kind": request.kind});
    let resource = json!({"group": request.group, "version": request.version, "resource": request.resource});
    let mut described = json!({
        "uid": request.uid, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "name": request.name, "namespace": request.namespace, "operation": request.operation,
        "userInfo": request.user.cloned().unwrap_or_else(|| json!({})), "dryRun": request.dry_run,
    });
    if let Some(options) = request.options {
        described["options"] = options.clone();
    }
    if !request.subresource.is_empty() {
        described["subResource"] = request.subresource.into();
        described["requestSubResource"] = request.subresource.into();
    }
    for field in ["name", "namespace"] {
        if text(&described, field).is_empty()
            && let Some(described) = described.as_object_mut()
        {
            described.remove(field);
        }
    }
    described
}
