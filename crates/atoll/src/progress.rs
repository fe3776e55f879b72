//! Progress of slow commands: silence looks like a hang.

use std::time::Duration;

/// Commands that take longer say what they wait for.
const SLOW: Duration = Duration::from_secs(2);

/// Waits for `work`; if that takes long, prints `what` to stderr.
pub(crate) async fn announce_if_slow<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(SLOW) => eprintln!("{what} …"),
    }
    work.await
}
