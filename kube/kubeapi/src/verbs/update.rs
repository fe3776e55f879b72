//! A changed object: what PUT and all patches have in common.
//!
//! ```text
//!   read ──▶ change ──▶ keep what may not change ──▶ check ──▶ write, if it is still what was read; else again
//! ```

use super::{Outcome, RequestContext, refused, validate};
use crate::access::rbac::{Attributes, Target};
use crate::http::answer::Answer;
use crate::http::decode;
use crate::http::encode;
use crate::http::negotiate;
use crate::http::request::WriteOptions;
use crate::http::status_error::{StatusError, Subject};
use crate::resources::resource::Resource;
use crate::resources::strategy;
use crate::resources::view;
use crate::storage::store::{Object, WriteError};
use crate::verbs::create::dedup_owners;
use atoll_apimachinery::apply::{self, Operation};
use atoll_apimachinery::invalid::FieldError;
use atoll_apimachinery::meta;
use http::StatusCode;
use serde_json::Value;

/// How often a change is tried when others write at the same time.
const ATTEMPTS: usize = 20;

/// What a change makes of an object: a new one, with its managed fields. Without an object it makes one, or refuses.
pub(super) type Change<'c> = dyn Fn(Option<&Value>) -> Result<Value, StatusError> + Send + Sync + 'c;

/// Whether the object must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    /// It must.
    Refuse,
    /// It is made.
    Create,
}

/// What came of a change.
pub(super) struct Changed {
    pub(super) object: Outcome,
    pub(super) created: bool,
}

impl RequestContext<'_> {
    pub(crate) async fn update(&self) -> Result<Answer, StatusError> {
        let options = WriteOptions::parse(&self.info.query, "UpdateOptions", None)?;
        let input = negotiate::input(&self.parts.headers, self.resource.custom.is_none())?;
        let mut object =
            decode::object(&self.resource, &self.body, input, options.validation, &mut self.warnings())?;
        self.check_namespace(&mut object)?;
        self.check_name(&object)?;
        dedup_owners(&mut object, &mut self.warnings());
        let by = self.manager(&options, Operation::Update);
        let (resource, stamp) = (self.resource.clone(), self.state.environment.stamp());
        let change = move |old: Option<&Value>| {
            self.check_counts(&object, old)?;
            let mut new = object.clone();
            apply::track(old, &mut new, &resource.schema, &by, &stamp);
            Ok(new)
        };
        let upsert = self.resource.rules.create_on_update && self.subresource.is_none();
        let absent = if upsert { Absent::Create } else { Absent::Refuse };
        let changed = Box::pin(self.change(&change, absent, &options)).await?;
        Ok(self.answer_changed(&changed))
    }

    /// Refuses what has more owners or finalizers than it may, before anything is made of them: each copy costs as much again.
    pub(super) fn check_counts(&self, new: &Value, old: Option<&Value>) -> Result<(), StatusError> {
        let none = Value::Null;
        let broken = meta::too_many(&new["metadata"], old.map_or(&none, |old| &old["metadata"]));
        if broken.is_empty() {
            return Ok(());
        }
        let name = new["metadata"]["name"].as_str().unwrap_or_default();
        Err(StatusError::invalid(self.resource.kind(), name, &broken))
    }

    pub(super) fn answer_changed(&self, changed: &Changed) -> Answer {
        let code = if changed.created { StatusCode::CREATED } else { StatusCode::OK };
        self.answer_outcome(code, &changed.object)
    }

    /// The object's name is the request's.
    pub(super) fn check_name(&self, object: &Value) -> Result<(), StatusError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let wanted = &self.target.name;
        if name.is_empty() {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
            )));
        }
        if name != wanted {
            return Err(StatusError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({wanted})"
            )));
        }
        Ok(())
    }

    /// Carries out a change.
    pub(super) async fn change(
        &self,
        change: &Change<'_>,
        absent: Absent,
        options: &WriteOptions,
    ) -> Result<Changed, StatusError> {
        let name = self.target.name.clone();
        let key = self.key(&name);
        let warned = self.warnings().len();
        for _ in 0..ATTEMPTS {
            // A second attempt does not warn twice.
            self.warnings().truncate(warned);
            let Some(existing) = self.state.store.get(&key) else {
                if absent == Absent::Refuse {
                    return Err(self.not_found(&name));
                }
                return Box::pin(self.create_instead(change, options)).await;
            };
            let old = view::shown(&self.resource, &existing);
            let new = change(Some(&old))?;
            match Box::pin(self.change_once(&existing, &old, new, options)).await? {
                Some(object) => return Ok(Changed { object, created: false }),
                None => tokio::task::yield_now().await,
            }
        }
        Err(StatusError::modified(self.resource.plural(), &name))
    }

    async fn create_instead(
        &self,
        change: &Change<'_>,
        options: &WriteOptions,
    ) -> Result<Changed, StatusError> {
        let name = self.target.name.clone();
        let new = change(None)?;
        let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(StatusError::conflict(self.resource.plural(), &name, &why));
        }
        let target = Target::Resource {
            group: &self.target.group,
            resource: &self.target.resource,
            subresource: &self.target.subresource,
            namespace: &self.target.namespace,
            name: &name,
        };
        self.state.authorize(&Attributes { user: self.user, verb: "create", target })?;
        let object = Box::pin(self.make(new, options)).await?;
        Ok(Changed { object, created: true })
    }

    /// One attempt; `None` if another write came first and another attempt makes sense.
    async fn change_once(
        &self,
        existing: &Object,
        old: &Value,
        mut new: Value,
        options: &WriteOptions,
    ) -> Result<Option<Outcome>, StatusError> {
        let resource = &self.resource;
        let name = &self.target.name;
        let conditional = self.check_revision(&new, existing, old)?;
        let metadata = &mut new["metadata"];
        metadata["resourceVersion"] = existing.revision.to_string().into();
        strategy::prepare_update(resource, self.subresource.as_ref(), &mut new, old);
        keep_system_fields(&mut new, old);
        decode::tidy(resource, &mut new);
        self.state.stamping.stamp(resource, self.subresource.as_ref(), self.user, &mut new, Some(old));
        atoll_apimachinery::builtin::stored(&mut new, &resource.schema);
        apply::settle(old, &mut new);
        let (errors, tolerated) = validate::update(resource, self.subresource.as_ref(), &new, old);
        if !errors.is_empty() {
            return Err(StatusError::invalid(resource.kind(), name, &errors));
        }
        self.warnings().extend(tolerated);
        let reservation =
            self.state.addresses.reserve(resource, &mut new, Some(old), &self.state.environment);
        let reservation =
            reservation.map_err(|errors| StatusError::invalid(resource.kind(), name, &errors))?;
        self.check_escalation(&new, Some(old))?;
        if self.subresource.is_none() {
            self.warn_of(&new, Some(old));
        }
        self.admit("UPDATE", name, Some(&new), Some(old), options.dry_run)?;
        if options.dry_run {
            return Ok(Some(Outcome::Shown(new)));
        }
        let outcome = if is_finished(&new, old) {
            // What the old state held is given back, whatever the new one would have.
            match self.state.remove(resource, existing, old).await {
                Ok(_) | Err(WriteError::Missing) => Ok(Outcome::Shown(new)),
                Err(error) => Err(error),
            }
        } else if is_same(resource, existing, old, &new) {
            return Ok(Some(Outcome::Shown(new)));
        } else {
            let written =
                self.state.write(resource, existing.key.clone(), &new, Some(existing.revision)).await;
            written.map(Outcome::Stored)
        };
        match outcome {
            Ok(Outcome::Stored(written)) => {
                reservation.keep();
                Ok(Some(Outcome::Stored(written)))
            }
            Ok(last) => Ok(Some(last)),
            Err(WriteError::Conflict(_)) if !conditional => Ok(None),
            Err(error) => Err(refused(resource, name, &error)),
        }
    }

    /// Was the change made from this state? True if the client says which state it was made from.
    fn check_revision(&self, new: &Value, existing: &Object, old: &Value) -> Result<bool, StatusError> {
        let resource = &self.resource;
        let name = &self.target.name;
        let uid = new["metadata"]["uid"].as_str().unwrap_or_default();
        let own = old["metadata"]["uid"].as_str().unwrap_or_default();
        if !uid.is_empty() && uid != own && self.is_put() {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {own}");
            return Err(StatusError::conflict(resource.plural(), name, &why));
        }
        let given = new["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let revision: u64 = match given {
            "" => 0,
            text => text.parse().map_err(|_| {
                let why = format!(
                    "strconv.ParseUint: parsing {}: invalid syntax",
                    atoll_apimachinery::invalid::quoted(text)
                );
                let error = FieldError::invalid("metadata.resourceVersion", text, why);
                StatusError::invalid(resource.kind(), name, &[error])
            })?,
        };
        if revision == 0 {
            if resource.rules.unconditional_update {
                return Ok(false);
            }
            let why = "must be specified for an update";
            let error = FieldError::invalid("metadata.resourceVersion", 0, why);
            return Err(StatusError::invalid(Subject { ..resource.plural() }, name, &[error]));
        }
        if revision != existing.revision {
            return Err(StatusError::modified(resource.plural(), name));
        }
        // A patch has the revision of what it was applied to, not one that the client knew.
        Ok(self.is_put())
    }

    fn is_put(&self) -> bool {
        self.info.verb == "update"
    }
}

/// Would writing the object change nothing? What is the same is not written again.
fn is_same(resource: &Resource, existing: &Object, old: &Value, new: &Value) -> bool {
    if view::is_shown_as_kept(resource, existing.revision) {
        return new == old;
    }
    *view::stored(resource, new) == encode::read(&existing.body)
}

/// What no client changes.
fn keep_system_fields(new: &mut Value, old: &Value) {
    let (new, old) = (&mut new["metadata"], &old["metadata"]);
    if new["uid"].as_str().unwrap_or_default().is_empty() {
        new["uid"] = old["uid"].clone();
    }
    if let Some(created) = old.get("creationTimestamp") {
        new["creationTimestamp"] = created.clone();
    }
    if let Some(deleted) = old.get("deletionTimestamp") {
        new["deletionTimestamp"] = deleted.clone();
    }
    if let Some(grace) = old.get("deletionGracePeriodSeconds")
        && new.get("deletionGracePeriodSeconds").is_none_or(Value::is_null)
    {
        new["deletionGracePeriodSeconds"] = grace.clone();
    }
    if let Some(fields) = new.as_object_mut() {
        fields.remove("selfLink");
    }
}

/// Is the object being deleted, with no finalizer left?
pub(crate) fn is_finished(new: &Value, old: &Value) -> bool {
    let deleted = strategy::is_going(old);
    let waits = old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) > 0;
    let holds = strategy::strings(&new["metadata"]["finalizers"]).next().is_some();
    // A namespace has finalizers of another sort beside those.
    let content =
        new["kind"] == "Namespace" && strategy::strings(&new["spec"]["finalizers"]).next().is_some();
    deleted && !waits && !holds && !content
}
