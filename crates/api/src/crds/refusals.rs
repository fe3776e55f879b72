//! What of Karmada's policies we do not honour: refused at admission with the field's name, never ignored.
//!
//! The whole schema is installed, since an API server prunes what it does not know; each refusal is a CEL rule in it, which a real
//! API server and the embedded one both carry out. Values that Karmada's own defaulting writes are accepted.

use serde_json::{Value, json};

/// One refusal: on the schema at `at`, unless `rule` holds; `field` is what the user wrote.
pub struct Refusal {
    /// Where the rule stands, from the root of the schema: `[]` are a list's elements.
    pub at: &'static str,
    /// What may be, in CEL.
    pub rule: &'static str,
    /// The field that is refused, as the message names it.
    pub field: &'static str,
    /// What to do instead, or why.
    pub instead: &'static str,
}

const fn refusal(
    at: &'static str,
    rule: &'static str,
    field: &'static str,
    instead: &'static str,
) -> Refusal {
    Refusal { at, rule, field, instead }
}

/// Of `PropagationPolicy` and `ClusterPropagationPolicy`.
pub const PROPAGATION: &[Refusal] = &[
    refusal(
        "spec",
        "!has(self.failover)",
        "spec.failover",
        "leave it out: what runs in a lost cluster stays there",
    ),
    refusal("spec", "!has(self.association) || !self.association", "spec.association", "use propagateDeps"),
    refusal(
        "spec",
        "!has(self.dependentOverrides) || size(self.dependentOverrides) == 0",
        "spec.dependentOverrides",
        "create the override policy before the template",
    ),
    refusal(
        "spec",
        "!has(self.activationPreference)",
        "spec.activationPreference",
        "leave it out: a changed policy takes effect at once",
    ),
    refusal(
        "spec",
        "!has(self.schedulePriority)",
        "spec.schedulePriority",
        "leave it out: nothing waits for a scheduler",
    ),
    refusal(
        "spec",
        "!has(self.schedulerName) || self.schedulerName == 'default-scheduler'",
        "spec.schedulerName",
        "there is one scheduler, default-scheduler",
    ),
    refusal(
        "spec.placement",
        "!has(self.workloadAffinity)",
        "spec.placement.workloadAffinity",
        "choose clusters by clusterAffinity",
    ),
    refusal(
        "spec.placement",
        "!(has(self.clusterAffinity) && has(self.clusterAffinities))",
        "spec.placement.clusterAffinities",
        "it can't stand beside clusterAffinity",
    ),
    refusal(
        "spec.placement.clusterAffinities[]",
        "!has(self.overflowAffinities)",
        "spec.placement.clusterAffinities[].overflowAffinities",
        "write them as further clusterAffinities",
    ),
    refusal(
        "spec.placement.clusterTolerations[]",
        // Cheap enough for the budget of a list that has no limit; the taints that Karmada's defaults tolerate are of this prefix.
        "!has(self.tolerationSeconds) || (has(self.key) && self.key.startsWith('cluster.karmada.io/'))",
        "spec.placement.clusterTolerations[].tolerationSeconds",
        "leave it out: a taint takes effect at once",
    ),
    refusal(
        "spec.placement.spreadConstraints[]",
        "!has(self.spreadByLabel)",
        "spec.placement.spreadConstraints[].spreadByLabel",
        "use spreadByField",
    ),
    refusal(
        "spec.placement.replicaScheduling.weightPreference",
        "!has(self.dynamicWeight)",
        "spec.placement.replicaScheduling.weightPreference.dynamicWeight",
        "use staticWeightList",
    ),
];

/// Of `OverridePolicy` and `ClusterOverridePolicy`.
pub const OVERRIDE: &[Refusal] = &[
    refusal(
        "spec",
        "!(has(self.overrideRules) && (has(self.overriders) || has(self.targetCluster)))",
        "spec.overriders",
        "it can't stand beside overrideRules",
    ),
    refusal(
        "spec.overriders",
        "!has(self.fieldOverrider)",
        "spec.overriders.fieldOverrider",
        "use plaintext on the whole value",
    ),
    refusal(
        "spec.overrideRules[].overriders",
        "!has(self.fieldOverrider)",
        "spec.overrideRules[].overriders.fieldOverrider",
        "use plaintext on the whole value",
    ),
];

impl Refusal {
    /// What the user is told.
    pub fn message(&self) -> String {
        format!("{} is not honoured by Atoll: {}", self.field, self.instead)
    }
}

/// Puts the rules into a schema. False where a path leads nowhere.
pub(super) fn install(schema: &mut Value, refusals: &[Refusal]) -> bool {
    refusals.iter().all(|refusal| {
        let Some(node) = find(schema, refusal.at) else { return false };
        let rule = json!({ "rule": refusal.rule, "message": refusal.message() });
        match node.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
            Some(rules) => rules.push(rule),
            None => node["x-kubernetes-validations"] = json!([rule]),
        }
        true
    })
}

fn find<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(schema, |node, part| {
        let name = part.trim_end_matches("[]");
        let found = node.get_mut("properties")?.get_mut(name)?;
        if part.ends_with("[]") { found.get_mut("items") } else { Some(found) }
    })
}
