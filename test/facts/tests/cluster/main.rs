//! What the product compiles in, and what its pure functions are compared with, is still what a real API server says.
//!
//! Where real clusters can't run it says SKIPPED and why; with `CI=true` that is a failure.

use anyhow::{Context, ensure};
use atoll_facts::answers::{Answer, cases, play};
use atoll_facts::{openapi, protobuf};
use atoll_lab::Lab;
use atoll_lab::suite::{Suite, evidence_root, name};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let spec = atoll_lab::Spec::api_only(&name("facts"), 1);
    let evidence = evidence_root(env!("CARGO_TARGET_TMPDIR"));
    let mut suite = Suite::new("facts", spec, evidence).expect("a runtime can be made");
    suite.test("facts_about_built_in_kinds_are_current", openapi_is_current);
    suite.test("a_real_server_still_answers_as_recorded", answers_as_recorded);
    suite.test_alone("facts_about_protobuf_are_current", protobuf_is_current);
    suite.run()
}

/// A file or folder of the crate that has the facts.
fn of_apimachinery(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../kube/apimachinery").join(path)
}

fn kept(file: &str) -> anyhow::Result<String> {
    let path = of_apimachinery(file);
    std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
}

async fn openapi_is_current(lab: &Lab) -> anyhow::Result<()> {
    let client = lab.member(1).client().await?;
    let current = openapi::collect(&client, &lab.layout().dir().join("facts")).await?;
    let kept = kept("facts/openapi.tsv")?;
    let differing = current.lines().zip(kept.lines()).find(|(current, kept)| current != kept);
    ensure!(
        current == kept,
        "facts/openapi.tsv is not current: {differing:?}\n  hint: facts openapi kube/apimachinery/facts/openapi.tsv"
    );
    Ok(())
}

async fn answers_as_recorded(lab: &Lab) -> anyhow::Result<()> {
    let client = lab.member(1).client().await?;
    let mut differences = Vec::new();
    for file in cases(&of_apimachinery("tests/golden"))? {
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
    ensure!(differences.is_empty(), "{} answers changed:\n{}", differences.len(), differences.join("\n"));
    Ok(())
}

async fn protobuf_is_current() -> anyhow::Result<()> {
    let work = atoll_lab::cache_root().join("facts");
    std::fs::create_dir_all(&work)?;
    ensure!(
        protobuf::collect(&work)? == kept("facts/protobuf.tsv")?,
        "facts/protobuf.tsv is not current\n  hint: facts protobuf kube/apimachinery/facts/protobuf.tsv"
    );
    Ok(())
}
