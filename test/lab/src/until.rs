//! Waits for a condition, with a deadline and a reason to show when it passes. Nothing here just sleeps.

use crate::error::{Error, Result};
use std::time::{Duration, Instant};

/// How often a condition is looked at.
const PACE: Duration = Duration::from_millis(50);

/// When to give up, and on what.
#[derive(Debug, Clone)]
pub struct Deadline {
    what: String,
    limit: Duration,
    at: Instant,
}

impl Deadline {
    /// Gives up on `what` after `limit` from now.
    pub fn after(limit: Duration, what: impl Into<String>) -> Self {
        Self { what: what.into(), limit, at: Instant::now() + limit }
    }

    /// The error of having waited too long.
    pub fn passed(&self, last: impl Into<String>) -> Error {
        Error::Deadline { what: self.what.clone(), seconds: self.limit.as_secs(), last: last.into() }
    }
}

/// Looks until `look` is content. `Ok(Err(reason))` means "not yet"; `Err` ends the wait at once.
pub async fn until<T>(
    deadline: Deadline,
    mut look: impl AsyncFnMut() -> Result<Result<T, String>>,
) -> Result<T> {
    let mut before: Option<String> = None;
    loop {
        // A look that hangs must not outlive the deadline either.
        let left = deadline.at.saturating_duration_since(Instant::now()).max(PACE);
        let last = match tokio::time::timeout(left, look()).await {
            Ok(Ok(Ok(found))) => return Ok(found),
            Ok(Ok(Err(reason))) => reason,
            Ok(Err(error)) => return Err(error),
            // Most looks that end so only began too late: what was seen before says more.
            Err(_) => before
                .as_ref()
                .map_or("no answer".to_owned(), |seen| format!("no answer, and before: {seen}")),
        };
        if Instant::now() >= deadline.at {
            return Err(deadline.passed(last));
        }
        before = Some(last);
        tokio::time::sleep(PACE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_condition_that_comes_true_is_returned() {
        let mut looks = 0;
        let found = until(Deadline::after(Duration::from_secs(5), "three"), async || {
            looks += 1;
            Ok(if looks == 3 { Ok(looks) } else { Err(format!("only {looks}")) })
        });
        assert_eq!(found.await.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_hanging_look_ends_at_the_deadline_with_the_reason() {
        let found = until(Deadline::after(Duration::from_millis(80), "an answer"), async || {
            std::future::pending::<Result<Result<(), String>>>().await
        });
        let text = found.await.unwrap_err().to_string();
        assert!(text.contains("an answer") && text.contains("no answer"), "{text}");
    }

    #[tokio::test]
    async fn a_look_that_begins_too_late_does_not_hide_what_was_seen() {
        let mut looks = 0;
        let found = until(Deadline::after(Duration::from_millis(80), "an answer"), async || {
            looks += 1;
            if looks > 1 {
                std::future::pending::<()>().await;
            }
            Ok(Err::<(), _>("connection refused".to_owned()))
        });
        assert!(found.await.unwrap_err().to_string().contains("connection refused"));
    }
}
