//! Says what is awaited, if it takes long: silence looks like a hang.

use std::time::Duration;

/// After this long something is said.
const SLOW: Duration = Duration::from_secs(2);

/// Waits for `work`, and says so on stderr if that takes long.
pub(crate) async fn saying<T>(what: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        () = tokio::time::sleep(SLOW) => eprintln!("{what} …"),
    }
    work.await
}
