//! `atoll cluster label`: the labels of a member.

use std::collections::BTreeMap;

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::{Value, json};

use super::Change;
use crate::complete;
use crate::failure::Failure;

/// Add, change or remove labels of a member.
///
/// Policies select members by labels.
#[derive(Args)]
#[command(after_help = "Examples:
  # Add two labels
  atoll cluster label member1 tier=gold example.com/team=shop

  # Change a label
  atoll cluster label member1 tier=silver --overwrite

  # Remove a label
  atoll cluster label member1 tier-")]
pub(super) struct Label {
    /// Name of the member.
    #[arg(add = ArgValueCandidates::new(complete::clusters))]
    name: String,
    /// `KEY=VALUE` sets a label, `KEY-` removes it.
    #[arg(required = true, value_name = "KEY=VALUE|KEY-")]
    labels: Vec<String>,
    #[command(flatten)]
    change: Change,
}

/// What becomes of a key: a value, or nothing.
type Edits = BTreeMap<String, Option<String>>;

impl Label {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let edits = read(&self.labels)?;
        let overwrite = self.change.overwrite;
        self.change.make(&self.name, "labelled", |cluster| patch(cluster, &edits, overwrite)).await
    }
}

fn read(words: &[String]) -> Result<Edits, Failure> {
    let mut edits = Edits::new();
    for word in words {
        let (key, edit) = match (word.split_once('='), word.strip_suffix('-')) {
            (Some((key, value)), _) => (super::key(word, key)?, Some(super::value(word, value)?)),
            (None, Some(key)) => (super::key(word, key)?, None),
            (None, None) => {
                return Err(Failure::usage(
                    &format!("`{word}` is neither KEY=VALUE nor KEY-"),
                    "write for example tier=gold or tier-",
                ));
            }
        };
        if edits.insert(key.clone(), edit).is_some() {
            return Err(Failure::usage(&format!("`{key}` is given twice"), "give each key once"));
        }
    }
    Ok(edits)
}

/// A merge patch that makes it so; none if it is so.
fn patch(cluster: &Value, edits: &Edits, overwrite: bool) -> Result<Option<Value>, Failure> {
    let there = |key: &str| cluster.pointer("/metadata/labels")?.get(key)?.as_str();
    let mut labels = serde_json::Map::new();
    for (key, edit) in edits {
        match (there(key), edit) {
            (Some(there), Some(edit)) if there == edit => {}
            (Some(there), Some(_)) if !overwrite => {
                let what = format!("the member already has the label {key}={there}");
                return Err(Failure::plain(&what, "use --overwrite to replace it"));
            }
            (None, None) => {}
            (_, edit) => drop(labels.insert(key.clone(), json!(edit))),
        }
    }
    Ok((!labels.is_empty()).then(|| json!({ "metadata": { "labels": labels } })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn only_what_differs_is_written() {
        let cluster = json!({"metadata": {"labels": {"tier": "gold", "old": "x"}}});
        for (line, overwrite, want) in [
            ("tier=gold", false, Ok(None)),
            ("zone-", false, Ok(None)),
            ("zone=a old-", false, Ok(Some(json!({"zone": "a", "old": null})))),
            ("tier=", true, Ok(Some(json!({"tier": ""})))),
            ("tier=silver", false, Err("the member already has the label tier=gold")),
        ] {
            let got = patch(&cluster, &read(&words(line)).unwrap(), overwrite);
            let want = want.map(|want| want.map(|labels| json!({"metadata": {"labels": labels}})));
            assert_eq!(got.map_err(|failure| failure.to_string()), want.map_err(str::to_owned), "{line}");
        }
    }

    #[test]
    fn what_is_no_label_is_refused() {
        for line in ["tier", "=gold", "-", "a b=c", "-x=1", "tier=a,b", "tier=gold tier-"] {
            assert!(read(&words(line)).is_err(), "{line}");
        }
        assert!(read(&["tier=two words".to_owned()]).is_err());
    }
}
