//! The subject of a client certificate. webpki, which verified the certificate in the handshake, takes it apart; only the
//! subject's name, which webpki hands out as DER, is read here.

use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

/// Attribute 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// Attribute 2.5.4.10.
const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;

#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Subject {
    pub(super) common_name: Option<String>,
    pub(super) organisations: Vec<String>,
}

pub(super) fn subject(der: &[u8]) -> Option<Subject> {
    let der = CertificateDer::from(der);
    let certificate = EndEntityCert::try_from(&der).ok()?;
    let mut names = Reader(certificate.subject());
    let mut subject = Subject::default();
    while !names.0.is_empty() {
        let mut set = Reader(names.expect(SET)?);
        while !set.0.is_empty() {
            let mut pair = Reader(set.expect(SEQUENCE)?);
            let attribute = pair.expect(OBJECT_ID)?;
            let (kind, text) = pair.next()?;
            match attribute {
                // The last common name counts, as in Go's certificates.
                COMMON_NAME => subject.common_name = Some(string(kind, text)?),
                ORGANISATION => subject.organisations.push(string(kind, text)?),
                _ => {}
            }
        }
    }
    subject.common_name = subject.common_name.filter(|name| !name.is_empty());
    Some(subject)
}

fn string(kind: u8, text: &[u8]) -> Option<String> {
    const UTF8: u8 = 0x0c;
    const PRINTABLE: u8 = 0x13;
    const TELETEX: u8 = 0x14;
    const IA5: u8 = 0x16;
    match kind {
        UTF8 => String::from_utf8(text.to_vec()).ok(),
        PRINTABLE | TELETEX | IA5 if text.is_ascii() => String::from_utf8(text.to_vec()).ok(),
        _ => None,
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The next value and its tag. None where the bytes end too early or the length isn't the shortest form.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, mut rest) = rest.split_first()?;
        let length = if first < 0x80 {
            usize::from(first)
        } else {
            let size = usize::from(first & 0x7f);
            if !(1..=3).contains(&size) || rest.len() < size {
                return None;
            }
            let (bytes, after) = rest.split_at(size);
            rest = after;
            let length = bytes.iter().fold(0, |length, &byte| (length << 8) | usize::from(byte));
            if length < 0x80 || length >> (8 * (size - 1)) == 0 {
                return None;
            }
            length
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, value))
    }

    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, value)| value)
    }
}
