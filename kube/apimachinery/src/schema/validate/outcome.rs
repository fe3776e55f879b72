//! What validating one value found, and how well it matched: of several branches the best one's problems are told.

use crate::invalid::{FieldError, TOLD_MOST, told};
use serde_json::Value;

#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) problems: Vec<Problem>,
    /// Grows with every check that was made; the server chooses between failed branches by it.
    pub(super) matches: usize,
}

/// A problem, with the text by which the server tells whether it was said before.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    text: String,
    error: FieldError,
}

impl Problem {
    /// `make` gets the field's path as errors show it, and the text.
    pub(super) fn at(path: &str, text: String, make: impl FnOnce(&str, &str) -> FieldError) -> Self {
        let field = told(path.strip_prefix('.').unwrap_or(path));
        let text = if path.len() > field.len() + 1 { told(text).into_owned() } else { text };
        let error = make(if field.is_empty() { "<nil>" } else { &field }, &text);
        Self { text, error }
    }

    pub(super) fn invalid(path: &str, value: Value, detail: String) -> Self {
        Self::at(path, detail, |field, detail| FieldError::invalid(field, value, detail))
    }

    /// Said of no field: so the server does when branches fail.
    pub(super) fn unplaced(text: String) -> Self {
        Self::invalid("", "".into(), text)
    }

    pub(super) fn wrong_type(path: &str, wanted: &str, is: &str) -> Self {
        let text = format!("{path} in body must be of type {wanted}: {}", crate::invalid::quoted(is));
        Self::at(path, text, |field, text| FieldError::type_invalid(field, is, text))
    }
}

impl From<Problem> for Outcome {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem], matches: 0 }
    }
}

impl Outcome {
    pub(super) fn matched() -> Self {
        Self { problems: Vec::new(), matches: 1 }
    }

    pub(super) fn fits(&self) -> bool {
        self.problems.is_empty()
    }

    /// Notes a problem that was not said before. Of each kind there are only so many, so that every kind that there is comes up:
    /// who asks may look for some kinds and drop the others.
    pub(super) fn add(&mut self, problem: Problem) {
        let alike = self.problems.iter().filter(|known| known.error.kind == problem.error.kind).count();
        if alike < TOLD_MOST && !self.problems.iter().any(|known| known.text == problem.text) {
            self.problems.push(problem);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        for problem in other.problems {
            self.add(problem);
        }
    }

    /// Merges the outcome of one check that applied.
    pub(super) fn step(&mut self, other: Self) {
        self.merge(other);
        self.matches += 1;
    }

    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.problems.into_iter().map(|problem| problem.error).collect()
    }
}
