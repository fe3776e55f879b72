//! Fetches a Go module that publishes what we compare with.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The directory of a Go module, or `None` after saying why the test is skipped. With `CI=true` nothing is skipped.
pub(crate) fn module(name_at_version: &str) -> Option<PathBuf> {
    match download(name_at_version) {
        Ok(dir) => Some(dir),
        Err(why) => {
            assert!(std::env::var("CI").as_deref() != Ok("true"), "{name_at_version}: {why}");
            // Not eprintln!, which the test harness keeps to itself when a test passes.
            let _ = writeln!(std::io::stderr(), "SKIPPED: no comparison with {name_at_version}: {why}");
            None
        }
    }
}

fn download(name_at_version: &str) -> Result<PathBuf, String> {
    let go = Command::new("go")
        .args(["mod", "download", "-json", name_at_version])
        .current_dir(std::env::temp_dir()) // in no module of its own
        .output()
        .map_err(|error| format!("cannot run `go`: {error}"))?;
    let said: Value = serde_json::from_slice(&go.stdout)
        .map_err(|_| format!("`go mod download`: {}", String::from_utf8_lossy(&go.stderr)))?;
    match (said["Dir"].as_str(), said["Error"].as_str()) {
        (Some(dir), None) => Ok(dir.into()),
        (_, error) => Err(format!("`go mod download`: {}", error.unwrap_or("gives no directory"))),
    }
}

/// Reads a file of a module; it is a fault, not a reason to skip, if the module lacks it.
pub(crate) fn read(module: &Path, file: &str) -> String {
    std::fs::read_to_string(module.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// The value in `Name = "value"` or `const Name Type = "value"` of a Go file.
pub(crate) fn go_constant<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    source.lines().find_map(|line| {
        let (left, right) = line.split_once('=')?;
        (left.trim_start().trim_start_matches("const ").split_whitespace().next()? == name)
            .then(|| right.trim().trim_matches('"'))
    })
}
