//! The signals that ask a command to end.

use tokio::signal::unix::{SignalKind, signal};

/// Listens from now on; what it gives ends at the first SIGTERM or SIGINT.
pub(crate) fn shutdown() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}
