//! One object.

use super::RequestContext;
use crate::http::answer::Answer;
use crate::http::status_error::StatusError;
use crate::verbs::list::wanted_revision;
use http::StatusCode;

impl RequestContext<'_> {
    pub(crate) fn get(&self) -> Result<Answer, StatusError> {
        let wanted = self.info.query.first("resourceVersion").unwrap_or_default();
        if let Some(wanted) = wanted_revision(wanted)? {
            let current = self.state.store.revision();
            if wanted > current {
                return Err(StatusError::too_new(wanted, current));
            }
        }
        let object = self.stored(&self.target.name)?;
        Ok(self.answer_stored(StatusCode::OK, &object))
    }
}
