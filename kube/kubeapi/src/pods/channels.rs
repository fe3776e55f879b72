//! The channels of `v4.channel.k8s.io` and `v5.channel.k8s.io`: the first byte of each message says which. No I/O.

use super::Exit;
use bytes::Bytes;
use serde_json::{Value, json};

const STDIN: u8 = 0;
pub(super) const STDOUT: u8 = 1;
pub(super) const STDERR: u8 = 2;
pub(super) const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// "This channel ends": its number follows. Since version 5.
const CLOSE: u8 = 255;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// Input can't end before the session does.
    V4,
    /// A client can say that it sends no more.
    V5,
}

/// What is spoken here, the best first.
pub(crate) const PROTOCOLS: [Protocol; 2] = [Protocol::V5, Protocol::V4];

impl Protocol {
    /// Its name in a handshake.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4.channel.k8s.io",
            Self::V5 => "v5.channel.k8s.io",
        }
    }
}

/// What a piece of a message means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Stdin(Bytes),
    StdinEnds,
    /// A terminal's size, an empty message, a channel that is not for clients.
    Nothing,
}

/// A message of the channel that ends others, and not one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one of the channels 0 to 4 has to be named as the one that ends")]
pub(super) struct BadClose;

/// Sorts pieces of messages by channel.
#[derive(Debug)]
pub(super) struct Channels {
    protocol: Protocol,
    /// The channel of the message that is under way.
    current: Option<u8>,
    /// The channel that is to end.
    closing: Option<u8>,
}

impl Channels {
    pub(super) fn new(protocol: Protocol) -> Self {
        Self { protocol, current: None, closing: None }
    }

    /// Takes the next piece of a message.
    pub(super) fn take(&mut self, mut bytes: Bytes, first: bool, last: bool) -> Result<Input, BadClose> {
        if first {
            (self.current, self.closing) = (None, None);
        }
        if self.current.is_none() && !bytes.is_empty() {
            self.current = Some(bytes.split_to(1)[0]);
        }
        match self.current {
            Some(STDIN) if !bytes.is_empty() => Ok(Input::Stdin(bytes)),
            Some(CLOSE) if self.protocol == Protocol::V5 => self.close(&bytes, last),
            _ => Ok(Input::Nothing),
        }
    }

    fn close(&mut self, bytes: &[u8], last: bool) -> Result<Input, BadClose> {
        for byte in bytes {
            if *byte > RESIZE || self.closing.replace(*byte).is_some() {
                return Err(BadClose);
            }
        }
        match (self.closing, last) {
            (None, true) => Err(BadClose),
            (Some(STDIN), true) => Ok(Input::StdinEnds),
            _ => Ok(Input::Nothing),
        }
    }
}

/// What a session is for: only a command's exit code is told to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A command of the client's own.
    Exec,
    /// The container's program: its pod says how it ended.
    Attach,
}

/// How a session ended, as a `Status`.
pub(super) fn status(purpose: Purpose, exit: &Exit) -> Value {
    match (purpose, exit) {
        (_, Exit::Code(0)) | (Purpose::Attach, Exit::Code(_)) => json!({"metadata": {}, "status": "Success"}),
        (Purpose::Exec, Exit::Code(code)) => {
            // Clients read a byte. What does not fit is a failure all the same.
            let code = u8::try_from(*code).unwrap_or(u8::MAX);
            json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: {code}"),
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            })
        }
        (_, Exit::Failed(why)) => {
            let doing = match purpose {
                Purpose::Exec => "error executing command in container",
                Purpose::Attach => "error attaching to container",
            };
            let why = format!("{doing}: {why}");
            json!({
                "metadata": {}, "status": "Failure", "reason": "InternalError", "code": 500,
                "message": format!("Internal error occurred: {why}"), "details": {"causes": [{"message": why}]},
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn whole(protocol: Protocol, message: &[u8]) -> Result<Input, BadClose> {
        Channels::new(protocol).take(Bytes::copy_from_slice(message), true, true)
    }

    #[test]
    fn the_first_byte_says_which_channel() {
        use Protocol::{V4, V5};
        for (protocol, message, want) in [
            (V5, &[0, 104, 105][..], Ok(Input::Stdin("hi".into()))),
            (V5, &[0], Ok(Input::Nothing)),
            (V5, &[], Ok(Input::Nothing)),
            (V5, &[1, 104], Ok(Input::Nothing)),
            (V5, &[4, b'{', b'}'], Ok(Input::Nothing)),
            (V5, &[255, 0], Ok(Input::StdinEnds)),
            (V5, &[255, 4], Ok(Input::Nothing)),
            (V5, &[255, 5], Err(BadClose)),
            (V5, &[255], Err(BadClose)),
            (V5, &[255, 0, 0], Err(BadClose)),
            (V4, &[255, 0], Ok(Input::Nothing)),
        ] {
            assert_eq!(whole(protocol, message), want, "{protocol:?} {message:?}");
        }
    }

    #[test]
    fn only_a_command_tells_its_code() {
        assert_eq!(status(Purpose::Attach, &Exit::Code(3))["status"], "Success");
        assert_eq!(status(Purpose::Exec, &Exit::Code(3))["details"]["causes"][0]["message"], "3");
        assert_eq!(status(Purpose::Exec, &Exit::Code(-9))["details"]["causes"][0]["message"], "255");
        assert_eq!(
            status(Purpose::Exec, &Exit::Failed("no such file".to_owned()))["message"],
            "Internal error occurred: error executing command in container: no such file"
        );
    }

    proptest! {
        #[test]
        fn input_is_the_same_however_a_message_is_cut(text in prop::collection::vec(any::<u8>(), 0..200), size in 1usize..60) {
            let message: Vec<u8> = [0].into_iter().chain(text.iter().copied()).collect();
            let mut channels = Channels::new(Protocol::V5);
            let pieces: Vec<_> = message.chunks(size).collect();
            let mut got = Vec::new();
            for (index, piece) in pieces.iter().enumerate() {
                let piece = Bytes::copy_from_slice(piece);
                match channels.take(piece, index == 0, index + 1 == pieces.len()).unwrap() {
                    Input::Stdin(bytes) => got.extend_from_slice(&bytes),
                    other => prop_assert_eq!(other, Input::Nothing),
                }
            }
            prop_assert_eq!(got, text);
        }

        #[test]
        fn no_pieces_make_it_panic(pieces in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..5), any::<bool>(), any::<bool>()), 0..20)) {
            let mut channels = Channels::new(Protocol::V5);
            for (bytes, first, last) in pieces {
                let _ = channels.take(bytes.into(), first, last);
            }
        }
    }
}
