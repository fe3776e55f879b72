//! What a server answered, and what a case may say about it.

use http::HeaderMap;
use serde_json::Value;

/// An answer. Its checks panic with the whole exchange: a case that fails explains itself.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) asked: String,
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    /// The body, if it is JSON.
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn new(asked: String, code: u16, headers: HeaderMap, bytes: Vec<u8>) -> Self {
        let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        Self { asked, code, headers, bytes, body }
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The body, if the answer has this code.
    #[track_caller]
    pub(crate) fn is(&self, code: u16) -> Value {
        assert!(self.code == code, "wanted {code}: {self}");
        self.body.clone()
    }

    #[track_caller]
    pub(crate) fn ok(&self) -> Value {
        self.is(200)
    }

    #[track_caller]
    pub(crate) fn created(&self) -> Value {
        self.is(201)
    }

    /// It is a Status that refuses, with this code, reason and message.
    #[track_caller]
    pub(crate) fn refused(&self, code: u16, reason: &str, message: &str) -> &Self {
        assert!(self.code == code, "wanted {code} {reason}: {self}");
        assert!(self.body["kind"] == "Status" && self.body["apiVersion"] == "v1", "no Status: {self}");
        assert!(self.body["status"] == "Failure" && self.body["code"] == code, "odd Status: {self}");
        let said = self.body["reason"].as_str().unwrap_or_default();
        assert!(said == reason, "wanted the reason {reason:?}: {self}");
        let said = self.body["message"].as_str().unwrap_or_default();
        assert!(said == message, "wanted the message\n  {message}\ngot\n  {said}\nof {self}");
        self
    }

    /// As [`Answer::refused`], where the message only has to contain `part`.
    #[track_caller]
    pub(crate) fn refused_with(&self, code: u16, reason: &str, part: &str) -> &Self {
        let message = self.body["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(part), "wanted {part:?} in the message: {self}");
        self.refused(code, reason, &message)
    }

    /// The Status' causes: `reason field: message`.
    pub(crate) fn causes(&self) -> Vec<String> {
        let causes = self.body["details"]["causes"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line =
            |c: &Value| format!("{} {}: {}", text(&c["reason"]), text(&c["field"]), text(&c["message"]));
        causes.iter().map(line).collect()
    }

    #[track_caller]
    pub(crate) fn has_causes(&self, want: &[&str]) -> &Self {
        assert!(self.causes() == want, "wanted the causes {want:#?}\ngot {:#?}", self.causes());
        self
    }

    /// A header's value, empty if there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The text of every warning.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let values = self.headers.get_all("warning").iter().filter_map(|value| value.to_str().ok());
        values.map(str::to_owned).collect()
    }

    /// The value at a JSON pointer, `null` if there is none.
    pub(crate) fn at(&self, pointer: &str) -> Value {
        self.body.pointer(pointer).cloned().unwrap_or(Value::Null)
    }

    #[track_caller]
    pub(crate) fn has(&self, pointer: &str, want: impl Into<Value>) -> &Self {
        let (want, got) = (want.into(), self.at(pointer));
        assert!(got == want, "wanted {want} at {pointer}, got {got}: {self}");
        self
    }

    /// `metadata.resourceVersion`.
    #[track_caller]
    pub(crate) fn version(&self) -> String {
        version(&self.body)
    }

    /// The names of a list's items.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        let items = self.body["items"].as_array().unwrap_or_else(|| panic!("no list: {self}"));
        items.iter().map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// `metadata.resourceVersion` of an object or a list.
#[track_caller]
pub(crate) fn version(object: &Value) -> String {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap_or_else(|| panic!("no resourceVersion: {object:#}")).to_owned()
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = if self.body.is_null() { self.text() } else { format!("{:#}", self.body) };
        let short: String = text.chars().take(6000).collect();
        write!(f, "{} answered {}\n{short}", self.asked, self.code)
    }
}
