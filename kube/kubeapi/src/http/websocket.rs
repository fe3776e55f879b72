//! WebSocket frames (RFC 6455): bytes in, events out; of both sides, and used by `atoll exec` as a client. No I/O; ADR 10 says why
//! they are made by hand.
//!
//! A message is handed on in the pieces that it comes in, so nothing longer than a control frame is ever collected.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};

/// What every server answers a client's key with, by the standard.
const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// A control frame is no longer than this.
const LONGEST_CONTROL: u64 = 125;

/// Everything went well.
pub const NORMAL: u16 = 1000;
/// The other side broke the rules.
pub const PROTOCOL_ERROR: u16 = 1002;

/// What proves to a client that its key was read. `None` when the key is none: 16 bytes in base64.
pub fn accept(key: &str) -> Option<String> {
    STANDARD.decode(key).ok().filter(|bytes| bytes.len() == 16)?;
    // The standard wants SHA-1; nothing here is kept secret by it.
    Some(STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{MAGIC}").as_bytes())))
}

/// Something that the other side sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A piece of a message, text or binary.
    Data {
        /// What it holds.
        bytes: Bytes,
        /// It is the message's first piece.
        first: bool,
        /// It is the message's last piece.
        last: bool,
    },
    /// To be answered with the same bytes.
    Ping(Bytes),
    /// The answer to a ping.
    Pong,
    /// The farewell.
    Close,
}

/// A frame that breaks the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A bit that means nothing.
    #[error("a reserved bit is set")]
    Reserved,
    /// A client's frame in the clear.
    #[error("a client's frame has to be masked")]
    Unmasked,
    /// A server's frame that is not.
    #[error("a server's frame must not be masked")]
    Masked,
    /// An operation that there is not.
    #[error("unknown opcode {0}")]
    Operation(u8),
    /// A control frame that is cut or long.
    #[error("a control frame must not be fragmented, and has at most 125 bytes")]
    Control,
    /// A message within another.
    #[error("a message began before the last one ended")]
    Interrupted,
    /// A message without its beginning.
    #[error("a continuation frame without a message")]
    NotBegun,
    /// A length of more than 63 bits.
    #[error("a frame's length is out of range")]
    Length,
}

/// Takes the other side's frames apart.
#[derive(Debug)]
pub struct Decoder {
    /// Frames are those of a client, and so masked.
    masked: bool,
    frame: Option<Frame>,
    /// A message has begun and not ended.
    within: bool,
}

/// A frame whose head is read.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    mask: [u8; 4],
    /// How much of the payload was taken, as far as the mask cares.
    taken: usize,
    left: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data { first: bool, last: bool },
    Ping,
    Pong,
    Close,
}

impl Decoder {
    /// For what a client sends.
    pub fn of_client() -> Self {
        Self { masked: true, frame: None, within: false }
    }

    /// For what a server sends.
    pub fn of_server() -> Self {
        Self { masked: false, frame: None, within: false }
    }

    /// The next event of what has arrived; `None` when more has to come first. What is used is taken from `buffer`.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Event>, Violation> {
        let mut frame = match self.frame.take() {
            Some(frame) => frame,
            None => match self.head(buffer)? {
                Some(frame) => frame,
                None => return Ok(None),
            },
        };
        let there = u64::try_from(buffer.len()).unwrap_or(u64::MAX);
        let wanted = if matches!(frame.kind, Kind::Data { .. }) { frame.left.min(1) } else { frame.left };
        if there < wanted {
            self.frame = Some(frame);
            return Ok(None);
        }
        let taking = usize::try_from(frame.left.min(there)).unwrap_or(0);
        let mut bytes = buffer.split_to(taking);
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte ^= frame.mask[(frame.taken + index) % 4];
        }
        let bytes = bytes.freeze();
        let ended = frame.left == taking as u64;
        Ok(Some(match frame.kind {
            Kind::Ping => Event::Ping(bytes),
            Kind::Pong => Event::Pong,
            Kind::Close => Event::Close,
            Kind::Data { first, last } => {
                if !ended {
                    frame.kind = Kind::Data { first: false, last };
                    frame.taken = (frame.taken + taking) % 4;
                    frame.left -= taking as u64;
                    self.frame = Some(frame);
                }
                Event::Data { bytes, first, last: last && ended }
            }
        }))
    }

    /// Reads a frame's head, once it is whole.
    fn head(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, Violation> {
        let [one, two, ..] = **buffer else { return Ok(None) };
        if one & 0x70 != 0 {
            return Err(Violation::Reserved);
        }
        match (self.masked, two & 0x80 != 0) {
            (true, false) => return Err(Violation::Unmasked),
            (false, true) => return Err(Violation::Masked),
            (true, true) | (false, false) => {}
        }
        let wide = match two & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let size = 2 + wide + if self.masked { 4 } else { 0 };
        if buffer.len() < size {
            return Ok(None);
        }
        let left = match wide {
            0 => u64::from(two & 0x7f),
            _ => buffer[2..2 + wide].iter().fold(0, |length, byte| (length << 8) | u64::from(*byte)),
        };
        if left > i64::MAX as u64 {
            return Err(Violation::Length);
        }
        let kind = self.kind(one & 0x0f, one & 0x80 != 0, left)?;
        let mut mask = [0; 4];
        if self.masked {
            mask.copy_from_slice(&buffer[2 + wide..size]);
        }
        let _ = buffer.split_to(size);
        Ok(Some(Frame { kind, mask, taken: 0, left }))
    }

    fn kind(&mut self, operation: u8, last: bool, length: u64) -> Result<Kind, Violation> {
        let control =
            |kind| if last && length <= LONGEST_CONTROL { Ok(kind) } else { Err(Violation::Control) };
        let first = match operation {
            0 if self.within => false,
            0 => return Err(Violation::NotBegun),
            1 | 2 if self.within => return Err(Violation::Interrupted),
            1 | 2 => true,
            8 => return control(Kind::Close),
            9 => return control(Kind::Ping),
            10 => return control(Kind::Pong),
            other => return Err(Violation::Operation(other)),
        };
        self.within = !last;
        Ok(Kind::Data { first, last })
    }
}

/// Appends a binary message: `channel` and then `payload`.
pub fn put_message(channel: u8, payload: &[u8], out: &mut BytesMut) {
    put_head(2, payload.len() + 1, out);
    out.put_u8(channel);
    out.put_slice(payload);
}

/// Appends the question whether the other side is there.
pub fn put_ping(out: &mut BytesMut) {
    put_head(9, 0, out);
}

/// Appends the answer to a ping.
pub fn put_pong(payload: &[u8], out: &mut BytesMut) {
    put_head(10, payload.len(), out);
    out.put_slice(payload);
}

/// Appends a farewell.
pub fn put_close(code: u16, out: &mut BytesMut) {
    put_head(8, 2, out);
    out.put_u16(code);
}

/// Appends a binary message as a client sends it: `channel` and then `payload`, under a random mask.
pub fn put_masked_message(channel: u8, payload: &[u8], mask: [u8; 4], out: &mut BytesMut) {
    put_masked(2, std::iter::once(channel).chain(payload.iter().copied()), payload.len() + 1, mask, out);
}

/// Appends a client's answer to a ping.
pub fn put_masked_pong(payload: &[u8], mask: [u8; 4], out: &mut BytesMut) {
    put_masked(10, payload.iter().copied(), payload.len(), mask, out);
}

fn put_masked(
    operation: u8,
    payload: impl Iterator<Item = u8>,
    length: usize,
    mask: [u8; 4],
    out: &mut BytesMut,
) {
    let start = out.len();
    put_head(operation, length, out);
    out[start + 1] |= 0x80;
    out.put_slice(&mask);
    out.extend(payload.zip(mask.into_iter().cycle()).map(|(byte, mask)| byte ^ mask));
}

/// The head of a whole frame; a server does not mask.
fn put_head(operation: u8, length: usize, out: &mut BytesMut) {
    out.reserve(length + 10);
    out.put_u8(0x80 | operation);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..=125), _) => out.put_u8(short),
        (_, Ok(medium)) => {
            out.put_u8(126);
            out.put_u16(medium);
        }
        _ => {
            out.put_u8(127);
            out.put_u64(length as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame as a client sends it.
    fn masked(operation: u8, last: bool, mask: [u8; 4], payload: &[u8]) -> Vec<u8> {
        let mut head = BytesMut::new();
        put_head(operation, payload.len(), &mut head);
        head[0] = operation | if last { 0x80 } else { 0 };
        head[1] |= 0x80;
        let payload = payload.iter().enumerate().map(|(index, byte)| byte ^ mask[index % 4]);
        head.iter().copied().chain(mask).chain(payload).collect()
    }

    /// All events, when bytes arrive in pieces of this size.
    fn decode(bytes: &[u8], size: usize) -> Result<Vec<Event>, Violation> {
        let (mut decoder, mut buffer, mut events) = (Decoder::of_client(), BytesMut::new(), Vec::new());
        for piece in bytes.chunks(size.max(1)) {
            buffer.extend_from_slice(piece);
            while let Some(event) = decoder.next(&mut buffer)? {
                events.push(event);
            }
        }
        Ok(events)
    }

    /// The messages that pieces make up.
    fn messages(events: &[Event]) -> Vec<Vec<u8>> {
        let mut messages: Vec<Vec<u8>> = Vec::new();
        for event in events {
            if let Event::Data { bytes, first, .. } = event {
                if *first {
                    messages.push(Vec::new());
                }
                messages.last_mut().unwrap().extend_from_slice(bytes);
            }
        }
        messages
    }

    #[test]
    fn the_key_is_answered_as_the_standard_has_it() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ==").unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(accept("short"), None);
        assert_eq!(accept("c2hvcnQ="), None);
    }

    #[test]
    fn a_message_may_come_in_frames_with_a_ping_between() {
        let mask = [1, 2, 3, 4];
        let bytes = [
            masked(2, false, mask, b"hel"),
            masked(9, true, mask, b"there?"),
            masked(0, true, mask, b"lo"),
            masked(8, true, mask, &[3, 232]),
        ]
        .concat();
        let data = |text: &'static str, first, last| Event::Data { bytes: text.into(), first, last };
        assert_eq!(
            decode(&bytes, 1000).unwrap(),
            [data("hel", true, false), Event::Ping("there?".into()), data("lo", false, true), Event::Close]
        );
    }

    #[test]
    fn a_frame_is_handed_on_while_it_comes() {
        let (mut decoder, mut buffer) = (Decoder::of_client(), BytesMut::new());
        buffer.extend_from_slice(&[0x82, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]); // a terabyte, they say
        for first in [true, false, false] {
            buffer.extend_from_slice(&[7; 1000]);
            let want = Event::Data { bytes: vec![7; 1000].into(), first, last: false };
            assert_eq!(decoder.next(&mut buffer), Ok(Some(want)));
            assert!(buffer.is_empty());
        }
    }

    #[test]
    fn what_no_client_may_send_is_refused() {
        let mask = [9, 9, 9, 9];
        let begun = masked(2, false, mask, b"x");
        for (bytes, want) in [
            (vec![0x82, 0x01, 0x00], Violation::Unmasked),
            (vec![0xc2, 0x81], Violation::Reserved),
            (masked(3, true, mask, b""), Violation::Operation(3)),
            (masked(0, true, mask, b""), Violation::NotBegun),
            ([begun.clone(), begun].concat(), Violation::Interrupted),
            (masked(9, false, mask, b""), Violation::Control),
            (masked(9, true, mask, &[0; 126]), Violation::Control),
            ([vec![0x82, 0xff], vec![0xff; 12]].concat(), Violation::Length),
        ] {
            assert_eq!(decode(&bytes, 1000), Err(want), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_one_side_puts_together_the_other_takes_apart(
            channel: u8, payload in prop::collection::vec(any::<u8>(), 0..70_000), mask: [u8; 4],
        ) {
            let (mut ours, mut theirs) = (BytesMut::new(), BytesMut::new());
            put_message(channel, &payload, &mut ours);
            put_masked_message(channel, &payload, mask, &mut theirs);
            prop_assert_eq!(Decoder::of_client().next(&mut ours.clone()), Err(Violation::Unmasked));
            prop_assert_eq!(Decoder::of_server().next(&mut theirs.clone()), Err(Violation::Masked));
            let bytes: Bytes = [&[channel], payload.as_slice()].concat().into();
            let want = Event::Data { bytes, first: true, last: true };
            prop_assert_eq!(Decoder::of_server().next(&mut ours), Ok(Some(want.clone())));
            prop_assert_eq!(Decoder::of_client().next(&mut theirs), Ok(Some(want)));
            prop_assert!(ours.is_empty() && theirs.is_empty());
        }

        #[test]
        fn messages_arrive_whole_however_they_are_cut(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..5),
            mask: [u8; 4], size in 1usize..700,
        ) {
            let last = parts.len() - 1;
            let frames: Vec<u8> = parts.iter().enumerate().flat_map(|(index, part)| {
                masked(if index == 0 { 2 } else { 0 }, index == last, mask, part)
            }).collect();
            let events = decode(&frames, size).unwrap();
            prop_assert_eq!(messages(&events), vec![parts.concat()]);
            let ends = events.iter().filter(|event| matches!(event, Event::Data { last: true, .. })).count();
            prop_assert_eq!(ends, 1);
        }

        #[test]
        fn no_bytes_make_it_panic_or_hoard(bytes in prop::collection::vec(any::<u8>(), 0..2000), size in 1usize..50) {
            let (mut decoder, mut buffer) = (Decoder::of_client(), BytesMut::new());
            for piece in bytes.chunks(size) {
                buffer.extend_from_slice(piece);
                loop {
                    match decoder.next(&mut buffer) {
                        Ok(Some(_)) => {}
                        Ok(None) => break,
                        Err(_) => return Ok(()),
                    }
                }
                // At most a head, or a control frame that is not whole.
                prop_assert!(buffer.len() < 14 + 125);
            }
        }
    }
}
