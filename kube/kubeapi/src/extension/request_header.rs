//! Who is believed, and what their headers say: authentication by a front proxy, as the `ConfigMap`
//! `extension-apiserver-authentication` describes it. Pure.

use crate::access::authn::User;
use http::HeaderMap;
use percent_encoding::percent_decode_str;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::collections::BTreeMap;

/// Most certificates of an authority that are read.
const MOST_ROOTS: usize = 100;

/// Whom to believe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The authority of their certificates, in PEM.
    ca: String,
    /// The common names that their certificates may have; any, if there are none.
    names: Vec<String>,
    user: Vec<String>,
    uid: Vec<String>,
    groups: Vec<String>,
    /// What headers begin with that say more of the user.
    extra: Vec<String>,
}

/// No client can be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadTrust(pub(super) String);

impl Trust {
    /// What the `data` of `kube-system/extension-apiserver-authentication` says. None, if the API server has no front proxy.
    ///
    /// # Errors
    /// It can't be read.
    pub fn read(data: &BTreeMap<String, String>) -> Result<Option<Self>, BadTrust> {
        let Some(ca) = data.get("requestheader-client-ca-file").filter(|ca| !ca.trim().is_empty()) else {
            return Ok(None);
        };
        let list = |key: &str| -> Result<Vec<String>, BadTrust> {
            let Some(text) = data.get(key).filter(|text| !text.is_empty()) else { return Ok(Vec::new()) };
            serde_json::from_str(text)
                .map_err(|error| BadTrust(format!("{key} is no list of strings: {error}")))
        };
        let trust = Self {
            ca: ca.clone(),
            names: list("requestheader-allowed-names")?,
            user: list("requestheader-username-headers")?,
            uid: list("requestheader-uid-headers")?,
            groups: list("requestheader-group-headers")?,
            extra: list("requestheader-extra-headers-prefix")?,
        };
        if trust.user.is_empty() {
            return Err(BadTrust("requestheader-username-headers is empty".to_owned()));
        }
        trust.roots()?;
        Ok(Some(trust))
    }

    /// The authority's certificates.
    pub(super) fn roots(&self) -> Result<Vec<CertificateDer<'static>>, BadTrust> {
        let bad = |why: String| BadTrust(format!("requestheader-client-ca-file: {why}"));
        let roots: Vec<_> = CertificateDer::pem_slice_iter(self.ca.as_bytes())
            .take(MOST_ROOTS)
            .collect::<Result<_, _>>()
            .map_err(|error| bad(error.to_string()))?;
        if roots.is_empty() { Err(bad("no certificate".to_owned())) } else { Ok(roots) }
    }

    /// May a client with a certificate of this name speak for users?
    pub(super) fn allows(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|one| one == name)
    }

    /// The user that a request is for. No group is added: anonymous users come this way, too.
    pub(super) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[String]| {
            let values = names.iter().flat_map(|name| headers.get_all(name.as_str()));
            values.filter_map(|value| value.to_str().ok()).find(|text| !text.is_empty()).map(str::to_owned)
        };
        let mut user = User { name: first(&self.user)?, ..User::default() };
        user.uid = first(&self.uid).unwrap_or_default();
        for name in &self.groups {
            for value in headers.get_all(name.as_str()) {
                // Half of a user is none.
                user.groups.push(value.to_str().ok()?.to_owned());
            }
        }
        for prefix in &self.extra {
            let prefix = prefix.to_ascii_lowercase();
            for (name, value) in headers {
                let Some(key) = name.as_str().strip_prefix(&prefix).filter(|key| !key.is_empty()) else {
                    continue;
                };
                let key = percent_decode_str(key).decode_utf8().ok()?.into_owned();
                user.extra.entry(key).or_default().push(value.to_str().ok()?.to_owned());
            }
        }
        Some(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::pki::Pki;

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let ca = Pki::ephemeral(&[], 0).unwrap().ca;
        let usual = [
            ("requestheader-client-ca-file", ca.as_str()),
            ("requestheader-allowed-names", r#"["front-proxy-client"]"#),
            ("requestheader-username-headers", r#"["X-Remote-User"]"#),
            ("requestheader-uid-headers", r#"["X-Remote-Uid"]"#),
            ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
            ("requestheader-extra-headers-prefix", r#"["X-Remote-Extra-"]"#),
        ];
        usual.iter().chain(pairs).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_cannot_be_read_trusts_nobody() {
        assert_eq!(Trust::read(&BTreeMap::new()), Ok(None));
        assert_eq!(Trust::read(&data(&[("requestheader-client-ca-file", " ")])), Ok(None));
        for (key, value) in [
            ("requestheader-client-ca-file", "hello"),
            ("requestheader-allowed-names", "front-proxy-client"),
            ("requestheader-username-headers", "[]"),
            ("requestheader-group-headers", "[1]"),
        ] {
            assert!(Trust::read(&data(&[(key, value)])).is_err(), "{key}: {value}");
        }
    }

    #[test]
    fn headers_say_who_the_user_is() {
        let trust = Trust::read(&data(&[])).unwrap().unwrap();
        assert!(trust.allows("front-proxy-client") && !trust.allows("admin") && !trust.allows(""));
        let mut headers = HeaderMap::new();
        assert_eq!(trust.user(&headers), None);
        headers.insert("x-remote-user", "".parse().unwrap());
        assert_eq!(trust.user(&headers), None);
        headers.insert("x-remote-user", "joe".parse().unwrap());
        headers.append("x-remote-group", "a".parse().unwrap());
        headers.append("x-remote-group", "b".parse().unwrap());
        headers.append("x-remote-uid", "7".parse().unwrap());
        headers.append("x-remote-extra-example.com%2fscope", "one".parse().unwrap());
        let user = trust.user(&headers).unwrap();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("joe", "7"));
        assert_eq!(user.groups, ["a", "b"], "none is added");
        assert_eq!(user.extra["example.com/scope"], ["one"]);
        headers.append("x-remote-group", http::HeaderValue::from_bytes(b"\xff").unwrap());
        assert_eq!(trust.user(&headers), None, "half of a user is none");
    }
}
