//! CRDs: are their names free, what do they serve, and what is left of them when they go.

use super::discard::{Fate, drop_finalizer};
use crate::api::ApiState;
use crate::http::encode;
use crate::resources::registry;
use crate::resources::strategy::{has_condition, strings};
use crate::storage::store::{EventKind, Key, Object};
use crate::verbs::CLEANUP;
use atoll_apimachinery::conditions::since;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// What is known of all CRDs.
#[derive(Default)]
struct Known {
    /// The names that each has.
    names: BTreeMap<String, Names>,
    /// Those whose objects are being deleted.
    cleaning: BTreeSet<String>,
}

/// The names that a CRD has in its group.
struct Names {
    group: Value,
    resources: Vec<String>,
    kinds: Vec<String>,
}

impl Names {
    fn of(definition: &Value) -> Self {
        let names = &definition["status"]["acceptedNames"];
        let text = |field: &str| names[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let short = strings(&names["shortNames"]).map(str::to_owned);
        Self {
            group: definition["spec"]["group"].clone(),
            resources: text("plural").into_iter().chain(text("singular")).chain(short).collect(),
            kinds: text("kind").into_iter().chain(text("listKind")).collect(),
        }
    }
}

/// Keeps CRDs and what is served in step, for ever.
pub(super) async fn run(state: Arc<ApiState>) {
    let prefix = Key::resource_prefix(GROUP, PLURAL);
    let mut known = Known::default();
    loop {
        let Ok(page) = state.store.list(&prefix, None, None, None) else { return };
        let Ok(mut watch) = state.store.watch(&prefix, Some(page.revision)) else { continue };
        let names = |object: &Object| (object.key.name().to_owned(), Names::of(&encode::read(&object.body)));
        known.names = page.objects.iter().map(names).collect();
        for object in &page.objects {
            step(&state, object.key.name(), &mut known).await;
        }
        // Falling behind means to start over.
        while let Ok(event) = watch.next().await {
            let name = event.object.key.name().to_owned();
            if event.kind == EventKind::Deleted {
                known.names.remove(&name);
                known.cleaning.remove(&name);
                state.served.change(|registry| registry.forget(&name));
                // Its names are free: others may have waited for them.
                let Ok(page) = state.store.list(&prefix, None, None, None) else { return };
                for other in &page.objects {
                    step(&state, other.key.name(), &mut known).await;
                }
            } else {
                step(&state, &name, &mut known).await;
            }
        }
    }
}

/// Brings one CRD up to date.
async fn step(state: &Arc<ApiState>, name: &str, known: &mut Known) {
    let key = Key::new(GROUP, PLURAL, "", name);
    let Some(object) = state.store.get(&key) else { return };
    let mut definition = encode::read(&object.body);
    let verdict = judge(&definition, &known.taken(name, &definition));
    definition["status"]["acceptedNames"] = verdict.names.clone();
    known.names.insert(name.to_owned(), Names::of(&definition));
    if verdict.accepted {
        state.served.define(name, &definition, state.store.revision());
    }
    let registry = state.served.now();
    let Some(own) = registry.find(GROUP, "v1", PLURAL) else { return };
    let stamp = state.environment.stamp();
    let amended = state.amend(own, &key, |definition| note(definition, &verdict, &stamp)).await;
    if let Err(error) = amended {
        tracing::warn!(definition = name, %error, "cannot write the CRD's status");
    }
    let going = definition["metadata"].get("deletionTimestamp").is_some();
    if going
        && strings(&definition["metadata"]["finalizers"]).any(|one| one == CLEANUP)
        && known.cleaning.insert(name.to_owned())
    {
        tokio::spawn(clean(Arc::clone(state), definition, key));
    }
}

/// What is said of a CRD's names.
struct Verdict {
    names: Value,
    accepted: bool,
    reason: &'static str,
    message: String,
}

/// Names of resources and of kinds.
type Taken<'k> = (BTreeSet<&'k str>, BTreeSet<&'k str>);

impl Known {
    /// The names that other CRDs of the group have.
    fn taken(&self, name: &str, definition: &Value) -> Taken<'_> {
        let (mut resources, mut kinds) = Taken::default();
        for (other, names) in &self.names {
            if other != name && names.group == definition["spec"]["group"] {
                resources.extend(names.resources.iter().map(String::as_str));
                kinds.extend(names.kinds.iter().map(String::as_str));
            }
        }
        (resources, kinds)
    }
}

fn judge(definition: &Value, (resources, kinds): &Taken<'_>) -> Verdict {
    let wanted = &definition["spec"]["names"];
    let mut names = definition["status"]["acceptedNames"].clone();
    if !names.is_object() {
        names = json!({});
    }
    let mut conflict = None;
    let fields = [
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ];
    for (field, reason, taken) in fields {
        let name = wanted[field].as_str().unwrap_or_default();
        if names[field] != wanted[field] && taken.contains(name) {
            conflict = Some((reason, format!("{name:?} is already in use")));
        } else {
            names[field] = wanted[field].clone();
        }
    }
    let short: Vec<&str> = strings(&wanted["shortNames"]).filter(|name| resources.contains(*name)).collect();
    if short.is_empty() {
        copy(&mut names, wanted, "shortNames");
    } else {
        let texts: Vec<String> = short.iter().map(|name| format!("{name:?} is already in use")).collect();
        let text = if texts.len() == 1 { texts.concat() } else { format!("[{}]", texts.join(", ")) };
        conflict = Some(("ShortNamesConflict", text));
    }
    copy(&mut names, wanted, "categories");
    let accepted = conflict.is_none();
    let (reason, message) = conflict.unwrap_or(("NoConflicts", "no conflicts found".to_owned()));
    Verdict { names, accepted, reason, message }
}

fn copy(names: &mut Value, wanted: &Value, field: &str) {
    match wanted.get(field) {
        Some(value) => names[field] = value.clone(),
        None => {
            if let Some(fields) = names.as_object_mut() {
                fields.remove(field);
            }
        }
    }
}

/// Writes the verdict into the CRD. False if nothing is new.
fn note(definition: &mut Value, verdict: &Verdict, now: &str) -> bool {
    let before = definition["status"].clone();
    if !definition["status"].is_object() {
        definition["status"] = json!({});
    }
    definition["status"]["acceptedNames"] = verdict.names.clone();
    let status = if verdict.accepted { "True" } else { "False" };
    set_condition(definition, "NamesAccepted", status, verdict.reason, &verdict.message, now);
    if verdict.accepted {
        let message = "the initial names have been accepted";
        set_condition(definition, "Established", "True", "InitialNamesAccepted", message, now);
    } else if !has_condition(definition, "Established") {
        set_condition(definition, "Established", "False", "NotAccepted", "not all names are accepted", now);
    }
    before != definition["status"]
}

/// Sets a condition; its time changes with its status.
pub(crate) fn set_condition(
    definition: &mut Value,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    if !definition["status"]["conditions"].is_array() {
        definition["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else { return };
    let new = json!({"type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message});
    match conditions.iter_mut().find(|one| one["type"] == kind) {
        None => conditions.push(new),
        Some(old) => {
            let (was, at) = (old["status"].take(), old["lastTransitionTime"].take());
            *old = new;
            old["lastTransitionTime"] = since(Some((&was, at)), &Value::from(status), now.into());
        }
    }
}

/// Were a CRD's names accepted?
pub(crate) fn is_accepted(definition: &Value) -> bool {
    has_condition(definition, "NamesAccepted") || has_condition(definition, "Established")
}

/// Deletes every object of a CRD that goes, then lets it go.
async fn clean(state: Arc<ApiState>, definition: Value, key: Key) {
    let served = state.served.now().defined(key.name()).first().cloned();
    let resource = served.or_else(|| {
        registry::resources(&definition, state.store.revision()).into_iter().next().map(Arc::new)
    });
    if let Some(resource) = resource {
        let prefix = Key::resource_prefix(&resource.stored.group, &resource.stored.plural);
        loop {
            let Ok(page) = state.store.list(&prefix, None, None, None) else { return };
            let mut left = false;
            for object in &page.objects {
                left |= !matches!(state.discard(&resource, &object.key, None).await, Ok(Fate::Gone));
            }
            if !left {
                break;
            }
            // One has a finalizer: nothing to do until it changes.
            let Ok(mut watch) = state.store.watch(&prefix, None) else { continue };
            if state.store.list(&prefix, None, None, None).is_ok_and(|page| page.objects.is_empty()) {
                break;
            }
            let _ = watch.next().await;
        }
    }
    let registry = state.served.now();
    let Some(own) = registry.find(GROUP, "v1", PLURAL) else { return };
    if let Err(error) = state.amend(own, &key, |definition| drop_finalizer(definition, CLEANUP)).await {
        tracing::warn!(%key, %error, "cannot remove the CRD's finalizer");
    }
}
