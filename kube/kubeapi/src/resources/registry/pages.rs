//! What was made of a registry once: kept for as long as that registry is served.

use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Pages by name. A changed registry, which is a clone, begins with none.
#[derive(Debug, Default)]
pub(crate) struct Pages(Mutex<BTreeMap<String, Page>>);

/// A page, and what tells it from another.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) bytes: Bytes,
    pub(crate) tag: String,
}

impl Clone for Pages {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Pages {
    /// The page of that name, made when it is first asked for.
    pub(crate) fn page(&self, name: &str, make: impl FnOnce() -> Page) -> Page {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = pages.get(name) {
            return known.clone();
        }
        let page = make();
        pages.insert(name.to_owned(), page.clone());
        page
    }
}

/// Tells bytes from others, piece by piece.
pub(crate) struct Fingerprint(u64);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fingerprint {
    /// FNV-1a: it has to differ, not to be secret.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(crate) fn text(&self) -> String {
        format!("{:016X}", self.0)
    }
}
