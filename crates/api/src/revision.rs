//! May an installed CRD be replaced by ours? Only if it is older; labels decide, as the MCS API prescribes.
//!
//! ```text
//!   installed labels ─┐
//!   our labels ───────┴─▶ judge ─▶ Replace(why) | Keep(why)
//! ```
//!
//! Pure: the caller reads the CRD, and writes it if told to.

mod release;

use std::collections::BTreeMap;

pub use release::Release;

use crate::names::label;

/// Labels of an object, as Kubernetes has them.
pub type Labels = BTreeMap<String, String>;

/// What we would install, and the two labels that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The key of the label that holds the release.
    pub release_label: &'static str,
    /// The key of the label that holds the revision.
    pub revision_label: &'static str,
    /// Compared first.
    pub release: Release,
    /// Of the schema, counted from 0 anew in every release; compared where the releases are the same.
    pub revision: u32,
}

/// Of the MCS API's CRDs: the release whose schema ours are, in the labels that every implementation reads.
pub const MCS: Revision = Revision {
    release_label: label::MCS_RELEASE,
    revision_label: label::MCS_REVISION,
    release: Release::new(0, 5, 2),
    revision: 0,
};

/// Of the other CRDs that we install. A changed schema needs a higher revision, or members keep the old one.
pub const OWN: Revision = Revision {
    release_label: label::RELEASE,
    revision_label: label::REVISION,
    release: Release::new(0, 1, 0),
    revision: 0,
};

/// What becomes of an installed CRD, and the fact that decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write ours over it.
    Replace(Older),
    /// Leave it as it is.
    Keep(Kept),
}

/// Why an installed CRD is replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Older {
    /// It does not say which release it is of.
    Unlabelled,
    /// It is of an older release.
    Release(Release),
    /// It is of our release, and says no revision.
    NoRevision,
    /// It is of our release, with an older schema.
    Revision(u32),
}

/// Why an installed CRD stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It is the same as ours.
    Same,
    /// It is of a newer release: a newer program than ours installed it.
    NewerRelease(Release),
    /// It is of our release, with a newer schema.
    NewerRevision(u32),
    /// A label is not what it should be, so older or newer can't be told, and a downgrade is the worse mistake.
    Unreadable {
        /// The label's key.
        label: &'static str,
        /// The label's value.
        value: String,
    },
    /// Objects are stored in a version that ours does not have. The API server would refuse ours.
    StoresUnknownVersion(String),
}

/// Judges an installed CRD by its labels and by `status.storedVersions`.
///
/// `our_versions` are the versions that our CRD has; an installed one that stores any other is newer than ours,
/// whatever its labels say.
pub fn judge(
    ours: &Revision,
    our_versions: &[&str],
    installed: &Labels,
    stored_versions: &[String],
) -> Verdict {
    if let Some(unknown) = stored_versions.iter().find(|v| !our_versions.contains(&v.as_str())) {
        return Verdict::Keep(Kept::StoresUnknownVersion(unknown.clone()));
    }
    let Some(text) = installed.get(ours.release_label) else { return Verdict::Replace(Older::Unlabelled) };
    let Some(release) = Release::parse(text) else { return unreadable(ours.release_label, text) };
    if release < ours.release {
        return Verdict::Replace(Older::Release(release));
    }
    if release > ours.release {
        return Verdict::Keep(Kept::NewerRelease(release));
    }
    let Some(text) = installed.get(ours.revision_label) else { return Verdict::Replace(Older::NoRevision) };
    match text.parse::<u32>() {
        Err(_) => unreadable(ours.revision_label, text),
        Ok(revision) if revision < ours.revision => Verdict::Replace(Older::Revision(revision)),
        Ok(revision) if revision > ours.revision => Verdict::Keep(Kept::NewerRevision(revision)),
        Ok(_) => Verdict::Keep(Kept::Same),
    }
}

fn unreadable(label: &'static str, value: &str) -> Verdict {
    Verdict::Keep(Kept::Unreadable { label, value: value.to_owned() })
}

impl Revision {
    /// The labels that say it.
    ///
    /// ```
    /// let labels = atoll_api::revision::MCS.labels();
    /// assert_eq!(labels["multicluster.x-k8s.io/release-version"], "v0.5.2");
    /// assert_eq!(labels["multicluster.x-k8s.io/crd-schema-revision"], "0");
    /// ```
    pub fn labels(&self) -> Labels {
        Labels::from([
            (self.release_label.to_owned(), self.release.to_string()),
            (self.revision_label.to_owned(), self.revision.to_string()),
        ])
    }
}
