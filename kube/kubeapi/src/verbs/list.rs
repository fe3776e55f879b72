//! Many objects: selected, in pages, at one revision.

use super::{RequestContext, Selection};
use crate::http::answer::Answer;
use crate::http::encode::TypePrefix;
use crate::http::negotiate::Shape;
use crate::http::request::ListOptions;
use crate::http::request::VersionMatch;
use crate::http::status_error::StatusError;
use crate::resources::view;
use crate::storage::store::{Key, Object, RevisionError};
use atoll_apimachinery::invalid::FieldError;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How many objects are looked at at a time when some are not selected.
const PAGE: usize = 500;

/// Where the next page of a list begins.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
struct Resume {
    v: String,
    /// The revision of the list; -1 when it may be any.
    rv: i64,
    start: String,
}

/// A page of a list.
pub(super) struct Found {
    pub(super) objects: Vec<Object>,
    pub(super) revision: u64,
    resume: Option<String>,
    remaining: Option<usize>,
}

impl RequestContext<'_> {
    pub(crate) fn list(&self) -> Result<Answer, StatusError> {
        let options = ListOptions::parse(&self.info.query, false)?;
        let found = self.find(&options)?;
        Ok(self.answer_list(&found))
    }

    pub(super) fn selection(&self, options: &ListOptions) -> Result<Selection, StatusError> {
        Selection::parse(&self.resource, &options.label_selector, &options.field_selector)
    }

    /// The objects that are asked for.
    pub(super) fn find(&self, options: &ListOptions) -> Result<Found, StatusError> {
        let selection = self.selection(options)?;
        let prefix = self.resource.prefix(self.namespace());
        let within = selection.prefix(&self.resource, self.namespace());
        let store = &self.state.store;
        let (at, mut after) = match options.resume.as_str() {
            "" => (self.list_revision(options)?, None),
            token => {
                if !options.resource_version.is_empty() && options.resource_version != "0" {
                    let why = "specifying resource version is not allowed when using continue";
                    return Err(StatusError::bad_request(why));
                }
                let (at, after) = resume(token, &prefix)?;
                (at, Some(after))
            }
        };
        let mut objects = Vec::new();
        let mut pinned = at;
        loop {
            let limit = match options.limit {
                None => None,
                Some(limit) if selection.is_empty() => Some(limit),
                Some(_) => Some(PAGE),
            };
            let page = store.list(&within, pinned, after.as_ref(), limit).map_err(|error| match error {
                RevisionError::Gone { .. } if options.resume.is_empty() => {
                    StatusError::expired("The resourceVersion for the provided list is too old.")
                }
                RevisionError::Gone { .. } => StatusError::expired_list(resume_token(
                    -1,
                    &prefix,
                    after.as_ref().map_or("", Key::as_str),
                )),
                RevisionError::Future { requested, current } => StatusError::too_new(requested, current),
            })?;
            // The pages of one list are all of one revision.
            pinned = Some(page.revision);
            let (revision, remaining) = (page.revision, page.remaining);
            let last = page.objects.last().map(|object| object.key.clone());
            for (index, object) in page.objects.iter().enumerate() {
                if !selection.selects(&self.resource, object, &object.body) {
                    continue;
                }
                objects.push(object.clone());
                if options.limit.is_some_and(|limit| objects.len() >= limit) {
                    let more = remaining + page.objects.len() - index - 1;
                    let token = (more > 0).then(|| {
                        resume_token(i64::try_from(revision).unwrap_or(-1), &prefix, object.key.as_str())
                    });
                    let remaining = (more > 0 && selection.is_empty()).then_some(more);
                    return Ok(Found { objects, revision, resume: token, remaining });
                }
            }
            if remaining == 0 || last.is_none() {
                return Ok(Found { objects, revision, resume: None, remaining: None });
            }
            after = last;
        }
    }

    /// The revision to list at: `None` for the newest.
    fn list_revision(&self, options: &ListOptions) -> Result<Option<u64>, StatusError> {
        let Some(wanted) = wanted_revision(&options.resource_version)? else { return Ok(None) };
        if wanted == 0 {
            return Ok(None);
        }
        let current = self.state.store.revision();
        if wanted > current {
            return Err(StatusError::too_new(wanted, current));
        }
        let exact = match options.version_match {
            VersionMatch::Exact => true,
            VersionMatch::NotOlderThan => false,
            VersionMatch::Unset => options.limit.is_some(),
        };
        Ok(exact.then_some(wanted))
    }

    pub(super) fn answer_list(&self, found: &Found) -> Answer {
        let mut metadata = json!({"resourceVersion": found.revision.to_string()});
        if let Some(token) = &found.resume {
            metadata["continue"] = token.as_str().into();
        }
        if let Some(remaining) = found.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        let shown = |object: &Object| view::shown(&self.resource, object);
        let answer = match self.output.shape {
            Shape::Whole => {
                Answer::bytes(StatusCode::OK, self.whole_list(found, &metadata), self.output.media_type)
            }
            Shape::Table(version) => {
                let objects: Vec<Value> = found.objects.iter().map(shown).collect();
                let objects: Vec<&Value> = objects.iter().collect();
                let table = self.table_of(version, &objects, &json!({"metadata": metadata}));
                Answer::value(StatusCode::OK, &table, self.output.media_type)
            }
            Shape::Metadata(version) => {
                let items: Vec<Value> = found
                    .objects
                    .iter()
                    .map(|object| super::table::metadata_only(&shown(object), version))
                    .collect();
                let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": format!("meta.k8s.io/{version}"),
                    "metadata": metadata, "items": items});
                Answer::value(StatusCode::OK, &list, self.output.media_type)
            }
        };
        answer.warn(&self.warnings())
    }

    /// The bytes of a list: those of its items are not read where nothing in them changes.
    fn whole_list(&self, found: &Found, metadata: &Value) -> Bytes {
        let names = &self.resource.names;
        let head =
            json!({"kind": names.list_kind, "apiVersion": self.resource.api_version(), "metadata": metadata});
        let mut out = head.to_string().into_bytes();
        out.pop();
        out.extend_from_slice(b",\"items\":[");
        // Items of built-in lists do not repeat their type.
        let bare = TypePrefix::absent();
        let prefix = if self.resource.custom.is_some() { self.resource.type_prefix() } else { &bare };
        for (index, object) in found.objects.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let bytes;
            let stored = if view::needs_reading(&self.resource, object.revision) {
                bytes = crate::http::encode::Unrevised::new(&view::shown(&self.resource, object))
                    .at(object.revision);
                &bytes
            } else {
                &object.body
            };
            let (head, rest) = prefix.show(stored);
            out.extend_from_slice(head);
            out.extend_from_slice(rest);
        }
        out.extend_from_slice(b"]}");
        out.into()
    }
}

/// A `resourceVersion` parameter: nothing, or a number.
pub(super) fn revision(text: &str) -> Result<Option<u64>, FieldError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        let why = format!(
            "strconv.ParseUint: parsing {}: invalid syntax",
            atoll_apimachinery::invalid::quoted(text)
        );
        FieldError::invalid("resourceVersion", text, why)
    })
}

/// The same for a list or one object, where a wrong one is the client's fault.
pub(super) fn wanted_revision(text: &str) -> Result<Option<u64>, StatusError> {
    revision(text).map_err(|error| StatusError::bad_request(error.to_string()))
}

fn resume_token(revision: i64, prefix: &str, last: &str) -> String {
    let start = last.strip_prefix(prefix).unwrap_or(last).to_owned();
    let token = Resume { v: "meta.k8s.io/v1".to_owned(), rv: revision, start: format!("{start}\0") };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&token).unwrap_or_default())
}

fn resume(token: &str, prefix: &str) -> Result<(Option<u64>, Key), StatusError> {
    let wrong =
        || StatusError::bad_request("continue key is not valid: the token was not made by this server");
    let bytes = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).map_err(|_| wrong())?;
    let token: Resume = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
    if token.v != "meta.k8s.io/v1" || token.start.is_empty() {
        return Err(wrong());
    }
    let last = token.start.trim_end_matches('\0');
    Ok((u64::try_from(token.rv).ok(), Key::from_text(&format!("{prefix}{last}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_leads_back_to_the_place_and_the_revision_that_it_was_made_for() {
        let token = resume_token(7, "/core/configmaps/", "/core/configmaps/a/b");
        let (revision, key) = resume(&token, "/core/configmaps/").unwrap();
        assert_eq!((revision, key.as_str()), (Some(7), "/core/configmaps/a/b"));
        assert!(resume("nonsense", "/").is_err());
    }
}
