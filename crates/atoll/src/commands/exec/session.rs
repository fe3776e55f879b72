//! What a command says through a WebSocket, by the channels of `v5.channel.k8s.io`: the first byte of a message says which. No I/O.

use atoll_kubeapi::websocket::{self, Decoder, Event, Violation};
use bytes::{Bytes, BytesMut};
use serde_json::Value;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
/// How it ended, as a `Status`.
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// "This channel ends": its number follows.
const CLOSE: u8 = 255;
/// No `Status` is longer than this.
const LONGEST_STATUS: usize = 64 * 1024;

/// Something that came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Stdout(Bytes),
    Stderr(Bytes),
    /// To be answered with [`pong`].
    Ping(Bytes),
    /// How it ended is known from now on.
    Status,
    Close,
}

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Code(u8),
    Failed(String),
}

/// Sorts what comes.
#[derive(Debug)]
pub(super) struct Session {
    decoder: Decoder,
    buffer: BytesMut,
    /// The channel of the message that is under way.
    channel: Option<u8>,
    status: Vec<u8>,
}

impl Default for Session {
    fn default() -> Self {
        Self { decoder: Decoder::of_server(), buffer: BytesMut::new(), channel: None, status: Vec::new() }
    }
}

impl Session {
    /// Takes in bytes as they come.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Received>, Violation> {
        self.buffer.extend_from_slice(bytes);
        let mut all = Vec::new();
        while let Some(event) = self.decoder.next(&mut self.buffer)? {
            match event {
                Event::Data { bytes, first, last } => all.extend(self.piece(bytes, first, last)),
                Event::Ping(bytes) => all.push(Received::Ping(bytes)),
                Event::Pong => {}
                Event::Close => all.push(Received::Close),
            }
        }
        Ok(all)
    }

    fn piece(&mut self, mut bytes: Bytes, first: bool, last: bool) -> Option<Received> {
        if first {
            self.channel = None;
        }
        if self.channel.is_none() && !bytes.is_empty() {
            self.channel = Some(bytes.split_to(1)[0]);
        }
        match self.channel {
            Some(STDOUT) if !bytes.is_empty() => Some(Received::Stdout(bytes)),
            Some(STDERR) if !bytes.is_empty() => Some(Received::Stderr(bytes)),
            Some(ERROR) => {
                let room = LONGEST_STATUS.saturating_sub(self.status.len()).min(bytes.len());
                self.status.extend_from_slice(&bytes[..room]);
                (last && !self.status.is_empty()).then_some(Received::Status)
            }
            _ => None,
        }
    }

    /// How it ended, when nothing more comes.
    pub(super) fn outcome(&self) -> Outcome {
        if self.status.is_empty() {
            return Outcome::Failed("the connection was lost before the command ended".to_owned());
        }
        let status: Value = serde_json::from_slice(&self.status).unwrap_or_default();
        if status["status"] == "Success" {
            return Outcome::Code(0);
        }
        let causes = status.pointer("/details/causes").and_then(Value::as_array);
        let code = causes.into_iter().flatten().find(|cause| cause["reason"] == "ExitCode");
        let code = code.and_then(|cause| cause["message"].as_str()?.parse::<u8>().ok());
        match (code, status["message"].as_str()) {
            (Some(code), _) if status["reason"] == "NonZeroExitCode" => Outcome::Code(code),
            (_, Some(message)) => Outcome::Failed(message.to_owned()),
            (_, None) => Outcome::Failed(String::from_utf8_lossy(&self.status).into_owned()),
        }
    }
}

/// Random bytes.
pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Frames are masked for proxies that read plain HTTP. There are none inside of TLS, so zeros would do as well.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    bytes
}

/// A piece of input.
pub(super) fn stdin(piece: &[u8]) -> BytesMut {
    message(STDIN, piece)
}

/// There is no more input.
pub(super) fn stdin_ends() -> BytesMut {
    message(CLOSE, &[STDIN])
}

/// The terminal's size.
pub(super) fn resize(columns: u16, rows: u16) -> BytesMut {
    message(RESIZE, serde_json::json!({ "Width": columns, "Height": rows }).to_string().as_bytes())
}

/// The answer to a ping.
pub(super) fn pong(payload: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    websocket::put_masked_pong(payload, random(), &mut out);
    out
}

fn message(channel: u8, payload: &[u8]) -> BytesMut {
    let mut out = BytesMut::new();
    websocket::put_masked_message(channel, payload, random(), &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn from_server(channel: u8, payload: &[u8]) -> BytesMut {
        let mut out = BytesMut::new();
        websocket::put_message(channel, payload, &mut out);
        out
    }

    #[test]
    fn output_is_sorted_and_the_end_is_told() {
        let nonzero = json!({"status": "Failure", "reason": "NonZeroExitCode", "message": "command terminated",
            "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}});
        for (status, want) in [
            (json!({"status": "Success"}), Outcome::Code(0)),
            (nonzero, Outcome::Code(3)),
            (
                json!({"status": "Failure", "reason": "InternalError", "message": "no such file"}),
                Outcome::Failed("no such file".to_owned()),
            ),
        ] {
            let mut bytes = from_server(STDOUT, b"out");
            bytes.extend(from_server(STDERR, b"err"));
            bytes.extend(from_server(STDOUT, b""));
            bytes.extend(from_server(ERROR, status.to_string().as_bytes()));
            for size in [1, 7, 1000] {
                let (mut session, mut out, mut err, mut said) =
                    (Session::default(), Vec::new(), Vec::new(), 0);
                for piece in bytes.chunks(size) {
                    for one in session.take(piece).unwrap() {
                        match one {
                            Received::Stdout(bytes) => out.extend(bytes),
                            Received::Stderr(bytes) => err.extend(bytes),
                            Received::Status => said += 1,
                            other @ (Received::Ping(_) | Received::Close) => panic!("{other:?}"),
                        }
                    }
                }
                assert_eq!((out.as_slice(), err.as_slice(), said), (&b"out"[..], &b"err"[..], 1), "{size}");
                assert_eq!(session.outcome(), want);
            }
        }
    }

    #[test]
    fn a_connection_that_breaks_off_is_no_success() {
        let mut session = Session::default();
        session.take(&from_server(STDOUT, b"half")).unwrap();
        assert!(matches!(session.outcome(), Outcome::Failed(_)));
    }

    #[test]
    fn what_is_sent_is_read_as_it_was_meant() {
        let mut decoder = Decoder::of_client();
        for (mut bytes, want) in [
            (stdin(b"hello"), &b"\0hello"[..]),
            (stdin_ends(), &[255, 0]),
            (resize(80, 24), b"\x04{\"Height\":24,\"Width\":80}"),
        ] {
            let event = decoder.next(&mut bytes).unwrap().unwrap();
            assert_eq!(event, Event::Data { bytes: Bytes::from_static(want), first: true, last: true });
        }
        assert_eq!(decoder.next(&mut pong(b"x")).unwrap(), Some(Event::Pong));
    }
}
