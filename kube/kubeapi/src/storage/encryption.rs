//! Encryption at rest: which keys there are, and which one encrypts.
//!
//! A key file has one key per line, 32 bytes in base64. The first encrypts, all decrypt; `plain` as the first line means that
//! nothing is encrypted any more. A store that is not as the first line says is rewritten when it is opened: that is how it comes to be
//! encrypted, how keys are rotated, and how it is decrypted for good.
//!
//! ```text
//!   key ──HKDF-SHA256(salt, purpose)──▶ a key for one opening of a store, or for one backup ──AES-256-GCM(counter)──▶ sealed
//! ```
//!
//! The salt is random and new each time, and the counter never goes back: no key ever sees a nonce twice.

mod sealed;

pub(crate) use sealed::{Opener, Purpose, SealError, Sealer, key_of, origin};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const KEY_BYTES: usize = 32;
const ID_BYTES: usize = 8;

/// The keys of a key file; by default none, and nothing is encrypted. Clones are the same keys.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    all: Arc<[SecretKey]>,
    /// The first encrypts.
    encrypts: bool,
}

/// One key.
#[derive(Clone)]
pub(crate) struct SecretKey {
    id: KeyId,
    bytes: [u8; KEY_BYTES],
}

// Keys don't belong into logs.
impl fmt::Debug for SecretKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "key {}", self.id)
    }
}

/// Tells keys apart, and says nothing else of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId([u8; ID_BYTES]);

impl fmt::Display for KeyId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// Why a key file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// It can't be read.
    #[error("cannot read the key file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others can read it.
    #[error("the key file {} can be read by other users (mode {mode:04o}); run `chmod 600` on it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A line is no key.
    #[error("line {line} of the key file {} is not a key: use 32 random bytes in base64, such as from `head -c 32 /dev/urandom | base64`", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
    },
    /// There is no key in it.
    #[error("the key file {} has no key: write one with `head -c 32 /dev/urandom | base64`", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl Keys {
    /// The keys of a file, which no other user may be able to read.
    ///
    /// # Errors
    /// It can't be read, others can read it, or it has something else than keys in it.
    pub fn read(path: &Path) -> Result<Self, KeysError> {
        let unreadable = |source| KeysError::File { path: path.to_owned(), source };
        let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(KeysError::Exposed { path: path.to_owned(), mode });
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&text, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, KeysError> {
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
        let plain = lines.next_if(|(_, line)| *line == "plain").is_some();
        let mut all = Vec::new();
        for (line, text) in lines {
            let key =
                SecretKey::decode(text).ok_or_else(|| KeysError::Line { path: path.to_owned(), line })?;
            all.push(key);
        }
        if all.is_empty() {
            return Err(KeysError::Empty { path: path.to_owned() });
        }
        Ok(Self { all: all.into(), encrypts: !plain })
    }

    /// The key that encrypts, if any does.
    pub(crate) fn first(&self) -> Option<&SecretKey> {
        self.all.first().filter(|_| self.encrypts)
    }

    pub(crate) fn find(&self, id: KeyId) -> Option<&SecretKey> {
        self.all.iter().find(|key| key.id == id)
    }
}

impl SecretKey {
    fn decode(text: &str) -> Option<Self> {
        let bytes: [u8; KEY_BYTES] = STANDARD.decode(text).ok()?.try_into().ok()?;
        let mut named = b"atoll key id\0".to_vec();
        named.extend_from_slice(&bytes);
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(digest(&SHA256, &named).as_ref().get(..ID_BYTES)?);
        Some(Self { id: KeyId(id), bytes })
    }

    pub(crate) fn id(&self) -> KeyId {
        self.id
    }
}

#[cfg(test)]
pub(crate) fn test_keys(texts: &[u8]) -> Keys {
    let lines: Vec<String> = texts.iter().map(|byte| STANDARD.encode([*byte; KEY_BYTES])).collect();
    Keys::parse(&lines.join("\n"), Path::new("test")).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    #[test]
    fn a_key_file_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        fs::write(&path, format!("# the first\n{}\n", STANDARD.encode([7; 32]))).unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o660, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let read = Keys::read(&path);
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Err(error) = read {
                assert!(error.to_string().contains("chmod 600"), "{error}");
            }
        }
    }

    #[test]
    fn a_key_file_has_keys_and_nothing_else() {
        let key = STANDARD.encode([1; 32]);
        let parse = |text: &str| Keys::parse(text, Path::new("keys"));
        assert!(parse(&format!("{key}\n\n# old\n{}", STANDARD.encode([2; 32]))).unwrap().first().is_some());
        assert!(parse(&format!("plain\n{key}\n")).unwrap().first().is_none());
        for (text, line) in [("secret", 1), ("# x\nAAAA", 2)] {
            assert!(
                matches!(parse(text), Err(KeysError::Line { line: found, .. }) if found == line),
                "{text}"
            );
        }
        assert!(matches!(parse(&format!("{key}\nplain")), Err(KeysError::Line { line: 2, .. })));
        for text in ["", "\n#\n", "plain"] {
            assert!(matches!(parse(text), Err(KeysError::Empty { .. })), "{text:?}");
        }
        assert!(!format!("{:?}", parse(&key).unwrap()).contains(&key), "keys don't belong into logs");
    }
}
