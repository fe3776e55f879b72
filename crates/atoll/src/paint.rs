//! Color: on a terminal, unless `NO_COLOR` or `--color` says otherwise.

use std::ffi::OsString;
use std::io::IsTerminal;

use atoll_api::names::code::Severity;
use clap::{Args, ValueEnum};

/// When output has color.
#[derive(Args, Debug, Clone, Copy, Default)]
pub(crate) struct ColorFlag {
    /// Color: auto means on a terminal, unless $NO_COLOR is set.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = When::Auto, hide_possible_values = false)]
    color: When,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum When {
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorFlag {
    /// For stdout.
    pub(crate) fn paint(self) -> Paint {
        let terminal = std::io::stdout().is_terminal();
        Paint { on: on(self.color, terminal, |key| std::env::var_os(key)) }
    }
}

fn on(when: When, terminal: bool, env: impl Fn(&str) -> Option<OsString>) -> bool {
    let none = env("NO_COLOR").is_some_and(|value| !value.is_empty());
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => terminal && !none && env("TERM").is_none_or(|term| term != "dumb"),
    }
}

/// Puts color around words, or not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    #[cfg(test)]
    pub(crate) const COLORED: Self = Self { on: true };

    /// A mark for how bad something is: one character.
    pub(crate) fn mark(self, severity: Severity) -> String {
        match severity {
            Severity::Info => self.with("32", "✓"),
            Severity::Warning => self.with("33", "!"),
            Severity::Error => self.with("31", "✗"),
        }
    }

    /// Words that say how bad something is.
    pub(crate) fn severe(self, severity: Severity, words: &str) -> String {
        match severity {
            Severity::Info => words.to_owned(),
            Severity::Warning => self.with("33", words),
            Severity::Error => self.with("31", words),
        }
    }

    /// What stands out.
    pub(crate) fn strong(self, words: &str) -> String {
        self.with("1", words)
    }

    /// What is of less interest.
    pub(crate) fn faint(self, words: &str) -> String {
        self.with("2", words)
    }

    fn with(self, code: &str, words: &str) -> String {
        if self.on { format!("\x1b[{code}m{words}\x1b[0m") } else { words.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn color_is_for_terminals_unless_something_else_is_asked_for() {
        for (when, terminal, env, want) in [
            (When::Auto, true, &[][..], true),
            (When::Auto, false, &[], false),
            (When::Auto, true, &[("NO_COLOR", "1")], false),
            (When::Auto, true, &[("NO_COLOR", "")], true),
            (When::Auto, true, &[("TERM", "dumb")], false),
            (When::Auto, true, &[("TERM", "xterm")], true),
            (When::Always, false, &[("NO_COLOR", "1")], true),
            (When::Never, true, &[], false),
        ] {
            let read =
                |key: &str| env.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).into());
            assert_eq!(on(when, terminal, read), want, "{when:?} {terminal} {env:?}");
        }
    }
}
