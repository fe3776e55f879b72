//! Bytes under a key: `version, key id, salt, counter, ciphertext, tag`. Where they belong is part of what is authenticated.

use super::{ID_BYTES, KeyId, Keys, SecretKey};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use std::collections::HashMap;

const VERSION: u8 = 1;
const SALT_BYTES: usize = 16;
const COUNTER_BYTES: usize = 8;
/// The key's id and the salt: together they say which derived key it is.
const DERIVED: std::ops::Range<usize> = 1..1 + ID_BYTES + SALT_BYTES;
const HEAD_BYTES: usize = 1 + ID_BYTES + SALT_BYTES + COUNTER_BYTES;

/// What sealed bytes are for: those of one purpose can't be passed off as those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Store,
    Backup,
}

impl Purpose {
    fn text(self) -> &'static [u8] {
        match self {
            Self::Store => b"atoll store v1",
            Self::Backup => b"atoll backup v1",
        }
    }
}

/// Why bytes can't be sealed or opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SealError {
    /// They are under a key that we do not have.
    #[error("it is encrypted with key {0}")]
    NoKey(KeyId),
    /// They are not what was sealed, or not for this place.
    #[error("it was changed")]
    Changed,
    /// The library refuses, or the system gives no randomness.
    #[error("cannot encrypt")]
    Refused,
}

/// Seals, with a key of its own.
pub(crate) struct Sealer {
    key: LessSafeKey,
    id: KeyId,
    salt: [u8; SALT_BYTES],
    /// The next nonce. It never goes back.
    counter: u64,
}

impl Sealer {
    pub(crate) fn new(secret: &SecretKey, purpose: Purpose) -> Result<Self, SealError> {
        let mut salt = [0; SALT_BYTES];
        aws_lc_rs::rand::fill(&mut salt).map_err(|_| SealError::Refused)?;
        Ok(Self { key: derive(secret, &salt, purpose)?, id: secret.id, salt, counter: 0 })
    }

    /// Bytes that belong to `place`.
    pub(crate) fn seal(&mut self, place: &[u8], bytes: &[u8]) -> Result<Vec<u8>, SealError> {
        let counter = self.counter;
        self.counter = counter.checked_add(1).ok_or(SealError::Refused)?;
        let mut sealed = Vec::with_capacity(HEAD_BYTES + bytes.len() + AES_256_GCM.tag_len());
        sealed.push(VERSION);
        sealed.extend_from_slice(&self.id.0);
        sealed.extend_from_slice(&self.salt);
        sealed.extend_from_slice(&counter.to_be_bytes());
        let aad = Aad::from([&sealed, place].concat());
        sealed.extend_from_slice(bytes);
        let tag = sealed
            .get_mut(HEAD_BYTES..)
            .and_then(|body| self.key.seal_in_place_separate_tag(nonce(counter), aad, body).ok())
            .ok_or(SealError::Refused)?;
        sealed.extend_from_slice(tag.as_ref());
        Ok(sealed)
    }
}

/// Opens what was sealed with any of the keys.
pub(crate) struct Opener<'a> {
    keys: &'a Keys,
    purpose: Purpose,
    /// By the key's id and the salt. There are as many as a store was opened since it was rewritten.
    derived: HashMap<Vec<u8>, LessSafeKey>,
}

impl<'a> Opener<'a> {
    pub(crate) fn new(keys: &'a Keys, purpose: Purpose) -> Self {
        Self { keys, purpose, derived: HashMap::new() }
    }

    /// What was sealed for `place`.
    pub(crate) fn open(&mut self, place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, SealError> {
        let (head, body) = sealed.split_at_checked(HEAD_BYTES).ok_or(SealError::Changed)?;
        let id = key_of(sealed)?;
        let derived = head.get(DERIVED).ok_or(SealError::Changed)?;
        let counter = head.get(DERIVED.end..).and_then(|bytes| <[u8; COUNTER_BYTES]>::try_from(bytes).ok());
        let counter = u64::from_be_bytes(counter.ok_or(SealError::Changed)?);
        if !self.derived.contains_key(derived) {
            let secret = self.keys.find(id).ok_or(SealError::NoKey(id))?;
            let salt = derived.get(ID_BYTES..).ok_or(SealError::Changed)?;
            self.derived.insert(derived.to_vec(), derive(secret, salt, self.purpose)?);
        }
        let key = self.derived.get(derived).ok_or(SealError::Changed)?;
        let mut body = body.to_vec();
        let aad = Aad::from([head, place].concat());
        let opened = key.open_in_place(nonce(counter), aad, &mut body).map_err(|_| SealError::Changed)?.len();
        body.truncate(opened);
        Ok(body)
    }
}

/// The key that bytes were sealed with.
pub(crate) fn key_of(sealed: &[u8]) -> Result<KeyId, SealError> {
    if sealed.first() != Some(&VERSION) {
        return Err(SealError::Changed);
    }
    let id = sealed.get(1..=ID_BYTES).and_then(|id| id.try_into().ok());
    id.map(KeyId).ok_or(SealError::Changed)
}

/// Which derived key bytes were sealed with: the same for all that one [`Sealer`] sealed.
pub(crate) fn origin(sealed: &[u8]) -> Option<&[u8]> {
    sealed.get(DERIVED)
}

fn derive(secret: &SecretKey, salt: &[u8], purpose: Purpose) -> Result<LessSafeKey, SealError> {
    let extracted = Salt::new(HKDF_SHA256, salt).extract(&secret.bytes);
    let info = [purpose.text()];
    let expanded = extracted.expand(&info, &AES_256_GCM).map_err(|_| SealError::Refused)?;
    Ok(LessSafeKey::new(UnboundKey::from(expanded)))
}

fn nonce(counter: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    let start = NONCE_LEN - COUNTER_BYTES;
    if let Some(end) = bytes.get_mut(start..) {
        end.copy_from_slice(&counter.to_be_bytes());
    }
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::test_keys;
    use super::*;
    use std::collections::HashSet;

    fn sealer(keys: &Keys, purpose: Purpose) -> Sealer {
        Sealer::new(keys.first().unwrap(), purpose).unwrap()
    }

    #[test]
    fn what_is_sealed_opens_in_its_place_and_nowhere_else() {
        let keys = test_keys(&[1]);
        let sealed = sealer(&keys, Purpose::Store).seal(b"/core/secrets/a", b"hunter2").unwrap();
        let mut opener = Opener::new(&keys, Purpose::Store);
        assert_eq!(opener.open(b"/core/secrets/a", &sealed).unwrap(), b"hunter2");
        assert!(!sealed.windows(7).any(|part| part == b"hunter2"));
        assert_eq!(opener.open(b"/core/secrets/b", &sealed), Err(SealError::Changed));
        let mut other = Opener::new(&keys, Purpose::Backup);
        assert_eq!(other.open(b"/core/secrets/a", &sealed), Err(SealError::Changed));
        for at in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[at] ^= 1;
            assert!(opener.open(b"/core/secrets/a", &bad).is_err(), "byte {at}");
            assert!(opener.open(b"/core/secrets/a", &sealed[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_wrong_key_says_which_would_be_right() {
        let sealed = sealer(&test_keys(&[1]), Purpose::Store).seal(b"", b"x").unwrap();
        let id = test_keys(&[1]).first().unwrap().id();
        let wrong = test_keys(&[2, 3]);
        assert_eq!(Opener::new(&wrong, Purpose::Store).open(b"", &sealed), Err(SealError::NoKey(id)));
        let rotated = test_keys(&[2, 1]);
        assert_eq!(Opener::new(&rotated, Purpose::Store).open(b"", &sealed).unwrap(), b"x");
    }

    #[test]
    fn no_nonce_is_used_twice_under_one_key() {
        let keys = test_keys(&[1]);
        let mut seen = HashSet::new();
        for _ in 0..4 {
            let mut sealer = sealer(&keys, Purpose::Store);
            for _ in 0..500 {
                let sealed = sealer.seal(b"same", b"same").unwrap();
                assert!(seen.insert(sealed[..HEAD_BYTES].to_vec()));
            }
        }
        let mut last = sealer(&keys, Purpose::Store);
        last.counter = u64::MAX;
        assert_eq!(last.seal(b"", b""), Err(SealError::Refused), "it ends before it repeats");
    }
}
