//! Reads a packet that any host may have sent, into types that can be trusted.

use crate::name::LONGEST;
use crate::wire::{HEADER, flag, rcode, rtype};

const LONGEST_LABEL: u8 = 63;
/// As many labels as the longest name can have.
const MOST_LABELS: usize = 127;

/// A question that is well-formed.
#[derive(Debug, Clone)]
pub struct Query<'p> {
    /// The header and the question as they came: both are echoed, so that letters keep their case.
    pub(crate) head: &'p [u8],
    pub(crate) name: AskedName,
    /// The type asked for.
    pub rtype: u16,
    /// The class asked for.
    pub class: u16,
    /// EDNS, if spoken.
    pub edns: Option<Edns>,
}

/// What EDNS says about the asker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edns {
    /// How large a datagram it takes.
    pub payload: u16,
    /// The version spoken.
    pub version: u8,
    /// It wants signatures.
    pub dnssec: bool,
}

/// Why there is no [`Query`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// No answer at all.
    Silent(Silent),
    /// An answer that is only a header.
    Rejected(Rejected),
}

/// Why a packet is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silent {
    /// Too short to have an id.
    TooShort,
    /// Answering answers would never end.
    IsResponse,
}

/// Why a packet is answered by a header only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rejected {
    /// Not a query: an update, say.
    OtherOpcode,
    /// Not exactly one question.
    NotOneQuestion,
    /// A name that is none: too long, or with a pointer where there is nothing to point to.
    BadName,
    /// Fewer bytes than it says.
    CutOff,
    /// EDNS twice, or not at the root.
    BadEdns,
}

impl Rejected {
    /// The code to answer with.
    pub fn rcode(self) -> u16 {
        match self {
            Self::OtherOpcode => rcode::NOT_IMPLEMENTED,
            Self::NotOneQuestion | Self::BadName | Self::CutOff | Self::BadEdns => rcode::FORMAT_ERROR,
        }
    }
}

impl<'p> Query<'p> {
    /// Reads a packet.
    pub fn read(packet: &'p [u8]) -> Result<Self, Unread> {
        if packet.len() < HEADER {
            return Err(Unread::Silent(Silent::TooShort));
        }
        let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
        let flags = word(2);
        if flags & flag::RESPONSE != 0 {
            return Err(Unread::Silent(Silent::IsResponse));
        }
        if flags & flag::OPCODE != 0 {
            return Err(Unread::Rejected(Rejected::OtherOpcode));
        }
        let [questions, answers, authorities, additionals] = [4, 6, 8, 10].map(word);
        if questions != 1 {
            return Err(Unread::Rejected(Rejected::NotOneQuestion));
        }
        let mut rest = Reader { packet, at: HEADER };
        let name = rest.question_name().map_err(Unread::Rejected)?;
        let (rtype, class) = rest.two_words().map_err(Unread::Rejected)?;
        let head = &packet[..rest.at];
        let others = usize::from(answers) + usize::from(authorities);
        let edns = rest.find_edns(others, usize::from(additionals)).map_err(Unread::Rejected)?;
        Ok(Self { head, name, rtype, class, edns })
    }
}

/// The name asked for, in lower case, with the places where its labels begin.
#[derive(Debug, Clone)]
pub(crate) struct AskedName {
    bytes: [u8; LONGEST],
    length: usize,
    starts: [u8; MOST_LABELS],
    labels: usize,
}

impl AskedName {
    pub(crate) fn labels(&self) -> usize {
        self.labels
    }

    /// Where label `number` begins; the end if there is none.
    pub(crate) fn start(&self, number: usize) -> usize {
        if number < self.labels { usize::from(self.starts[number]) } else { self.length }
    }

    /// The labels from `first` to before `end`.
    pub(crate) fn part(&self, first: usize, end: usize) -> &[u8] {
        &self.bytes[self.start(first)..self.start(end)]
    }
}

struct Reader<'p> {
    packet: &'p [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Rejected> {
        let byte = *self.packet.get(self.at).ok_or(Rejected::CutOff)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, count: usize) -> Result<(), Rejected> {
        self.at += count;
        if self.at > self.packet.len() { Err(Rejected::CutOff) } else { Ok(()) }
    }

    fn word(&mut self) -> Result<u16, Rejected> {
        Ok(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }

    fn two_words(&mut self) -> Result<(u16, u16), Rejected> {
        Ok((self.word()?, self.word()?))
    }

    fn question_name(&mut self) -> Result<AskedName, Rejected> {
        let (bytes, starts) = ([0; LONGEST], [0; MOST_LABELS]);
        let mut name = AskedName { bytes, length: 0, starts, labels: 0 };
        loop {
            let length = self.byte()?;
            if length == 0 {
                return Ok(name);
            }
            if length > LONGEST_LABEL {
                return Err(Rejected::BadName);
            }
            let end = name.length + 1 + usize::from(length);
            // One byte is left for the root. So there can't be more labels than places for them either.
            if end >= LONGEST || name.labels == MOST_LABELS {
                return Err(Rejected::BadName);
            }
            let label = self.packet.get(self.at..self.at + usize::from(length)).ok_or(Rejected::CutOff)?;
            name.starts[name.labels] = u8::try_from(name.length).map_err(|_| Rejected::BadName)?;
            name.bytes[name.length] = length;
            let place = &mut name.bytes[name.length + 1..end];
            place.copy_from_slice(label);
            place.make_ascii_lowercase();
            name.labels += 1;
            name.length = end;
            self.at += usize::from(length);
        }
    }

    /// Walks over the records after the question. Each takes at least 11 bytes, so this ends soon.
    fn find_edns(&mut self, others: usize, additionals: usize) -> Result<Option<Edns>, Rejected> {
        let mut found = None;
        for number in 0..others + additionals {
            let at_root = self.packet.get(self.at) == Some(&0);
            self.skip_name()?;
            let (rtype, class) = self.two_words()?;
            let (high, low) = self.two_words()?;
            let length = self.word()?;
            self.skip(usize::from(length))?;
            if rtype != rtype::OPT {
                continue;
            }
            if found.is_some() || !at_root || number < others {
                return Err(Rejected::BadEdns);
            }
            let [_, version] = high.to_be_bytes();
            found = Some(Edns { payload: class, version, dnssec: low & (1 << 15) != 0 });
        }
        Ok(found)
    }

    fn skip_name(&mut self) -> Result<(), Rejected> {
        loop {
            match self.byte()? {
                0 => return Ok(()),
                length @ 1..=LONGEST_LABEL => self.skip(usize::from(length))?,
                // A pointer ends a name; where it points to does not matter here.
                192.. => return self.skip(1),
                _ => return Err(Rejected::BadName),
            }
        }
    }
}
