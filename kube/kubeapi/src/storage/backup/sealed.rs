//! An encrypted backup: a line that says so, then frames of a length and that many sealed bytes.
//!
//! ```text
//!   atoll-encrypted-backup 1\n
//!   length (4 bytes, big-endian), sealed(number of the frame, whether it is the last; lines)
//!   …
//! ```
//!
//! A frame that is missing, doubled, in another place, of another backup or after the last is found out.

use crate::storage::encryption::{Keys, Opener, Purpose, SealError, Sealer, origin};
use bytes::{BufMut, Bytes, BytesMut};
use std::io::{self, BufRead, Read};

const HEAD: &[u8] = b"atoll-encrypted-backup 1\n";
/// No frame is longer: an object has at most 3 MB, and a chunk ends with the object that filled it.
const MOST_BYTES: usize = 16 << 20;

/// Makes frames.
pub(super) struct Frames {
    sealer: Sealer,
    number: u64,
}

impl Frames {
    /// None if no key encrypts.
    pub(super) fn new(keys: &Keys) -> Result<Option<Self>, SealError> {
        let Some(key) = keys.first() else { return Ok(None) };
        Ok(Some(Self { sealer: Sealer::new(key, Purpose::Backup)?, number: 0 }))
    }

    pub(super) fn frame(&mut self, lines: &[u8], last: bool) -> Option<Bytes> {
        let sealed = self.sealer.seal(&place(self.number, last), lines).ok()?;
        let mut frame = BytesMut::with_capacity(HEAD.len() + 4 + sealed.len());
        if self.number == 0 {
            frame.put_slice(HEAD);
        }
        frame.put_u32(u32::try_from(sealed.len()).ok()?);
        frame.put_slice(&sealed);
        self.number += 1;
        Some(frame.freeze())
    }
}

fn place(number: u64, last: bool) -> [u8; 9] {
    let mut place = [u8::from(last); 9];
    place[..8].copy_from_slice(&number.to_be_bytes());
    place
}

/// Reads a backup, encrypted or not.
pub(super) enum Reader<'a, R> {
    Plain(R),
    Sealed(Box<Unsealing<'a, R>>),
}

/// Reads frames.
pub(super) struct Unsealing<'a, R> {
    from: R,
    opener: Opener<'a>,
    number: u64,
    /// Which backup the frames are of.
    origin: Option<Vec<u8>>,
    lines: Vec<u8>,
    read: usize,
    ended: bool,
}

impl<'a, R: BufRead> Reader<'a, R> {
    pub(super) fn new(mut from: R, keys: &'a Keys) -> io::Result<Self> {
        // A line of JSON begins otherwise.
        if from.fill_buf()?.first() != HEAD.first() {
            return Ok(Self::Plain(from));
        }
        let mut head = Vec::new();
        (&mut from).take(HEAD.len() as u64).read_until(b'\n', &mut head)?;
        if head != HEAD {
            return Err(io::Error::other("it is not an Atoll backup, or of a later version"));
        }
        let opener = Opener::new(keys, Purpose::Backup);
        let (lines, read) = (Vec::new(), 0);
        Ok(Self::Sealed(Box::new(Unsealing {
            from,
            opener,
            number: 0,
            origin: None,
            lines,
            read,
            ended: false,
        })))
    }
}

impl<R: BufRead> Unsealing<'_, R> {
    fn next_frame(&mut self) -> io::Result<()> {
        let cut = |error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("it ends too early"),
            _ => error,
        };
        let mut length = [0; 4];
        self.from.read_exact(&mut length).map_err(cut)?;
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > MOST_BYTES {
            return Err(changed());
        }
        let mut sealed = vec![0; length];
        self.from.read_exact(&mut sealed).map_err(cut)?;
        let origin = origin(&sealed).ok_or_else(changed)?;
        if self.origin.get_or_insert_with(|| origin.to_vec()) != origin {
            return Err(changed());
        }
        let opened = match self.opener.open(&place(self.number, false), &sealed) {
            Err(SealError::Changed) => {
                self.ended = true;
                self.opener.open(&place(self.number, true), &sealed)
            }
            opened => opened,
        };
        self.lines = opened.map_err(|error| match error {
            SealError::NoKey(id) => io::Error::other(format!(
                "it is encrypted with key {id}, which the key file does not have, if one is given; give the key file that has it"
            )),
            SealError::Changed | SealError::Refused => changed(),
        })?;
        (self.read, self.number) = (0, self.number + 1);
        if self.ended && !self.from.fill_buf()?.is_empty() {
            return Err(io::Error::other("something was added to it"));
        }
        Ok(())
    }
}

fn changed() -> io::Error {
    io::Error::other("it was changed, or is not encrypted as it says")
}

impl<R: BufRead> Read for Unsealing<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(to)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Unsealing<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.read == self.lines.len() && !self.ended {
            self.next_frame()?;
        }
        Ok(self.lines.get(self.read..).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        self.read = (self.read + amount).min(self.lines.len());
    }
}

impl<R: BufRead> Read for Reader<'_, R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(from) => from.read(to),
            Self::Sealed(from) => from.read(to),
        }
    }
}

impl<R: BufRead> BufRead for Reader<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self {
            Self::Plain(from) => from.fill_buf(),
            Self::Sealed(from) => from.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        match self {
            Self::Plain(from) => from.consume(amount),
            Self::Sealed(from) => from.consume(amount),
        }
    }
}
