//! The help of every command, as a user and a reviewer see it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const UPDATE: &str = "ATOLL_UPDATE_GOLDEN";
/// Terminals are often no wider.
const COLUMNS: usize = 80;

#[test]
fn every_help_text_is_its_golden_file() {
    let update = std::env::var_os(UPDATE).is_some();
    let all = every_help();
    assert!(all.len() > 30, "{:?}", all.keys());
    let file = |command: &str| golden().join(format!("{}.txt", command.replace(' ', "-")));
    let mut kept: Vec<PathBuf> =
        std::fs::read_dir(golden()).unwrap().map(|entry| entry.unwrap().path()).collect();
    kept.retain(|path| !all.keys().any(|command| file(command) == *path));
    let mut wrong: Vec<String> =
        kept.iter().map(|path| format!("{} has no command", path.display())).collect();
    for (command, help) in &all {
        if std::fs::read_to_string(file(command)).unwrap_or_default() != *help {
            wrong.push(format!("the help of `{command}` differs from {}", file(command).display()));
        }
        if update {
            std::fs::write(file(command), help).unwrap();
        }
    }
    if update {
        kept.iter().for_each(|path| std::fs::remove_file(path).unwrap());
        return;
    }
    let how = format!("if the change is wanted, run `{UPDATE}=1 cargo test --workspace --test it help`");
    assert!(wrong.is_empty(), "{}\n{how}", wrong.join("\n"));
}

#[test]
fn every_help_text_has_examples_that_fit_the_terminal() {
    for (command, help) in every_help() {
        let examples = help.split("Examples:\n").nth(1).unwrap_or_default();
        assert!(examples.contains(&command), "{command} has no example:\n{help}");
        let wide: Vec<&str> = help.lines().filter(|line| line.chars().count() > COLUMNS).collect();
        assert!(wide.is_empty(), "{command}: {wide:#?}");
    }
}

#[test]
fn yaml_in_help_texts_can_be_read() {
    let mut read = 0;
    for (command, help) in every_help() {
        for block in yaml_blocks(&help) {
            let parsed: Result<serde_json::Value, _> = serde_saphyr::from_str(&block);
            assert!(
                parsed.as_ref().is_ok_and(serde_json::Value::is_object),
                "{command}: {parsed:?}\n{block}"
            );
            read += 1;
        }
    }
    assert!(read > 0, "the configuration file of `atoll lb` is one");
    // It would find what is wrong.
    assert_eq!(yaml_blocks("x:\n  a:\n    - b: c\n  d: e: f\n"), ["a:\n  - b: c\nd: e: f\n"]);
}

/// Indented blocks whose first line is a key alone, or a key and a value that is no prose: what a person would copy.
fn yaml_blocks(help: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = help.lines().peekable();
    while let Some(line) = lines.next() {
        // Below a heading, two spaces in.
        if line.starts_with(' ') || !line.ends_with(':') {
            continue;
        }
        let mut block = String::new();
        while let Some(inner) = lines.next_if(|inner| inner.starts_with("  ")) {
            block.push_str(&inner[2..]);
            block.push('\n');
        }
        let first = block.split(['\n']).next().unwrap_or_default();
        let key = first.split_once(':').map(|(key, _)| key);
        if key.is_some_and(|key| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric())) {
            blocks.push(block);
        }
    }
    blocks
}

#[test]
fn the_manifest_for_krew_is_yaml_and_names_what_the_release_fills_in() {
    let text = include_str!("../../../../deploy/krew/atoll.yaml");
    let manifest: serde_json::Value = serde_saphyr::from_str(text).unwrap();
    for (number, arch) in ["AMD64", "ARM64"].into_iter().enumerate() {
        let platform = &manifest["spec"]["platforms"][number];
        assert_eq!(platform["uri"], format!("@URL_{arch}@"));
        assert_eq!(platform["sha256"], format!("@SHA256_{arch}@"));
        assert_eq!(platform["bin"], "kubectl-atoll");
        assert_eq!(platform["files"][0]["to"], "kubectl-atoll");
    }
    assert_eq!(manifest["metadata"]["name"], "atoll");
    assert_eq!(manifest["spec"]["version"], "v@VERSION@");
}

#[test]
fn the_configuration_in_the_help_of_lb_is_valid() {
    let help = help(&["lb"]);
    let text = help.split("Configuration file:\n").nth(1).unwrap();
    let text: String =
        text.lines().take_while(|line| !line.is_empty()).map(|line| format!("{}\n", &line[2..])).collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lb.yaml");
    std::fs::write(&file, text).unwrap();
    let (code, out, talk) = super::atoll(&["lb", "--check", "--config", file.to_str().unwrap()]);
    assert_eq!((code, out), (Some(0), format!("{}: 1 listeners\n", file.display())), "{talk}");
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/help")
}

/// The help of every command, by its words; `atoll` itself too.
fn every_help() -> BTreeMap<String, String> {
    let (mut all, mut open) = (BTreeMap::new(), vec![Vec::new()]);
    while let Some(words) = open.pop() {
        let words: Vec<String> = words;
        let help = help(&words.iter().map(String::as_str).collect::<Vec<_>>());
        open.extend(subcommands(&help).into_iter().map(|name| [&words[..], &[name]].concat()));
        all.insert([&["atoll".to_owned()], &words[..]].concat().join(" "), help);
    }
    all
}

fn help(words: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command.args(words).arg("--help").env_clear().env("COLUMNS", COLUMNS.to_string());
    // A terminal at any of these would have a width of its own.
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{words:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The names in the section `Commands:`; what stands further in is their text.
fn subcommands(help: &str) -> Vec<String> {
    let section = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = section.take_while(|line| !line.is_empty()).filter_map(|line| {
        let rest = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        rest.split(' ').next()
    });
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}
