//! What our pure functions are compared with is still what a real API server says.

use crate::harness::{Outcome, Suite};
use anyhow::{Context, ensure};
use atoll_lab::facts::answers::{Answer, cases, play};
use atoll_lab::{Lab, Progress, Spec};
use std::path::Path;

const APIMACHINERY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kube/apimachinery");

pub(crate) fn tests(suite: &mut Suite) {
    suite.test_alone("a_real_server_still_answers_as_recorded", answers_as_recorded);
    suite.test_alone("facts_about_protobuf_are_current", protobuf_is_current);
}

async fn answers_as_recorded() -> Outcome {
    let lab = Lab::start(&Spec::api_only("test-answers", 1), &Progress::to_stderr()).await?;
    let client = lab.member(1).client().await?;
    let mut differences = Vec::new();
    for file in cases(&Path::new(APIMACHINERY).join("tests/golden"))? {
        let text = std::fs::read_to_string(file.with_extension("json"))?;
        let recorded: Vec<Answer> = serde_json::from_str(&text)?;
        let now = play(&client, &file).await?;
        ensure!(
            now.len() == recorded.len(),
            "{}: a case has no answer, or an answer no case",
            file.display()
        );
        let pairs = now.iter().zip(&recorded).filter(|(now, recorded)| !now.agrees(recorded));
        differences.extend(
            pairs.map(|(now, then)| format!("{}\n  then {}\n  now  {}", now.name, then.answer, now.answer)),
        );
    }
    lab.down()?;
    ensure!(differences.is_empty(), "{} answers changed:\n{}", differences.len(), differences.join("\n"));
    Ok(())
}

async fn protobuf_is_current() -> Outcome {
    let work = atoll_lab::cache_root().join("facts");
    std::fs::create_dir_all(&work)?;
    let file = Path::new(APIMACHINERY).join("facts/protobuf.tsv");
    let kept = std::fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    ensure!(
        atoll_lab::facts::protobuf::collect(&work)? == kept,
        "the facts changed; write them anew: lab facts protobuf {}",
        file.display()
    );
    Ok(())
}
