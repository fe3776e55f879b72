//! `atoll cluster taint`: the taints of a member.

use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::{Value, json};

use super::Change;
use crate::complete;
use crate::failure::Failure;
use crate::objects::text;

const EFFECTS: [&str; 3] = ["NoSchedule", "NoExecute", "PreferNoSchedule"];

/// Add, change or remove taints of a member.
///
/// A template is not placed on a member with a taint that its policy does not tolerate. With the effect `NoExecute`, existing
/// copies are removed as well.
#[derive(Args)]
#[command(after_help = "Examples:
  # Keep new copies away
  atoll cluster taint member1 dedicated=shop:NoSchedule

  # Remove existing copies as well
  atoll cluster taint member1 maintenance:NoExecute

  # Remove two taints
  atoll cluster taint member1 maintenance:NoExecute- dedicated-")]
pub(super) struct Taint {
    /// Name of the member.
    #[arg(add = ArgValueCandidates::new(complete::clusters))]
    name: String,
    /// `KEY[=VALUE]:EFFECT` sets a taint, `KEY[:EFFECT]-` removes it. Effects are `NoSchedule`, `NoExecute` and `PreferNoSchedule`.
    #[arg(required = true, value_name = "KEY=VALUE:EFFECT|KEY:EFFECT-")]
    taints: Vec<String>,
    #[command(flatten)]
    change: Change,
}

/// What becomes of a taint.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Edit {
    Set {
        key: String,
        value: String,
        effect: &'static str,
    },
    /// Of every effect, if none is said.
    Unset {
        key: String,
        effect: Option<&'static str>,
    },
}

impl Taint {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let edits = read(&self.taints)?;
        let off = edits.iter().all(|edit| matches!(edit, Edit::Unset { .. }));
        let (done, overwrite) = (if off { "untainted" } else { "tainted" }, self.change.overwrite);
        self.change.make(&self.name, done, |cluster| patch(cluster, &edits, overwrite)).await
    }
}

fn read(words: &[String]) -> Result<Vec<Edit>, Failure> {
    let edits: Vec<Edit> = words.iter().map(|word| edit(word)).collect::<Result<_, _>>()?;
    for (index, one) in edits.iter().enumerate() {
        if let Some(other) = edits[index + 1..].iter().find(|other| collide(one, other)) {
            let (Edit::Set { key, .. } | Edit::Unset { key, .. }) = other;
            return Err(Failure::usage(&format!("`{key}` is given twice"), "give each key and effect once"));
        }
    }
    Ok(edits)
}

fn collide(one: &Edit, other: &Edit) -> bool {
    let parts = |edit: &Edit| match edit {
        Edit::Set { key, effect, .. } => (key.clone(), Some(*effect)),
        Edit::Unset { key, effect } => (key.clone(), *effect),
    };
    let ((key, effect), (other_key, other_effect)) = (parts(one), parts(other));
    key == other_key && (effect.is_none() || other_effect.is_none() || effect == other_effect)
}

fn edit(word: &str) -> Result<Edit, Failure> {
    let unset = word.strip_suffix('-');
    let (pair, effect) = match unset.unwrap_or(word).split_once(':') {
        Some((pair, effect)) => (pair, Some(effect)),
        None => (unset.unwrap_or(word), None),
    };
    let effect = match effect {
        None => None,
        Some(effect) => Some(EFFECTS.into_iter().find(|known| *known == effect).ok_or_else(|| {
            Failure::usage(
                &format!("invalid effect `{effect}` in `{word}`"),
                &format!("effects are {}", EFFECTS.join(", ")),
            )
        })?),
    };
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    let (key, value) = (super::key(word, key)?, super::value(word, value)?);
    match (unset, effect) {
        (Some(_), effect) => Ok(Edit::Unset { key, effect }),
        (None, Some(effect)) => Ok(Edit::Set { key, value, effect }),
        (None, None) => {
            let hint = format!("add an effect, such as {word}:NoSchedule; to remove the taint, write {key}-");
            Err(Failure::usage(&format!("`{word}` has no effect"), &hint))
        }
    }
}

/// A merge patch that makes it so; none if it is so.
fn patch(cluster: &Value, edits: &[Edit], overwrite: bool) -> Result<Option<Value>, Failure> {
    let before = cluster.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut taints = before.clone();
    for edit in edits {
        match edit {
            Edit::Unset { key, effect } => taints.retain(|taint| {
                text(taint, "/key") != key || effect.is_some_and(|effect| text(taint, "/effect") != effect)
            }),
            Edit::Set { key, value, effect } => {
                let same =
                    |taint: &&mut Value| text(taint, "/key") == key && text(taint, "/effect") == *effect;
                match taints.iter_mut().find(same) {
                    Some(taint) if text(taint, "/value") == value => {}
                    Some(taint) if overwrite => *taint = written(key, value, effect),
                    Some(taint) => {
                        let what = format!(
                            "the member already has the taint {key}={}:{effect}",
                            text(taint, "/value")
                        );
                        return Err(Failure::plain(&what, "use --overwrite to replace it"));
                    }
                    None => taints.push(written(key, value, effect)),
                }
            }
        }
    }
    Ok((taints != before).then(|| json!({ "spec": { "taints": taints } })))
}

fn written(key: &str, value: &str, effect: &str) -> Value {
    let mut taint = json!({ "key": key, "effect": effect });
    if !value.is_empty() {
        taint["value"] = value.into();
    }
    taint
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn taints_are_set_and_removed() {
        let cluster = json!({"spec": {"taints": [
            {"key": "a", "value": "1", "effect": "NoSchedule", "timeAdded": "2027-01-15T08:00:00Z"},
            {"key": "a", "effect": "NoExecute"},
        ]}});
        let first = cluster["spec"]["taints"][0].clone();
        let second = cluster["spec"]["taints"][1].clone();
        for (line, overwrite, want) in [
            ("a=1:NoSchedule", false, Ok(None)),
            ("b-", false, Ok(None)),
            ("a-", false, Ok(Some(json!([])))),
            ("a:NoExecute-", false, Ok(Some(json!([first])))),
            ("a=1:NoSchedule-", false, Ok(Some(json!([second])))),
            ("b:NoExecute", false, Ok(Some(json!([first, second, {"key": "b", "effect": "NoExecute"}])))),
            (
                "a=2:NoSchedule",
                true,
                Ok(Some(json!([{"key": "a", "value": "2", "effect": "NoSchedule"}, second]))),
            ),
            ("a=2:NoSchedule", false, Err("the member already has the taint a=1:NoSchedule")),
        ] {
            let got = patch(&cluster, &read(&words(line)).unwrap(), overwrite);
            let want = want.map(|want| want.map(|taints| json!({"spec": {"taints": taints}})));
            assert_eq!(got.map_err(|failure| failure.to_string()), want.map_err(str::to_owned), "{line}");
        }
    }

    #[test]
    fn what_is_no_taint_is_refused() {
        for (line, says) in [
            ("a", "`a` has no effect"),
            ("a=1", "`a=1` has no effect"),
            ("a:Sometimes", "invalid effect `Sometimes` in `a:Sometimes`"),
            (":NoSchedule", "invalid key or value in `:NoSchedule`: "),
            ("a=b=c:NoSchedule", "invalid key or value in `a=b=c:NoSchedule`: "),
            ("a:NoSchedule a:NoSchedule-", "`a` is given twice"),
            ("a:NoSchedule a-", "`a` is given twice"),
        ] {
            let error = read(&words(line)).unwrap_err().to_string();
            assert!(error.starts_with(says), "{line}: {error}");
        }
        assert_eq!(read(&words("a:NoSchedule a:NoExecute")).unwrap().len(), 2);
    }
}
