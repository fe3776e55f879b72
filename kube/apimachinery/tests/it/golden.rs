//! What a real API server answered, and what we say: the same.
//!
//! The answers are recorded (`facts answers`), never written by hand.

mod definitions;
mod kinds;
mod objects;
mod requests;

use atoll_apimachinery::invalid::FieldError;
use serde_json::Value;

/// One case with the server's answer.
struct Answer(Value);

impl Answer {
    fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    fn path(&self) -> &str {
        self.0["request"].as_str().unwrap().split_once(' ').unwrap().1
    }

    fn sent(&self) -> &Value {
        &self.0["body"]
    }

    fn text(&self) -> Option<&str> {
        self.0["text"].as_str()
    }

    fn code(&self) -> u64 {
        self.0["code"].as_u64().unwrap()
    }

    fn answer(&self) -> &Value {
        &self.0["answer"]
    }

    fn message(&self) -> &str {
        self.answer()["message"].as_str().unwrap_or_default()
    }

    /// The causes, sorted: the server tells them in no fixed order.
    fn causes(&self) -> Vec<String> {
        let causes = self.answer()["details"]["causes"].as_array().cloned().unwrap_or_default();
        let mut told: Vec<String> = causes
            .iter()
            .map(|cause| {
                let text = |field: &str| cause[field].as_str().unwrap_or_default().to_owned();
                format!("{} {}: {}", text("reason"), text("field"), text("message"))
            })
            .collect();
        told.sort();
        told
    }
}

fn answers(file: &str) -> Vec<Answer> {
    let path = format!("{}/tests/golden/{file}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let all: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert!(!all.is_empty(), "{path} has no answers");
    all.into_iter().map(Answer).collect()
}

/// Our errors in the form of [`Answer::causes`].
fn told(errors: &[FieldError]) -> Vec<String> {
    let mut told: Vec<String> =
        errors.iter().map(|error| format!("{} {}: {}", error.reason(), error.field, error.body())).collect();
    told.sort();
    told
}

/// All differences at once: one run shows what is left to do.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, name: &str, ours: &T, theirs: &T) {
        if ours != theirs {
            self.0.push(format!("{name}\n    ours   {ours:#?}\n    theirs {theirs:#?}"));
        }
    }
}

impl Drop for Differences {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.0.is_empty(), "{} differences:\n{}", self.0.len(), self.0.join("\n"));
        }
    }
}
