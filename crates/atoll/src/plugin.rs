//! The binary under the name `kubectl-atoll`: a plugin of kubectl, called as `kubectl atoll`.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name that kubectl looks for.
const PLUGIN: &str = "kubectl-atoll";
/// The name that kubectl looks for when it completes what stands behind `kubectl atoll`.
const COMPLETES: &str = "kubectl_complete-atoll";
/// Flags of kubectl that may stand before the command, and have a value.
const GLOBAL: [&str; 4] = ["--kubeconfig", "--context", "--namespace", "-n"];

/// Under which name the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Called {
    Atoll,
    Plugin,
    Completer,
}

/// Under which name this process was started.
pub(crate) fn called() -> Called {
    called_as(&std::env::args_os().next().unwrap_or_default())
}

/// Whether this process is a plugin of kubectl.
pub(crate) fn is_plugin() -> bool {
    called() != Called::Atoll
}

/// How a person calls this program.
pub(crate) fn name() -> &'static str {
    if is_plugin() { "kubectl atoll" } else { "atoll" }
}

/// The help of a plugin: it is called `kubectl atoll`.
pub(crate) fn renamed(command: clap::Command) -> clap::Command {
    let after = command.get_after_help().map(|text| in_examples(&text.to_string()));
    let command = command.mut_subcommands(renamed);
    match after {
        Some(after) => command.after_help(after),
        None => command,
    }
}

fn in_examples(text: &str) -> String {
    text.replace("\n  atoll ", "\n  kubectl atoll ")
        .replace("`atoll ", "`kubectl atoll ")
        .replace("| atoll ", "| kubectl atoll ")
}

/// How this program is called from any folder: by its name if that is on the PATH, else by its path as it was called.
pub(crate) fn this_program() -> String {
    let called = std::env::args_os().next().unwrap_or_else(|| "atoll".into());
    let called = Path::new(&called);
    if called.components().count() < 2 {
        return called.display().to_string();
    }
    std::path::absolute(called).unwrap_or_else(|_| called.to_owned()).display().to_string()
}

fn called_as(program: &OsStr) -> Called {
    match Path::new(program).file_name().and_then(OsStr::to_str) {
        Some(PLUGIN) => Called::Plugin,
        Some(COMPLETES) => Called::Completer,
        _ => Called::Atoll,
    }
}

/// Flags of kubectl that stand before the command go behind it, where each command has its own.
pub(crate) fn reordered(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.into_iter().peekable();
    let mut all: Vec<OsString> = words.next().into_iter().collect();
    let mut moved = Vec::new();
    while let Some(flag) = words.next_if(|word| is_global(word)) {
        let has_value = flag.to_str().is_some_and(|text| GLOBAL.contains(&text));
        moved.push(flag);
        if has_value {
            moved.extend(words.next());
        }
    }
    all.extend(words.next());
    if moved.is_empty() {
        all.extend(words);
        return all;
    }
    // Behind `--` they would belong to a command in a container.
    let rest: Vec<OsString> = words.collect();
    let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    all.extend_from_slice(&rest[..end]);
    all.extend(moved);
    all.extend_from_slice(&rest[end..]);
    all
}

fn is_global(word: &OsStr) -> bool {
    let Some(text) = word.to_str() else { return false };
    let flag = text.split_once('=').map_or(text, |(flag, _)| flag);
    GLOBAL.contains(&flag) && (flag == text || flag.starts_with("--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_program_says_who_called_it() {
        for (program, want) in [
            ("/usr/bin/kubectl-atoll", Called::Plugin),
            ("kubectl_complete-atoll", Called::Completer),
            ("./atoll", Called::Atoll),
            ("", Called::Atoll),
        ] {
            assert_eq!(called_as(OsStr::new(program)), want, "{program}");
        }
    }

    #[test]
    fn flags_of_kubectl_may_stand_before_the_command() {
        for (line, want) in [
            ("kubectl-atoll explain web -n shop", "kubectl-atoll explain web -n shop"),
            (
                "kubectl-atoll --context hub -n shop explain web",
                "kubectl-atoll explain web --context hub -n shop",
            ),
            ("kubectl-atoll --kubeconfig=/k status", "kubectl-atoll status --kubeconfig=/k"),
            ("kubectl-atoll -n shop exec web -- ls -l", "kubectl-atoll exec web -n shop -- ls -l"),
            ("kubectl-atoll --help", "kubectl-atoll --help"),
            ("kubectl-atoll", "kubectl-atoll"),
        ] {
            let words = reordered(line.split(' ').map(OsString::from));
            let got: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
            assert_eq!(got.join(" "), want);
        }
    }
}
