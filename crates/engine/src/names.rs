//! Names with a type each. Members are not trusted: what does not parse here never reaches another cluster.

pub mod syntax;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A string that is not what its place demands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind}")]
pub struct BadName {
    /// What was expected.
    pub kind: &'static str,
    /// What came.
    pub text: String,
}

impl BadName {
    /// Says what was expected, with as much of the text as a person needs: whoever sent it may have sent a megabyte.
    pub fn new(kind: &'static str, text: &str) -> Self {
        const LONGEST: usize = 100;
        let short = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default();
        let text = if short.len() < text.len() { format!("{short}…") } else { text.to_owned() };
        Self { kind, text }
    }
}

macro_rules! names {
    ($($(#[$doc:meta])* $type:ident: $kind:literal by $rule:path;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $type(Arc<str>);

        impl $type {
            /// Checks the text and takes it.
            pub fn parse(text: impl AsRef<str> + Into<Arc<str>>) -> Result<Self, BadName> {
                if $rule(text.as_ref()) {
                    Ok(Self(text.into()))
                } else {
                    Err(BadName::new($kind, text.as_ref()))
                }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;
            fn try_from(text: String) -> Result<Self, BadName> {
                Self::parse(text)
            }
        }

        impl TryFrom<&str> for $type {
            type Error = BadName;
            fn try_from(text: &str) -> Result<Self, BadName> {
                Self::parse(text)
            }
        }

        impl Borrow<str> for $type {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    )*};
}

names! {
    /// A member of the clusterset: the name given to `join`.
    ClusterId: "cluster id (a DNS label of at most 48 characters)" by syntax::is_cluster_id;
    /// A namespace; the same name means the same namespace in every cluster.
    Namespace: "namespace" by syntax::is_label;
    /// The name of a Service.
    ServiceName: "service name" by syntax::is_label;
    /// The name of an EndpointSlice.
    SliceName: "slice name" by syntax::is_subdomain;
    /// The name of a port; empty when the port has none.
    PortName: "port name" by syntax::is_port_name;
    /// The application protocol of a port, as its owner wrote it.
    AppProtocol: "application protocol" by syntax::is_qualified_name;
    /// The name of a node.
    NodeName: "node name" by syntax::is_subdomain;
    /// A topology zone.
    Zone: "zone" by syntax::is_label_value;
    /// The hostname of an endpoint.
    Hostname: "hostname" by syntax::is_label;
    /// The uid of an object.
    Uid: "uid" by syntax::is_uid;
}

impl PortName {
    /// Whether the port has no name.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A service of the clusterset: by namespace sameness, one key in all clusters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServiceKey {
    /// Its namespace. First, so that a namespace's services lie together in a map.
    pub namespace: Namespace,
    /// Its name.
    pub name: ServiceName,
}

impl ServiceKey {
    /// Checks both names and joins them.
    ///
    /// ```
    /// # use atoll_engine::names::ServiceKey;
    /// assert_eq!(ServiceKey::parse("shop", "web").unwrap().to_string(), "shop/web");
    /// assert!(ServiceKey::parse("shop", "../secrets").is_err());
    /// ```
    pub fn parse(namespace: &str, name: &str) -> Result<Self, BadName> {
        Ok(Self { namespace: Namespace::parse(namespace)?, name: ServiceName::parse(name)? })
    }

    /// Whether it is the Service of each cluster's own API, which never leaves its cluster.
    pub fn is_kubernetes_api(&self) -> bool {
        atoll_api::names::service::is_kubernetes_api(self.namespace.as_str(), self.name.as_str())
    }

    /// What sorts before every service of a namespace.
    pub fn before_all_of(namespace: &Namespace) -> Self {
        Self { namespace: namespace.clone(), name: ServiceName("".into()) }
    }
}

impl fmt::Display for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
