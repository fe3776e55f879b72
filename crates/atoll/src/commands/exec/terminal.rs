//! The terminal that a person types at: every key is handed on as it is, and its size is told.

use bytes::BytesMut;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::session;

/// For as long as this lives, keys are not made into lines or signals.
pub(super) struct RawMode {
    before: Termios,
}

impl RawMode {
    pub(super) fn enter() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Tells the terminal's size, now and whenever it changes.
pub(super) async fn forward_sizes(frames: mpsc::Sender<BytesMut>) {
    let Ok(mut changed) = signal(SignalKind::window_change()) else { return };
    loop {
        if let Ok(size) = tcgetwinsize(std::io::stdin())
            && frames.send(session::resize(size.ws_col, size.ws_row)).await.is_err()
        {
            return;
        }
        if changed.recv().await.is_none() {
            return;
        }
    }
}
