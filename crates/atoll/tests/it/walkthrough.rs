//! Runs the commands of the walkthroughs in `docs`, in order, and compares what they print with what stands there.
//!
//! What differs from run to run (addresses, ages, the ends of generated names, times) is put out of the way on both sides. A line
//! that is only `…` stands for any number of lines. A command is repeated until it prints what it should or the time is over, as a
//! reader would who sees that something is not there yet.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use regex::Regex;

/// How long a command may take to print what stands in the document.
const PATIENCE: Duration = Duration::from_secs(90);

struct Step {
    line: usize,
    command: String,
    output: String,
}

/// The commands of the document's `console` blocks.
fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut inside, mut continued) = (false, false);
    for (number, line) in document.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
            continue;
        }
        if !inside {
            continue;
        }
        match (continued, line.strip_prefix("$ "), steps.last_mut()) {
            (true, _, Some(step)) => step.command.push_str(line.trim()),
            (false, Some(command), _) => {
                steps.push(Step { line: number + 1, command: command.to_owned(), output: String::new() });
            }
            (_, _, Some(step)) => {
                step.output.push_str(line);
                step.output.push('\n');
            }
            (_, _, None) => panic!("line {}: output without a command", number + 1),
        }
        continued = steps.last().is_some_and(|step| step.command.ends_with('\\'));
        if let Some(step) = steps.last_mut().filter(|_| continued) {
            step.command.pop();
        }
    }
    steps
}

/// Puts out of the way what differs from run to run.
struct Plain(Vec<(Regex, &'static str)>);

impl Plain {
    fn new() -> Self {
        let rules = [
            (r"127\.\d+\.\d+\.\d+", "127.x"),
            (r"\b\d+(\.\d+)? ms\b", "N ms"),
            (r"\b\d+(\.\d+)? s\b", "N s"),
            (r"\b(serve)-[0-9a-z]{6,10}-[0-9a-z]{5}\b", "$1-POD"),
            (r"\bserve-[0-9a-z]{5,10}\b", "serve-ANY"),
            (r"\b(\d+[dhms])+$", "AGE"),
            (r"\b\d+ calls, \d+ answered\b", "N calls, N answered"),
            (r"(serve-POD +)\d+$", "${1}N"),
            (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
            (r"[ \t]+", " "),
        ];
        Self(rules.map(|(rule, plain)| (Regex::new(rule).unwrap(), plain)).into())
    }

    fn lines(&self, text: &str, home: &str) -> Vec<String> {
        let text = text.replace(home, "~");
        text.lines()
            .map(|line| {
                self.0.iter().fold(line.trim_end().to_owned(), |line, (rule, plain)| {
                    rule.replace_all(&line, *plain).into_owned()
                })
            })
            .collect()
    }
}

/// Is what was printed what stands there?
fn fits(want: &[String], found: &[String]) -> bool {
    match want.split_first() {
        None => found.is_empty(),
        Some((any, rest)) if any == "…" => (0..=found.len()).any(|skip| fits(rest, &found[skip..])),
        Some((line, rest)) => found.first() == Some(line) && fits(rest, &found[1..]),
    }
}

/// A place where `atoll` is the one that was just built; the sandbox in it ends with it.
pub(super) struct Workdir {
    home: tempfile::TempDir,
    root: PathBuf,
}

impl Workdir {
    pub(super) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_atoll"), home.path().join("bin/atoll")).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        Self { home, root }
    }

    /// What a command prints, to stdout and stderr.
    pub(super) fn run(&self, command: &str) -> String {
        let path = format!("{}/bin:/usr/bin:/bin", self.home.path().display());
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{command}")])
            .current_dir(&self.root)
            .env_clear()
            .env("HOME", self.home.path())
            .env("PATH", path)
            .env("KUBECONFIG", self.home.path().join(".atoll/up/kubeconfig"))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        self.run("atoll down");
    }
}

#[test]
fn the_walkthrough_prints_what_stands_in_it() {
    walk("docs/walkthrough.md", include_str!("../../../../docs/walkthrough.md"));
}

#[test]
fn the_walkthrough_for_users_of_karmada_prints_what_stands_in_it() {
    walk("docs/walkthrough-karmada.md", include_str!("../../../../docs/walkthrough-karmada.md"));
}

fn walk(name: &str, document: &str) {
    let (place, plain) = (Workdir::new(), Plain::new());
    let home = place.home.path().display().to_string();
    let steps = steps(document);
    assert!(steps.len() > 10, "the document has commands");
    for step in steps {
        let want = plain.lines(&step.output, &home);
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = place.run(&step.command);
            let found = plain.lines(&said, &home);
            if fits(&want, &found) {
                break;
            }
            if Instant::now() > deadline {
                panic!(
                    "{name}, line {}: $ {}\nsays\n{said}\nand not\n{}",
                    step.line, step.command, step.output
                );
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn any_lines_fit_an_ellipsis_and_nothing_else_does() {
    let lines = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for (want, found, fit) in [
        ("a b", "a b", true),
        ("a b", "a", false),
        ("a … c", "a c", true),
        ("a … c", "a b b c", true),
        ("a … c", "a b b", false),
        ("…", "a b", true),
    ] {
        assert_eq!(fits(&lines(want), &lines(found)), fit, "{want} / {found}");
    }
}
