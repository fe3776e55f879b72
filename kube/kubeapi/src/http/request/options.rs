//! The options of a request, out of its query or, when deleting, its body.

use super::Query;
use crate::http::status_error::{StatusError, Subject};
use atoll_apimachinery::invalid::{FieldError, quoted};
use serde_json::Value;

/// The longest name of a field manager.
const LONGEST_MANAGER: usize = 128;

/// What happens to fields that the schema does not know, and to fields given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Validation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

/// Options of create, update and patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteOptions {
    pub(crate) dry_run: bool,
    pub(crate) field_manager: Option<String>,
    pub(crate) validation: Validation,
    pub(crate) force: bool,
}

impl WriteOptions {
    /// Reads them; `kind` is their name in an error: `CreateOptions`, `UpdateOptions`, `PatchOptions`.
    pub(crate) fn parse(query: &Query, kind: &str, apply: Option<bool>) -> Result<Self, StatusError> {
        let mut errors = Vec::new();
        let manager = query.first("fieldManager").filter(|manager| !manager.is_empty());
        let force = query.flag("force");
        match apply {
            Some(true) if manager.is_none() => {
                errors.push(FieldError::required("fieldManager", "is required for apply patch"));
            }
            Some(false) if force.is_some() => {
                errors.push(FieldError::forbidden("force", "may not be specified for non-apply patch"));
            }
            _ => {}
        }
        if let Some(manager) = manager {
            check_manager(manager, &mut errors);
        }
        let dry_run = dry_run(&query.all("dryRun").map(str::to_owned).collect::<Vec<_>>(), &mut errors);
        let validation = match query.first("fieldValidation").unwrap_or_default() {
            "" | "Warn" => Validation::Warn,
            "Ignore" => Validation::Ignore,
            "Strict" => Validation::Strict,
            other => {
                let known = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", other, &known));
                Validation::Warn
            }
        };
        refuse(kind, &errors)?;
        Ok(Self {
            dry_run,
            field_manager: manager.map(str::to_owned),
            validation,
            force: force == Some(true),
        })
    }
}

fn refuse(kind: &str, errors: &[FieldError]) -> Result<(), StatusError> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(StatusError::invalid(Subject { group: "meta.k8s.io", name: kind }, "", errors))
}

fn check_manager(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > LONGEST_MANAGER {
        errors.push(FieldError::too_long("fieldManager", LONGEST_MANAGER as u64));
    }
    for (position, letter) in manager.char_indices().filter(|(_, letter)| letter.is_control()) {
        let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(letter));
        errors.push(FieldError::invalid("fieldManager", manager, detail));
    }
}

fn dry_run(values: &[String], errors: &mut Vec<FieldError>) -> bool {
    if values.iter().any(|value| value != "All") {
        errors.push(FieldError::not_supported("dryRun", Value::from(values.to_vec()), &["All"]));
    }
    !values.is_empty()
}

/// Options of list, watch and deletecollection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListOptions {
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    /// As given: empty is not zero.
    pub(crate) resource_version: String,
    pub(crate) version_match: VersionMatch,
    pub(crate) limit: Option<usize>,
    pub(crate) resume: String,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: Option<bool>,
    pub(crate) timeout_seconds: Option<u64>,
}

/// How a list's revision relates to the one that is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum VersionMatch {
    #[default]
    Unset,
    Exact,
    NotOlderThan,
}

impl ListOptions {
    pub(crate) fn parse(query: &Query, watch: bool) -> Result<Self, StatusError> {
        let text = |key| query.first(key).unwrap_or_default().to_owned();
        let mut options = Self {
            label_selector: text("labelSelector"),
            field_selector: text("fieldSelector"),
            resource_version: text("resourceVersion"),
            resume: text("continue"),
            bookmarks: query.flag("allowWatchBookmarks") == Some(true),
            initial_events: query
                .first("sendInitialEvents")
                .map(|value| flag("sendInitialEvents", value))
                .transpose()?,
            ..Self::default()
        };
        let limit = number(query, "limit")?.unwrap_or(0);
        options.limit = usize::try_from(limit).ok().filter(|limit| *limit > 0);
        options.timeout_seconds =
            number(query, "timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let mut errors = Vec::new();
        let matching = query.first("resourceVersionMatch").unwrap_or_default();
        options.version_match = match matching {
            "Exact" => VersionMatch::Exact,
            "NotOlderThan" => VersionMatch::NotOlderThan,
            _ => VersionMatch::Unset,
        };
        if watch {
            // An old client that says nothing of initial events gets them when it asks for any or the newest state.
            options.check_watch(matching, &mut errors);
        } else {
            options.check_list(matching, &mut errors);
        }
        refuse("ListOptions", &errors)?;
        Ok(options)
    }

    fn check_list(&self, matching: &str, errors: &mut Vec<FieldError>) {
        const FIELD: &str = "resourceVersionMatch";
        if !matching.is_empty() {
            if self.resource_version.is_empty() {
                let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(FIELD, why));
            }
            if !self.resume.is_empty() {
                errors.push(FieldError::forbidden(
                    FIELD,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
            if self.version_match == VersionMatch::Unset {
                errors.push(FieldError::not_supported(FIELD, matching, &["Exact", "NotOlderThan", ""]));
            }
            if self.version_match == VersionMatch::Exact && self.resource_version == "0" {
                let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
                errors.push(FieldError::forbidden(FIELD, why));
            }
        }
        if self.initial_events.is_some() {
            errors
                .push(FieldError::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
        }
    }

    fn check_watch(&self, matching: &str, errors: &mut Vec<FieldError>) {
        const FIELD: &str = "resourceVersionMatch";
        if self.initial_events.is_some() && self.version_match != VersionMatch::NotOlderThan {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(FIELD, why));
        }
        if matching.is_empty() {
            return;
        }
        if self.initial_events.is_none() {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            errors.push(FieldError::forbidden(FIELD, why));
        }
        if self.version_match != VersionMatch::NotOlderThan {
            errors.push(FieldError::not_supported(FIELD, matching, &["NotOlderThan"]));
        }
        if !self.resume.is_empty() {
            errors.push(FieldError::forbidden(
                FIELD,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
    }
}

fn number(query: &Query, key: &str) -> Result<Option<i64>, StatusError> {
    let Some(text) = query.first(key).filter(|text| !text.is_empty()) else { return Ok(None) };
    let wrong =
        || StatusError::bad_request(format!("strconv.ParseInt: parsing {}: invalid syntax", quoted(text)));
    text.parse().map(Some).map_err(|_| wrong())
}

/// A boolean that must be one.
fn flag(_key: &str, text: &str) -> Result<bool, StatusError> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" | "" => Ok(false),
        _ => Err(StatusError::bad_request(format!(
            "strconv.ParseBool: parsing {}: invalid syntax",
            quoted(text)
        ))),
    }
}

/// Options of delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeleteOptions {
    pub(crate) dry_run: bool,
    pub(crate) grace: Option<i64>,
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: Option<Propagation>,
    /// The old way to ask for [`Propagation::Orphan`], or for no orphans.
    pub(crate) orphan: Option<bool>,
}

/// What happens to the objects that are owned by a deleted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Orphan,
    Background,
    Foreground,
}

impl DeleteOptions {
    /// Reads them off the query.
    pub(crate) fn from_query(query: &Query) -> Result<Self, StatusError> {
        let mut body = serde_json::Map::new();
        if let Some(grace) = number(query, "gracePeriodSeconds")? {
            body.insert("gracePeriodSeconds".to_owned(), grace.into());
        }
        if let Some(policy) = query.first("propagationPolicy") {
            body.insert("propagationPolicy".to_owned(), policy.into());
        }
        if let Some(orphan) = query.flag("orphanDependents") {
            body.insert("orphanDependents".to_owned(), orphan.into());
        }
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        if !dry_run.is_empty() {
            body.insert("dryRun".to_owned(), dry_run.into());
        }
        Self::from_body(&Value::Object(body))
    }

    /// Reads them off a body.
    pub(crate) fn from_body(body: &Value) -> Result<Self, StatusError> {
        let mut errors = Vec::new();
        let values: Vec<String> = body["dryRun"].as_array().into_iter().flatten().filter_map(text).collect();
        let orphan = body["orphanDependents"].as_bool();
        let policy = body["propagationPolicy"].as_str();
        let propagation = match policy {
            None => None,
            Some("Orphan") => Some(Propagation::Orphan),
            Some("Background") => Some(Propagation::Background),
            Some("Foreground") => Some(Propagation::Foreground),
            Some(other) => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported("propagationPolicy", other, &known));
                None
            }
        };
        if let (Some(policy), Some(_)) = (policy, orphan) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            errors.insert(0, FieldError::invalid("propagationPolicy", policy, why));
        }
        let dry_run = dry_run(&values, &mut errors);
        refuse("DeleteOptions", &errors)?;
        let preconditions = &body["preconditions"];
        Ok(Self {
            dry_run,
            grace: body["gracePeriodSeconds"].as_i64(),
            uid: text(&preconditions["uid"]),
            resource_version: text(&preconditions["resourceVersion"]),
            propagation,
            orphan,
        })
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<impl std::fmt::Debug, StatusError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn options_that_make_no_sense_are_refused_in_the_known_words() {
        let write = |query, apply| WriteOptions::parse(&Query::parse(query), "PatchOptions", apply);
        assert_eq!(
            message(write("", Some(true))),
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
        );
        assert_eq!(
            message(write("fieldManager=a&force=true", Some(false))),
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
        );
        let list = |query, watch| ListOptions::parse(&Query::parse(query), watch);
        assert_eq!(message(list("limit=x", false)), "strconv.ParseInt: parsing \"x\": invalid syntax");
        assert!(
            message(list("resourceVersionMatch=Exact", false)).contains("unless resourceVersion is provided")
        );
        assert!(
            message(list("sendInitialEvents=true", true)).contains("requires setting resourceVersionMatch")
        );
    }

    #[test]
    fn delete_options_come_from_query_or_body() {
        let query = DeleteOptions::from_query(&Query::parse("gracePeriodSeconds=0&propagationPolicy=Orphan"))
            .unwrap();
        assert_eq!((query.grace, query.propagation), (Some(0), Some(Propagation::Orphan)));
        let body = serde_json::json!({"preconditions": {"uid": "u"}, "orphanDependents": false});
        let body = DeleteOptions::from_body(&body).unwrap();
        assert_eq!((body.uid.as_deref(), body.orphan), (Some("u"), Some(false)));
    }
}
