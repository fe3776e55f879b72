//! Bodies as they are in the file: as they are, or sealed.

use super::object::Object;
use crate::storage::encryption::{Keys, Opener, Purpose, SealError, Sealer, SecretKey};
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use std::borrow::Cow;

/// Where the key of the sums is sealed for.
const SUMS: &[u8] = b"sums";
const SUMS_BYTES: usize = 32;

/// What the sums over a file's objects are made with.
///
/// They are in the file beside the objects. Where these are encrypted the sums have a key, or whoever has the file could try out
/// what is in them.
#[derive(Clone, Default)]
pub(super) struct Sums(Option<hmac::Key>);

impl Sums {
    /// A number that is another one if anything of the object is.
    pub(super) fn of(&self, object: &Object) -> u64 {
        let mut text = Vec::with_capacity(object.key.as_str().len() + object.body.len() + 16);
        text.extend_from_slice(&object.revision.to_le_bytes());
        text.extend_from_slice(&(object.key.as_str().len() as u64).to_le_bytes());
        text.extend_from_slice(object.key.as_str().as_bytes());
        text.extend_from_slice(&object.body);
        let first = |bytes: &[u8]| bytes.iter().take(8).fold(0, |sum, &byte| (sum << 8) | u64::from(byte));
        match &self.0 {
            Some(key) => first(hmac::sign(key, &text).as_ref()),
            None => first(digest(&SHA256, &text).as_ref()),
        }
    }
}

/// How bodies get into the file.
#[derive(Default)]
pub(super) struct Seal {
    sealer: Option<Sealer>,
    pub(super) sums: Sums,
}

impl Seal {
    /// For a file that is under this key, if any, and whose sums are made with `sums`.
    pub(super) fn new(key: Option<&SecretKey>, sums: Sums) -> Result<Self, SealError> {
        let sealer = key.map(|key| Sealer::new(key, Purpose::Store)).transpose()?;
        Ok(Self { sealer, sums })
    }

    /// For a new file; also what is to be kept in it of the sums' key.
    pub(super) fn fresh(keys: &Keys) -> Result<(Self, Option<Vec<u8>>), SealError> {
        let mut seal = Self::new(keys.first(), Sums::default())?;
        let Some(sealer) = &mut seal.sealer else { return Ok((seal, None)) };
        let mut bytes = [0; SUMS_BYTES];
        aws_lc_rs::rand::fill(&mut bytes).map_err(|_| SealError::Refused)?;
        let kept = sealer.seal(SUMS, &bytes)?;
        seal.sums = Sums(Some(hmac::Key::new(hmac::HMAC_SHA256, &bytes)));
        Ok((seal, Some(kept)))
    }

    /// An object's body as the file has it.
    pub(super) fn body<'a>(&mut self, object: &'a Object) -> Result<Cow<'a, [u8]>, SealError> {
        match &mut self.sealer {
            Some(sealer) => sealer.seal(&place(object), &object.body).map(Cow::Owned),
            None => Ok(Cow::Borrowed(&object.body)),
        }
    }
}

/// How bodies get out of a file that is sealed.
pub(super) struct Unseal<'a> {
    opener: Opener<'a>,
    pub(super) sums: Sums,
}

impl<'a> Unseal<'a> {
    pub(super) fn new(keys: &'a Keys, kept: &[u8]) -> Result<Self, SealError> {
        let mut opener = Opener::new(keys, Purpose::Store);
        let bytes = opener.open(SUMS, kept)?;
        let sums = Sums(Some(hmac::Key::new(hmac::HMAC_SHA256, &bytes)));
        Ok(Self { opener, sums })
    }

    /// The object that the file has like this.
    pub(super) fn object(&mut self, sealed: Object) -> Result<Object, SealError> {
        let body = self.opener.open(&place(&sealed), &sealed.body)?;
        Ok(Object { body: body.into(), ..sealed })
    }
}

/// A body belongs to its key and revision: none can be put in another's place.
fn place(object: &Object) -> Vec<u8> {
    [&object.revision.to_le_bytes(), object.key.as_str().as_bytes()].concat()
}
