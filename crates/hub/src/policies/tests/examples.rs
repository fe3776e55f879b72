//! The policies that Karmada publishes as examples: taken as they are, or refused by the names of their fields.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{Outcome, World};

const RELEASE: &str = "github.com/karmada-io/karmada@v1.18.2";

/// The directory of the release, or `None` after saying why the test is skipped. With `CI=true` nothing is skipped.
fn release() -> Option<PathBuf> {
    let go = Command::new("go")
        .args(["mod", "download", "-json", RELEASE])
        .current_dir(std::env::temp_dir()) // in no module of its own
        .output();
    let said = go.ok().and_then(|go| serde_json::from_slice::<Value>(&go.stdout).ok()).unwrap_or_default();
    match said["Dir"].as_str() {
        Some(dir) => Some(dir.into()),
        None => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{RELEASE}: {said}");
            let _ = writeln!(std::io::stderr(), "SKIPPED: no examples of {RELEASE}: {}", said["Error"]);
            None
        }
    }
}

fn manifests(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            manifests(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "yaml") {
            found.push(path);
        }
    }
    Ok(())
}

#[tokio::test]
async fn karmadas_examples_are_taken_or_refused_by_name() -> Outcome {
    let Some(module) = release() else { return Ok(()) };
    let world = World::start(0).await?;
    let mut files = Vec::new();
    for folder in ["samples", "artifacts/example", "examples"] {
        manifests(&module.join(folder), &mut files).context(folder)?;
    }
    let mut taken = 0;
    let mut refused = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file)?;
        let Ok(objects) = serde_saphyr::from_multiple::<Value>(&text) else { continue };
        let policies =
            objects.into_iter().filter(|object| object["apiVersion"] == "policy.karmada.io/v1alpha1");
        for mut policy in policies {
            let kind = policy["kind"].as_str().unwrap_or_default().to_owned();
            if !kind.ends_with("PropagationPolicy") && !kind.ends_with("OverridePolicy") {
                continue;
            }
            if !kind.starts_with("Cluster") {
                policy["metadata"]["namespace"] = "default".into();
            }
            match world.hub.apply(&policy).await {
                Ok(_) => taken += 1,
                Err(error) => {
                    let file = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
                    refused.insert(file, error.to_string());
                }
            }
        }
    }
    ensure!(taken >= 15, "{taken} were taken; refused: {refused:#?}");
    ensure!(refused.keys().eq(["policy_with_labelSelector.yaml"]), "{refused:#?}");
    let why = &refused["policy_with_labelSelector.yaml"];
    for field in ["spec.schedulerName", "spec.placement.spreadConstraints[].spreadByLabel"] {
        ensure!(why.contains(&format!("{field} is not honoured by Atoll")), "{why}");
    }
    Ok(())
}
