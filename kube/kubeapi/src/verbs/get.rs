//! One object.

use super::Ask;
use crate::http::answer::Answer;
use crate::http::refusal::Refusal;
use crate::verbs::list::wanted_revision;
use http::StatusCode;

impl Ask<'_> {
    pub(crate) fn get(&self) -> Result<Answer, Refusal> {
        let wanted = self.call.query.first("resourceVersion").unwrap_or_default();
        if let Some(wanted) = wanted_revision(wanted)? {
            let current = self.core.store.revision();
            if wanted > current {
                return Err(Refusal::too_new(wanted, current));
            }
        }
        let object = self.stored(&self.target.name)?;
        Ok(self.answer_stored(StatusCode::OK, &object))
    }
}
