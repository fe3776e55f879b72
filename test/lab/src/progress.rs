//! Says what is going on, on standard error, one line per step: plain enough for a log file.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How often a long step reports when there is no terminal.
const QUIET: Duration = Duration::from_secs(15);

/// Prints `text` to stderr; a closed stderr is no reason to fail.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "lab: {text}");
}

/// Where steps are announced.
#[derive(Debug, Clone)]
pub struct Progress {
    silent: bool,
    terminal: bool,
    start: Instant,
}

impl Progress {
    /// Reports to standard error.
    pub fn to_stderr() -> Self {
        Self { silent: false, terminal: std::io::stderr().is_terminal(), start: Instant::now() }
    }

    /// Reports nothing.
    pub fn silent() -> Self {
        Self { silent: true, terminal: false, start: Instant::now() }
    }

    /// Announces a step that takes a while.
    pub(crate) fn step(&self, what: String) -> Step {
        self.line(&format!("{what} …"));
        Step {
            what,
            progress: self.clone(),
            start: Instant::now(),
            spoke: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Says that something is now so.
    pub(crate) fn reached(&self, who: &str, what: &str) {
        self.line(&format!("{:5.1} s  {who}: {what}", self.start.elapsed().as_secs_f32()));
    }

    fn line(&self, text: &str) {
        if !self.silent {
            if self.terminal {
                let _ = write!(std::io::stderr(), "\r\x1b[K");
            }
            say(text);
        }
    }
}

/// A step under way.
#[derive(Debug)]
pub(crate) struct Step {
    what: String,
    progress: Progress,
    start: Instant,
    spoke: Arc<Mutex<Instant>>,
}

impl Step {
    /// Says how far it is: at once on a terminal, in place; now and then in a log.
    pub(crate) fn says(&self, how_far: &str) {
        if self.progress.silent {
            return;
        }
        let seconds = self.start.elapsed().as_secs();
        if self.progress.terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[Klab: {} … {how_far}, {seconds} s", self.what);
            return;
        }
        let mut spoke = self.spoke.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if spoke.elapsed() >= QUIET {
            *spoke = Instant::now();
            say(&format!("{} … {how_far}, {seconds} s", self.what));
        }
    }

    /// Says that it is over.
    pub(crate) fn done(self) {
        let seconds = self.start.elapsed().as_secs_f32();
        self.progress.line(&format!("{}: done in {seconds:.1} s", self.what));
    }
}
