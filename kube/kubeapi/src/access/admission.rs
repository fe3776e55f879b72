//! Policies that say no (`ValidatingAdmissionPolicy`).

use crate::api::ApiState;
use crate::http::encode;
use crate::http::status_error::StatusError;
use crate::resources::registry::Registry;
use crate::resources::view;
use crate::storage::cache::Cache;
use crate::storage::store::{Key, Store};
use crate::verbs::RequestContext;
use atoll_apimachinery::admission::{self, Budget, Policy, Request};
use atoll_apimachinery::selector::labels;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const GROUP: &str = "admissionregistration.k8s.io";

/// Policies and their bindings; read again after each change of theirs.
#[derive(Default)]
pub(crate) struct Policies {
    known: Cache<Vec<Bound>>,
}

/// A policy and the bindings that put it into force.
struct Bound {
    policy: Policy,
    document: Value,
    bindings: Vec<Value>,
}

impl Policies {
    /// Something of `admissionregistration.k8s.io` was written.
    pub(crate) fn changed(&self) {
        self.known.invalidate();
    }

    /// Does a policy speak about this request that costs much?
    pub(crate) fn are_dear(&self, store: &Store, request: &Request<'_>) -> bool {
        self.now(store).iter().any(|bound| bound.policy.is_dear() && bound.policy.matches(request))
    }

    fn now(&self, store: &Store) -> Arc<Vec<Bound>> {
        self.known.get(|| bound(store))
    }
}

/// The policies that bindings put into force.
fn bound(store: &Store) -> Vec<Bound> {
    let all = |plural: &str| -> Vec<Value> {
        let page = store.list(&Key::resource_prefix(GROUP, plural), None, None, None);
        let objects = page.map(|page| page.objects).unwrap_or_default();
        objects.iter().map(|object| encode::read(&object.body)).collect()
    };
    let bindings = all("validatingadmissionpolicybindings");
    let mut bound = Vec::new();
    for document in all("validatingadmissionpolicies") {
        let own =
            bindings.iter().filter(|binding| binding["spec"]["policyName"] == document["metadata"]["name"]);
        let bindings: Vec<Value> = own.cloned().collect();
        if bindings.is_empty() {
            continue;
        }
        match Policy::compile(&document) {
            Ok(policy) => bound.push(Bound { policy, document, bindings }),
            // It was checked when it was written.
            Err(_) => {
                tracing::warn!(policy = %document["metadata"]["name"], "the policy does not compile");
            }
        }
    }
    bound
}

impl RequestContext<'_> {
    /// Do the policies let this pass?
    pub(crate) fn admit(
        &self,
        operation: &str,
        name: &str,
        object: Option<&Value>,
        old: Option<&Value>,
        dry_run: bool,
    ) -> Result<(), StatusError> {
        // Policies are not asked about themselves: a wrong one could never be mended.
        if self.resource.group == GROUP {
            return Ok(());
        }
        let policies = self.state.policies.now(&self.state.store);
        let concerns =
            |bound: &Bound| bound.policy.concerns(&self.resource.group, &self.resource.names.plural);
        if !policies.iter().any(concerns) {
            return Ok(());
        }
        let namespace = self.namespace();
        let namespace_object = if self.resource.is("", "namespaces") {
            object.or(old).cloned()
        } else if namespace.is_empty() {
            None
        } else {
            self.state
                .store
                .get(&Key::new("", "namespaces", "", namespace))
                .map(|found| encode::read(&found.body))
        };
        let user = self.user.info();
        let uid = self.state.environment.uid();
        let request = Request {
            operation,
            group: &self.resource.group,
            version: &self.resource.version,
            kind: &self.resource.names.kind,
            resource: &self.resource.names.plural,
            subresource: &self.target.subresource,
            name,
            namespace,
            user: Some(&user),
            object,
            old_object: old,
            namespace_object: namespace_object.as_ref(),
            options: None,
            dry_run,
            uid: &uid,
        };
        let registry = self.state.served.now();
        let mut budget = Budget::request();
        for bound in policies.iter().filter(|bound| bound.policy.matches(&request)) {
            for binding in bound.bindings.iter().filter(|binding| admission::binds(binding, &request)) {
                self.ask_policy(bound, binding, &request, &registry, &mut budget)?;
            }
        }
        Ok(())
    }

    fn ask_policy(
        &self,
        bound: &Bound,
        binding: &Value,
        request: &Request<'_>,
        registry: &Registry,
        budget: &mut Budget,
    ) -> Result<(), StatusError> {
        let name = request.name;
        let params = self.state.params(bound, binding, request.namespace, registry);
        let all: Vec<Option<&Value>> = match &params {
            Params::None => vec![None],
            Params::These(found) => found.iter().map(Some).collect(),
            Params::Missing => return self.heed(admission::params_missing(&bound.policy, binding), name),
        };
        for params in all {
            let said = admission::evaluate_within(&bound.policy, binding, params, request, budget);
            self.heed(said, name)?;
        }
        Ok(())
    }

    /// Does what a policy says.
    fn heed(&self, outcome: admission::Outcome, name: &str) -> Result<(), StatusError> {
        self.warnings().extend(outcome.warnings);
        match outcome.denials.into_iter().next() {
            None => Ok(()),
            Some(denial) => {
                let causes = vec![json!({"message": denial.message})];
                Err(StatusError::denied(
                    self.resource.plural(),
                    name,
                    &denial.reason,
                    &denial.message,
                    causes,
                ))
            }
        }
    }
}

/// What a policy's parameters are.
enum Params {
    /// It has none.
    None,
    These(Vec<Value>),
    /// It should have some.
    Missing,
}

impl ApiState {
    fn params(&self, bound: &Bound, binding: &Value, namespace: &str, registry: &Registry) -> Params {
        let kind = &bound.document["spec"]["paramKind"];
        let reference = &binding["spec"]["paramRef"];
        if !kind.is_object() || !reference.is_object() {
            return Params::None;
        }
        let Some(resource) = registry.of_kind(text(&kind["apiVersion"]), text(&kind["kind"])) else {
            return Params::Missing;
        };
        let place = match text(&reference["namespace"]) {
            "" => namespace,
            named => named,
        };
        let place = if resource.namespaced { place } else { "" };
        let found: Vec<Value> = match text(&reference["name"]) {
            "" => {
                let Ok(selector) = labels::from_object(&reference["selector"]) else {
                    return Params::Missing;
                };
                let page = self.store.list(&resource.prefix(place), None, None, None);
                let all = page.map(|page| page.objects).unwrap_or_default();
                let shown = all.iter().map(|object| view::shown(resource, object));
                shown.filter(|object| selector.matches_object(object)).collect()
            }
            name => self
                .store
                .get(&resource.key(place, name))
                .iter()
                .map(|object| view::shown(resource, object))
                .collect(),
        };
        if found.is_empty() { Params::Missing } else { Params::These(found) }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
