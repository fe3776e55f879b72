//! Sequences of writes to one object, and what a real API server made of them.
//!
//! `tests/scenarios/*.yaml` says what is written; `tests/golden/*.json` has the outcomes, recorded on a real server by
//! the `cluster` tests and never written by hand. Times, names and versions that differ from run to run are masked.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Writes to one object, one after the other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// What it shows, as a sentence.
    pub(crate) name: String,
    /// Group, version and kind: `apps/v1/Deployment`.
    pub(crate) kind: String,
    pub(crate) steps: Vec<Step>,
}

/// One write, in one of six ways.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// POST of an object; its name and kind are filled in.
    create: Option<Value>,
    /// PUT of the object as it is, changed by this merge patch.
    update: Option<Value>,
    /// Server-side apply; name and kind are filled in unless given.
    apply: Option<Value>,
    json: Option<Value>,
    merge: Option<Value>,
    strategic: Option<Value>,
    /// The field manager.
    pub(crate) by: Option<String>,
    #[serde(default)]
    pub(crate) force: bool,
    /// The subresource that is written to.
    pub(crate) on: Option<String>,
    /// Another version than the scenario's.
    pub(crate) version: Option<String>,
}

/// How it is written, and what.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Write<'a> {
    Create(&'a Value),
    Update(&'a Value),
    Apply(&'a Value),
    Json(&'a Value),
    Merge(&'a Value),
    Strategic(&'a Value),
}

impl Step {
    pub(crate) fn write(&self) -> Write<'_> {
        let ways = [
            self.create.as_ref().map(Write::Create),
            self.update.as_ref().map(Write::Update),
            self.apply.as_ref().map(Write::Apply),
            self.json.as_ref().map(Write::Json),
            self.merge.as_ref().map(Write::Merge),
            self.strategic.as_ref().map(Write::Strategic),
        ];
        let mut ways = ways.into_iter().flatten();
        let way = ways.next().expect("a step writes something");
        assert!(ways.next().is_none(), "a step writes in one way: {self:?}");
        way
    }

    /// Who writes.
    pub(crate) fn manager(&self) -> &str {
        self.by.as_deref().unwrap_or("tester")
    }
}

/// What came of one write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// The object afterwards, and whether it was stored anew.
    Object { stored: bool, object: Value },
    /// The Status.
    Error { code: u16, reason: String, message: String, causes: Vec<Value> },
}

/// The kind in its parts.
pub(crate) struct KindParts {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

impl KindParts {
    pub(crate) fn of(scenario: &Scenario, step: &Step) -> Self {
        let (group_version, kind) = scenario.kind.rsplit_once('/').expect("a kind has a version");
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let version = step.version.as_deref().unwrap_or(version);
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

impl Scenario {
    /// The name of its object.
    pub(crate) fn object_name(&self) -> String {
        let words: Vec<_> =
            self.name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
        let mut name = words.join("-").to_lowercase();
        name.truncate(60);
        name.trim_end_matches('-').to_owned()
    }

    /// What a step sends: kind, apiVersion and name filled in.
    pub(crate) fn body(&self, step: &Step, content: &Value) -> Value {
        let parts = KindParts::of(self, step);
        let mut body = content.clone();
        let fields = body.as_object_mut().expect("a body is an object");
        fields.entry("apiVersion").or_insert(json!(parts.api_version()));
        fields.entry("kind").or_insert(json!(parts.kind));
        let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
        metadata.as_object_mut().expect("metadata").entry("name").or_insert(json!(self.object_name()));
        body
    }
}

/// When a step happens in recorded outcomes and in replays.
pub(crate) fn time_of(step: usize) -> String {
    format!("2000-01-01T00:00:{step:02}Z")
}

/// Takes out what differs from run to run and what is not about fields and their owners.
pub(crate) fn mask(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for name in ["uid", "resourceVersion", "creationTimestamp", "generation", "namespace", "selfLink"] {
            metadata.remove(name);
        }
    }
}

/// Causes in one order: the server's own differs from run to run.
pub(crate) fn sorted(mut causes: Vec<Value>) -> Vec<Value> {
    causes.sort_by_key(ToString::to_string);
    causes
}

/// All scenarios, by the file that they stand in.
pub(crate) fn load() -> Vec<(String, Vec<Scenario>)> {
    let mut files: Vec<_> = std::fs::read_dir(folder("scenarios"))
        .expect("there are scenarios")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let scenarios =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.file_stem().expect("a name").to_string_lossy().into_owned(), scenarios)
    };
    files.into_iter().map(read).collect()
}

/// The recorded outcomes of one file, by scenario.
pub(crate) type Recorded = std::collections::BTreeMap<String, Vec<Outcome>>;

pub(crate) fn golden(file: &str) -> PathBuf {
    folder("golden").join(format!("{file}.json"))
}

pub(crate) fn recorded(file: &str) -> Recorded {
    let text = std::fs::read_to_string(golden(file)).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str(&text).expect("recorded outcomes can be read")
}

/// The custom resource definitions that scenarios use.
pub(crate) fn definitions() -> Vec<Value> {
    let text = std::fs::read_to_string(folder("crds.yaml")).expect("a readable file");
    serde_saphyr::from_str(&text).expect("definitions can be read")
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// A merge patch onto what is there.
pub(crate) fn change(object: &Value, patch: &Value) -> Value {
    atoll_apimachinery::patch::merge(object, patch)
}
