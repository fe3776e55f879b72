//! Reads an object without `spec` as one with an empty `spec`.
//!
//! The published schemas let it be absent, and a ServiceExport hardly ever has one. kube's derive demands the field
//! and takes no serde attribute for it; but serde asks the type of a missing field whether `None` will do.

/// Implements serde's traits for a spec that has `#[serde(remote = "Self")]`, so that its derived functions are
/// inherent and these can call them.
macro_rules! spec_may_be_absent {
    ($spec:ident) => {
        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $spec::serialize(self, serializer)
            }
        }

        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Absent;
                impl<'de> serde::de::Visitor<'de> for Absent {
                    type Value = $spec;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(stringify!($spec))
                    }
                    fn visit_none<E>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }
                    fn visit_unit<E>(self) -> Result<$spec, E> {
                        Ok($spec::default())
                    }
                    fn visit_some<D: serde::Deserializer<'de>>(self, d: D) -> Result<$spec, D::Error> {
                        $spec::deserialize(d)
                    }
                }
                deserializer.deserialize_option(Absent)
            }
        }
    };
}

pub(super) use spec_may_be_absent;
