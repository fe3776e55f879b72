//! Messages as bytes. Who carries them keeps them apart, and in order.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::down::Down;
use crate::up::Up;

/// The longest frame. A plan with 100,000 endpoints fits; what is longer is no message of ours.
pub const LONGEST: usize = 32 << 20;

/// One message, on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame<M> {
    /// Counts the frames of its sender, from 1.
    pub number: u64,
    /// The last frame of the other side that the sender had when it sent this one; 0 if it had none.
    pub heard: u64,
    /// The message.
    pub message: M,
}

/// What came in.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming<M> {
    /// A message.
    Known(Frame<M>),
    /// A message of a kind that only a newer side knows: it is skipped. Its number counts.
    Unknown(Frame<UnknownKind>),
}

/// The kind of a message that is not known here.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UnknownKind {
    /// As the other side calls it.
    pub kind: String,
}

/// Bytes that are no frame. Nothing can be said of what follows them: whoever gets this ends the stream.
#[derive(Debug, thiserror::Error)]
pub enum BadFrame {
    /// No message is as long.
    #[error("a message of {0} bytes is longer than {LONGEST}")]
    TooLong(usize),
    /// A frame is missing, or came twice.
    #[error("message {got} came where message {awaited} was awaited")]
    OutOfOrder {
        /// Its number.
        got: u64,
        /// The number that it should have.
        awaited: u64,
    },
    /// It can't be read, or says what can't be.
    #[error("a message can't be read")]
    Unreadable(#[source] serde_json::Error),
}

/// A message that crosses the link.
pub trait Message: Serialize + DeserializeOwned {
    /// Every kind of it.
    const KINDS: &'static [&'static str];
}

impl Message for Up {
    const KINDS: &'static [&'static str] = &[
        "Change",
        "Holds",
        "Alive",
        "Unreachable",
        "Wrote",
        "Dispatched",
        "Problem",
        "Copy",
        "Health",
        "Identity",
        "Cleaned",
        "GaveBack",
        "NotCleaned",
        "Stopped",
    ];
}

impl Message for Down {
    const KINDS: &'static [&'static str] =
        &["Identify", "Start", "Lease", "Assign", "Order", "Look", "Clean", "GiveBack", "Stop"];
}

/// A frame as bytes.
pub fn encode<M: Message>(frame: &Frame<M>) -> Result<Vec<u8>, BadFrame> {
    let bytes = serde_json::to_vec(frame).map_err(BadFrame::Unreadable)?;
    if bytes.len() > LONGEST { Err(BadFrame::TooLong(bytes.len())) } else { Ok(bytes) }
}

/// A frame of bytes.
pub fn decode<M: Message>(bytes: &[u8]) -> Result<Incoming<M>, BadFrame> {
    if bytes.len() > LONGEST {
        return Err(BadFrame::TooLong(bytes.len()));
    }
    match serde_json::from_slice(bytes) {
        Ok(frame) => Ok(Incoming::Known(frame)),
        // Of a kind that we know it is bad; of another one it is news.
        Err(error) => match serde_json::from_slice::<Frame<UnknownKind>>(bytes) {
            Ok(frame) if !M::KINDS.contains(&frame.message.kind.as_str()) => Ok(Incoming::Unknown(frame)),
            Ok(_) | Err(_) => Err(BadFrame::Unreadable(error)),
        },
    }
}

/// Reads the frames of the other side: in order, and counting what it skips.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inbox {
    heard: u64,
    skipped: u64,
}

impl Inbox {
    /// The next frame; none if its message is of a kind that only a newer side knows.
    pub fn read<M: Message>(&mut self, bytes: &[u8]) -> Result<Option<Frame<M>>, BadFrame> {
        let (number, known) = match decode(bytes)? {
            Incoming::Known(frame) => (frame.number, Some(frame)),
            Incoming::Unknown(frame) => (frame.number, None),
        };
        let awaited = self.heard + 1;
        if number != awaited {
            return Err(BadFrame::OutOfOrder { got: number, awaited });
        }
        self.heard = number;
        self.skipped += u64::from(known.is_none());
        Ok(known)
    }

    /// The number of the last frame: what our own frames say that we have heard.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// How many messages were skipped.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}
