//! The kept keys as files that only their owner can read.

use super::{PkiError, StoredKeys};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use webpki::EndEntityCert;

/// Names of the kept files, in the order that they are written in: when the last is there, all are.
pub(crate) const NAMES: [&str; 4] = ["ca.key", "tokens.key", "admin.token", "ca.crt"];

pub(super) struct Files {
    dir: PathBuf,
}

impl Files {
    pub(super) fn open(data_dir: &Path) -> Result<Self, PkiError> {
        let dir = data_dir.join("pki");
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(|source| file(&dir, source))?;
        Ok(Self { dir })
    }

    /// None before the first start has ended. A part that is missing later is an error: a new authority would lock
    /// out all clients that trust the old one.
    pub(super) fn read(&self) -> Result<Option<StoredKeys>, PkiError> {
        let [ca_key, token_key, admin_token, ca] = NAMES;
        let Some(ca) = self.optional(ca)? else { return Ok(None) };
        let kept = StoredKeys {
            ca,
            ca_key: self.required(ca_key)?,
            token_key: self.required(token_key)?,
            admin_token: self.required(admin_token)?.trim().to_owned(),
        };
        self.check(&kept)?;
        Ok(Some(kept))
    }

    pub(super) fn write(&self, kept: &StoredKeys) -> Result<(), PkiError> {
        let texts = [&kept.ca_key, &kept.token_key, &kept.admin_token, &kept.ca];
        for (name, text) in NAMES.into_iter().zip(texts) {
            write_private(&self.dir.join(name), text)?;
        }
        Ok(())
    }

    fn optional(&self, name: &str) -> Result<Option<String>, PkiError> {
        let path = self.dir.join(name);
        match fs::read_to_string(&path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(PkiError::File { path, source }),
        }
    }

    /// A key, which no other user may be able to read.
    fn required(&self, name: &str) -> Result<String, PkiError> {
        let path = self.dir.join(name);
        let found = fs::metadata(&path).map_err(|source| file(&path, source))?;
        let mode = found.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(PkiError::Exposed { path, mode });
        }
        fs::read_to_string(&path).map_err(|source| PkiError::File { path, source })
    }

    /// Certificate and key have to belong together, or no client would believe the server.
    fn check(&self, kept: &StoredKeys) -> Result<(), PkiError> {
        let [ca_key, token_key, admin_token, ca] = NAMES;
        let unusable =
            |name: &str, why: &str| PkiError::Unusable { path: self.dir.join(name), why: why.into() };
        let certificate = CertificateDer::from_pem_slice(kept.ca.as_bytes())
            .map_err(|_| unusable(ca, "it has no certificate"))?;
        let key = rcgen::KeyPair::from_pem(&kept.ca_key).map_err(|_| unusable(ca_key, "it has no key"))?;
        let public = rcgen::PublicKeyData::subject_public_key_info(&key);
        let certified = EndEntityCert::try_from(&certificate)
            .map_err(|_| unusable(ca, "it can't be read"))?
            .subject_public_key_info();
        if certified.as_ref() != public {
            return Err(unusable(ca_key, "it isn't the key of ca.crt"));
        }
        let keys = PrivateKeyDer::pem_slice_iter(kept.token_key.as_bytes()).collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(|_| unusable(token_key, "it has what is no key"))?;
        if keys.is_empty() || keys.iter().any(|key| rcgen::KeyPair::try_from(key).is_err()) {
            return Err(unusable(token_key, "it has no key, or one that can't be used"));
        }
        let tokens: Vec<&str> = kept.admin_token.split_whitespace().collect();
        if tokens.is_empty() || tokens.iter().any(|token| token.len() < 32) {
            return Err(unusable(admin_token, "it is too short for a token"));
        }
        Ok(())
    }
}

/// Writes a file that only the owner can read, whole or not at all.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<(), PkiError> {
    let write = || {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        let new = PathBuf::from(new);
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        // One that was left by a crash may have had other permissions.
        file.set_permissions(Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
            _ => Ok(()),
        }
    };
    write().map_err(|source| file(path, source))
}

fn file(path: &Path, source: io::Error) -> PkiError {
    PkiError::File { path: path.to_owned(), source }
}
