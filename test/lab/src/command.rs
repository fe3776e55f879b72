//! Runs a program to its end and keeps what it said.

use crate::error::{Doing, Error, Result};
use std::process::{Command, Output, Stdio};

/// Runs `command` with no input; a bad exit status is an error with the end of its output.
pub(crate) fn run(command: &mut Command) -> Result<Output> {
    let line = render(command);
    let output = command.stdin(Stdio::null()).output().doing(|| format!("run `{line}`"))?;
    if output.status.success() { Ok(output) } else { Err(failure(line, &output)) }
}

/// Runs `command` and returns what it printed.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&run(command)?.stdout).into_owned())
}

/// As [`run`], fed with `input`.
pub(crate) fn run_with_input(command: &mut Command, input: &str) -> Result<Output> {
    use std::io::Write;
    let line = render(command);
    let doing = || format!("run `{line}`");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().doing(doing)?;
    let mut stdin = child.stdin.take().expect("stdin was piped");
    stdin.write_all(input.as_bytes()).doing(doing)?;
    drop(stdin);
    let output = child.wait_with_output().doing(doing)?;
    if output.status.success() { Ok(output) } else { Err(failure(line, &output)) }
}

/// The error that a finished command amounts to.
pub(crate) fn failure(command: String, output: &Output) -> Error {
    let said = [&output.stderr[..], &output.stdout[..]].concat();
    Error::Command { command, status: output.status.to_string(), output: last_lines(&said, 20) }
}

/// The last `count` lines of `text`.
pub(crate) fn last_lines(text: &[u8], count: usize) -> String {
    let text = String::from_utf8_lossy(text);
    let lines: Vec<_> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// The command line, for messages.
pub(crate) fn render(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_command_says_what_it_printed() {
        let error = run(Command::new("sh").args(["-c", "echo no luck >&2; exit 3"])).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("no luck") && text.contains("exit status: 3"), "{text}");
    }

    #[test]
    fn input_reaches_the_command() {
        let output = run_with_input(&mut Command::new("cat"), "hello").unwrap();
        assert_eq!(output.stdout, b"hello");
    }

    #[test]
    fn only_the_end_of_long_output_is_kept() {
        assert_eq!(last_lines(b"a\nb\nc\n", 2), "b\nc");
    }
}
