//! Where an object is: `/<group or core>/<resource>/<namespace or nothing>/<name>`.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

/// The place of one object. Keys order as the API lists: by resource, namespace, name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of an object; `group` is empty for the core group, `namespace` for what has none.
    ///
    /// ```
    /// let key = atoll_kubeapi::store::Key::new("apps", "deployments", "shop", "web");
    /// assert_eq!(key.as_str(), "/apps/deployments/shop/web");
    /// assert_eq!((key.namespace(), key.name()), ("shop", "web"));
    /// ```
    pub fn new(group: &str, resource: &str, namespace: &str, name: &str) -> Self {
        Self(format!("{}{namespace}/{name}", Self::resource_prefix(group, resource)).into())
    }

    /// What the keys of all objects of a resource start with.
    pub fn resource_prefix(group: &str, resource: &str) -> String {
        let group = if group.is_empty() { "core" } else { group };
        format!("/{group}/{resource}/")
    }

    /// What the keys of all objects of a resource in one namespace start with.
    pub fn namespace_prefix(group: &str, resource: &str, namespace: &str) -> String {
        format!("{}{namespace}/", Self::resource_prefix(group, resource))
    }

    /// A key that was kept as text, such as in a continue token.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The group, `core` for the core group.
    pub fn group(&self) -> &str {
        self.part(1)
    }

    /// The resource, in the plural.
    pub fn resource(&self) -> &str {
        self.part(2)
    }

    /// The namespace, empty for what has none.
    pub fn namespace(&self) -> &str {
        self.part(3)
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        self.part(4)
    }

    fn part(&self, at: usize) -> &str {
        self.0.splitn(5, '/').nth(at).unwrap_or_default()
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}
