//! The fence against giving others more than one has: what a role or a binding that is written would grant, its writer must
//! have, or have the right to grant it (`escalate` a role, `bind` one). As kube-apiserver decides it, for every way of writing.

use crate::access::rbac::{self, Attributes, Authorizer, Rule, Target};
use crate::http::status_error::{StatusError, Subject};
use crate::resources::strategy::Special;
use crate::verbs::RequestContext;
use serde_json::Value;

impl RequestContext<'_> {
    /// May the user grant what this role or binding grants? `old` is what it was, unless it is new.
    pub(crate) fn check_escalation(&self, new: &Value, old: Option<&Value>) -> Result<(), StatusError> {
        if self.resource.rules.special != Special::Rbac || self.user.is_master() {
            return Ok(());
        }
        let access = self.state.rbac.now(&self.state.store);
        match new.get("roleRef") {
            Some(role) => self.check_binding(&access, role, new, old),
            None => self.check_role(&access, new, old),
        }
    }

    fn check_role(&self, access: &Authorizer, new: &Value, old: Option<&Value>) -> Result<(), StatusError> {
        // By the name of the request: a role that is made has none yet, so that a right to one by name is no right to make it.
        if self.may(access, "escalate", &self.resource.names.plural, &self.target.name)
            || old.is_some_and(|old| only_cleans_up(new, old))
        {
            return Ok(());
        }
        let name = text(&new["metadata"]["name"]);
        let rules: Vec<Rule> = serde_json::from_value(new["rules"].clone()).unwrap_or_default();
        self.check_covered(access, name, &rules)?;
        // It gathers whatever is labelled so, now and later, and no user can take anything out of it: that needs all rights.
        if (aggregates(new) || old.is_some_and(aggregates))
            && access.uncovered(self.user, self.namespace(), &full_authority()).is_err()
        {
            let why = "must have cluster-admin privileges to use the aggregationRule";
            return Err(StatusError::forbidden(self.resource.plural(), name, why));
        }
        Ok(())
    }

    fn check_binding(
        &self,
        access: &Authorizer,
        role: &Value,
        new: &Value,
        old: Option<&Value>,
    ) -> Result<(), StatusError> {
        let (kind, role_name) = (text(&role["kind"]), text(&role["name"]));
        let plural = if kind == "Role" { "roles" } else { "clusterroles" };
        if self.may(access, "bind", plural, role_name) || old.is_some_and(|old| only_cleans_up(new, old)) {
            return Ok(());
        }
        let missing = |_| StatusError::not_found(Subject { group: rbac::GROUP, name: plural }, role_name);
        let rules = access.role_rules(kind, role_name, self.namespace()).map_err(missing)?;
        self.check_covered(access, text(&new["metadata"]["name"]), &rules)
    }

    fn check_covered(&self, access: &Authorizer, name: &str, rules: &[Rule]) -> Result<(), StatusError> {
        let covered = access.uncovered(self.user, self.namespace(), rules);
        covered.map_err(|why| StatusError::forbidden(self.resource.plural(), name, &why.to_string()))
    }

    fn may(&self, access: &Authorizer, verb: &str, resource: &str, name: &str) -> bool {
        let namespace = self.namespace();
        let target = Target::Resource { group: rbac::GROUP, resource, subresource: "", namespace, name };
        access.authorize(&Attributes { user: self.user, verb, target }).allows()
    }
}

/// Does a role gather the rules of others?
fn aggregates(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|selectors| !selectors.is_empty())
}

/// `*` on everything.
fn full_authority() -> [Rule; 2] {
    let all = || vec!["*".to_owned()];
    [
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
    ]
}

/// Does a change touch nothing but what the garbage collector touches? It grants nothing then.
fn only_cleans_up(new: &Value, old: &Value) -> bool {
    let rest = |object: &Value| {
        let mut rest = object.clone();
        if let Some(metadata) = rest["metadata"].as_object_mut() {
            for field in ["ownerReferences", "finalizers", "managedFields"] {
                metadata.remove(field);
            }
        }
        rest
    };
    rest(new) == rest(old)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
