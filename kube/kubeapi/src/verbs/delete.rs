//! An object that goes: at once, or when its finalizers are gone and its time is up.

use super::{Outcome, RequestContext, refused};
use crate::environment::seconds;
use crate::http::answer::Answer;
use crate::http::decode;
use crate::http::negotiate;
use crate::http::request::{DeleteOptions, ListOptions, Propagation};
use crate::http::status_error::StatusError;
use crate::resources::resource::Resource;
use crate::resources::strategy::{Orphans, Special, is_going, strings};
use crate::resources::view;
use crate::storage::store::WriteError;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Finalizers of the garbage collector.
pub(crate) const ORPHAN: &str = "orphan";
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of a CRD whose objects are still there.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";
/// Namespaces that always are there.
const KEPT_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];
/// How long a pod may take to end by default.
const POD_GRACE: i64 = 30;
const ATTEMPTS: usize = 20;

/// What came of a deletion.
struct Deleted {
    /// The object's last state, or its new one if it is still on its way out.
    object: Outcome,
    later: bool,
    uid: Value,
}

impl RequestContext<'_> {
    pub(crate) async fn delete(&self) -> Result<Answer, StatusError> {
        let options = self.delete_options()?;
        let name = self.target.name.clone();
        let Deleted { object, later, uid } = Box::pin(self.delete_one(&name, &options)).await?;
        let code = if later && options.orphan == Some(false) { StatusCode::ACCEPTED } else { StatusCode::OK };
        if later || self.resource.rules.shows_deleted {
            return Ok(self.answer_outcome(code, &object));
        }
        let mut details = json!({"name": name, "kind": self.resource.names.plural, "uid": uid});
        if !self.resource.group.is_empty() {
            details["group"] = self.resource.group.as_str().into();
        }
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
        Ok(Answer::value(code, &status, self.output.media_type).warn(&self.warnings()))
    }

    pub(crate) async fn delete_collection(&self) -> Result<Answer, StatusError> {
        let list_options = ListOptions::parse(&self.info.query, false)?;
        let options = self.delete_options()?;
        let found = self.find(&list_options)?;
        for object in &found.objects {
            let name = object.key.name().to_owned();
            match Box::pin(self.delete_one(&name, &options)).await {
                Ok(_) => {}
                Err(error) if error.code() == StatusCode::NOT_FOUND => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.answer_list(&found))
    }

    fn delete_options(&self) -> Result<DeleteOptions, StatusError> {
        if self.body.is_empty() {
            return DeleteOptions::from_query(&self.info.query);
        }
        let wrong = |why: String| StatusError::bad_request(why);
        let input = negotiate::input(&self.parts.headers, true)?;
        let (body, _) = decode::read(input, &self.body).map_err(wrong)?;
        let kind = body["kind"].as_str().unwrap_or("DeleteOptions");
        if !body.is_object() || kind != "DeleteOptions" {
            return Err(wrong("decoded object cannot be converted to DeleteOptions".to_owned()));
        }
        let fits = |field: &str, is: fn(&Value) -> bool| {
            body.get(field).is_none_or(|value| value.is_null() || is(value))
        };
        let shape = fits("gracePeriodSeconds", Value::is_i64)
            && fits("preconditions", Value::is_object)
            && fits("propagationPolicy", Value::is_string)
            && fits("orphanDependents", Value::is_boolean)
            && fits("dryRun", Value::is_array);
        if !shape {
            return Err(wrong("json: cannot unmarshal a value into the Go struct DeleteOptions".to_owned()));
        }
        DeleteOptions::from_body(&body)
    }

    async fn delete_one(&self, name: &str, options: &DeleteOptions) -> Result<Deleted, StatusError> {
        if self.resource.is("", "namespaces") && KEPT_NAMESPACES.contains(&name) {
            return Err(StatusError::forbidden(
                self.resource.plural(),
                name,
                "this namespace may not be deleted",
            ));
        }
        self.warn_of_orphans(options);
        for _ in 0..ATTEMPTS {
            let existing = self.stored(name)?;
            let old = view::shown(&self.resource, &existing);
            check_preconditions(&self.resource, name, &old, options)?;
            self.admit("DELETE", name, None, Some(&old), options.dry_run)?;
            let step = next_step(&self.resource, &old, options, self.state.environment.now());
            let (uid, later) = (old["metadata"]["uid"].clone(), step != Step::Remove);
            let written = match step {
                Step::Nothing => return Ok(Deleted { object: Outcome::Shown(old), later, uid }),
                Step::Mark(new) if options.dry_run => {
                    return Ok(Deleted { object: Outcome::Shown(new), later, uid });
                }
                Step::Remove if options.dry_run => {
                    return Ok(Deleted { object: Outcome::Shown(old), later, uid });
                }
                Step::Mark(new) => {
                    let (key, expect) = (existing.key.clone(), Some(existing.revision));
                    self.state.write(&self.resource, key, &new, expect).await
                }
                Step::Remove => self.state.remove(&self.resource, &existing, &old).await,
            };
            match written {
                Ok(written) => return Ok(Deleted { object: Outcome::Stored(written), later, uid }),
                Err(WriteError::Conflict(_)) => tokio::task::yield_now().await,
                Err(error) => return Err(refused(&self.resource, name, &error)),
            }
        }
        Err(StatusError::modified(self.resource.plural(), name))
    }

    fn warn_of_orphans(&self, options: &DeleteOptions) {
        let unsaid = options.propagation.is_none() && options.orphan.is_none();
        if self.resource.rules.special == Special::Job && unsaid {
            let text = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning";
            let mut warnings = self.warnings();
            if !warnings.iter().any(|known| known == text) {
                warnings.push(text.to_owned());
            }
        }
    }
}

fn check_preconditions(
    resource: &Resource,
    name: &str,
    old: &Value,
    options: &DeleteOptions,
) -> Result<(), StatusError> {
    let kind = resource.kind();
    let own = |field: &str| old["metadata"][field].as_str().unwrap_or_default().to_owned();
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != own("uid")) {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            own("uid")
        );
        return Err(StatusError::conflict(kind, name, &why));
    }
    if let Some(version) =
        options.resource_version.as_deref().filter(|version| *version != own("resourceVersion"))
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
            own("resourceVersion")
        );
        return Err(StatusError::conflict(kind, name, &why));
    }
    Ok(())
}

/// What a deletion does to an object now.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// It was deleted before; nothing is new.
    Nothing,
    /// It is marked as on its way out.
    Mark(Value),
    /// It is removed.
    Remove,
}

pub(crate) fn next_step(resource: &Resource, old: &Value, options: &DeleteOptions, now: Timestamp) -> Step {
    let special = resource.rules.special;
    let deleted = is_going(old);
    if special == Special::Namespace && !deleted {
        return Step::Mark(terminating_namespace(old, now));
    }
    if special == Special::Namespace && strings(&old["spec"]["finalizers"]).next().is_some() {
        return Step::Nothing;
    }
    if special == Special::Definition && !deleted {
        return Step::Mark(terminating_definition(old, now));
    }
    let mut new = old.clone();
    if special == Special::Pod {
        match graceful(&mut new, options, now) {
            Grace::Pending => return Step::Nothing,
            Grace::Wait => {
                set_finalizers(resource, &mut new, options);
                return Step::Mark(new);
            }
            Grace::None => {}
        }
    }
    let changed = set_finalizers(resource, &mut new, options);
    if strings(&new["metadata"]["finalizers"]).next().is_none() {
        return Step::Remove;
    }
    let marked = mark(&mut new, now);
    if changed || marked { Step::Mark(new) } else { Step::Nothing }
}

/// How a pod ends.
enum Grace {
    /// At once.
    None,
    /// After a while, from now on.
    Wait,
    /// After a while that has begun, and is not made shorter.
    Pending,
}

fn graceful(new: &mut Value, options: &DeleteOptions, now: Timestamp) -> Grace {
    let asked = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    if is_going(new) {
        let current = new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        return match asked {
            _ if current == 0 => Grace::None,
            Some(asked) if asked < current && asked > 0 => {
                stamp_deletion(new, now, asked);
                Grace::Wait
            }
            Some(0) => Grace::None,
            _ => Grace::Pending,
        };
    }
    let own = new["spec"]["terminationGracePeriodSeconds"].as_i64();
    let mut period = asked.or(own).unwrap_or(POD_GRACE);
    // A pod that was never placed, or has ended, has nothing to end.
    let unplaced = new["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
    if unplaced || matches!(new["status"]["phase"].as_str(), Some("Failed" | "Succeeded")) {
        period = 0;
    }
    if period == 0 {
        return Grace::None;
    }
    stamp_deletion(new, now, period);
    bump(new);
    Grace::Wait
}

fn stamp_deletion(new: &mut Value, now: Timestamp, period: i64) {
    let at = now.checked_add(SignedDuration::from_secs(period)).unwrap_or(now);
    new["metadata"]["deletionTimestamp"] = seconds(at).into();
    new["metadata"]["deletionGracePeriodSeconds"] = period.into();
}

/// Marks an object as on its way out. False if it was.
fn mark(new: &mut Value, now: Timestamp) -> bool {
    if is_going(new) && new["metadata"]["deletionGracePeriodSeconds"] == 0 {
        return false;
    }
    bump(new);
    new["metadata"]["deletionTimestamp"] = seconds(now).into();
    new["metadata"]["deletionGracePeriodSeconds"] = 0.into();
    true
}

fn bump(new: &mut Value) {
    if let Some(generation) = new["metadata"]["generation"].as_i64().filter(|generation| *generation > 0) {
        new["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Sets the garbage collector's finalizers as the options want them. True if that changes anything.
fn set_finalizers(resource: &Resource, new: &mut Value, options: &DeleteOptions) -> bool {
    if resource.rules.orphans == Orphans::Unsupported {
        return false;
    }
    let old: Vec<String> = strings(&new["metadata"]["finalizers"]).map(str::to_owned).collect();
    let has = |name: &str| old.iter().any(|one| one == name);
    let orphan = match (options.orphan, options.propagation) {
        (Some(orphan), _) => orphan,
        (_, Some(policy)) => policy == Propagation::Orphan,
        _ if has(ORPHAN) => true,
        _ if has(FOREGROUND) => false,
        _ => resource.rules.orphans == Orphans::ByDefault,
    };
    let foreground = match (options.orphan, options.propagation) {
        (Some(_), _) => false,
        (_, Some(policy)) => policy == Propagation::Foreground,
        _ => has(FOREGROUND),
    };
    let mut finalizers: Vec<String> =
        old.iter().filter(|name| *name != ORPHAN && *name != FOREGROUND).cloned().collect();
    if orphan {
        finalizers.push(ORPHAN.to_owned());
    }
    if foreground {
        finalizers.push(FOREGROUND.to_owned());
    }
    let left: BTreeSet<&String> = finalizers.iter().collect();
    let same = old.len() == finalizers.len() && old.iter().all(|name| left.contains(name));
    if same {
        return false;
    }
    if finalizers.is_empty() {
        if let Some(fields) = new["metadata"].as_object_mut() {
            fields.remove("finalizers");
        }
    } else {
        new["metadata"]["finalizers"] = finalizers.into();
    }
    true
}

fn terminating_namespace(old: &Value, now: Timestamp) -> Value {
    let mut new = old.clone();
    new["metadata"]["deletionTimestamp"] = seconds(now).into();
    new["status"]["phase"] = "Terminating".into();
    new
}

fn terminating_definition(old: &Value, now: Timestamp) -> Value {
    let mut new = old.clone();
    new["metadata"]["deletionTimestamp"] = seconds(now).into();
    let mut finalizers: Vec<String> = strings(&new["metadata"]["finalizers"]).map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    new["metadata"]["finalizers"] = finalizers.into();
    let why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    crate::controllers::set_condition(
        &mut new,
        "Terminating",
        "True",
        "InstanceDeletionPending",
        why,
        &seconds(now),
    );
    new
}
