//! `Impersonate-*`: as whom a request wants to be served. Read strictly: what can't be understood is refused, since a request
//! that is served as its caller instead may do what the caller meant to give up.
//!
//! ```text
//!   Impersonate-User: jane               once, not empty; nothing below without it
//!   Impersonate-Uid: 06f6…               once
//!   Impersonate-Group: dev               any number
//!   Impersonate-Extra-example.com%2Fa: b any number, the key percent-encoded
//! ```

use crate::access::authn::{AUTHENTICATED, UNAUTHENTICATED, User};
use atoll_apimachinery::names;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const UID: &str = "impersonate-uid";
const GROUP: &str = "impersonate-group";
const EXTRA: &str = "impersonate-extra-";

/// Most groups and values: the right to each is looked for in all roles of the caller.
const MOST_VALUES: usize = 200;
/// Most bytes of one value, and of all headers together.
const MOST_BYTES: usize = 8 << 10;
const MOST_BYTES_OF_ALL: usize = 64 << 10;

/// As whom a request wants to be served.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Impersonation {
    user: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// One thing that the caller must have the verb `impersonate` for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Right<'a> {
    pub(super) group: &'static str,
    pub(super) resource: &'static str,
    pub(super) subresource: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

/// Why the headers say nothing that can be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ImpersonationError {
    #[error("the value of the header {0} is not UTF-8")]
    NotText(String),
    #[error("the header {0} is there more than once")]
    Doubled(String),
    #[error("the header {0} is empty")]
    Empty(String),
    #[error("the header {0} is too long")]
    TooLong(String),
    #[error(
        "there are more than {MOST_VALUES} impersonation headers, or more than {MOST_BYTES_OF_ALL} bytes of them"
    )]
    TooMany,
    #[error("there is no impersonation header {0}")]
    Unknown(String),
    #[error("requested impersonation without impersonating a user: the header Impersonate-User is missing")]
    WithoutUser,
}

impl Impersonation {
    /// What the headers ask for; none if they ask for nothing.
    pub(super) fn read(headers: &HeaderMap) -> Result<Option<Self>, ImpersonationError> {
        let mut asked = Self::default();
        let (mut count, mut bytes) = (0, 0);
        for (name, value) in headers.iter().filter(|(name, _)| name.as_str().starts_with(PREFIX)) {
            count += 1;
            bytes += name.as_str().len() + value.len();
            if count > MOST_VALUES || bytes > MOST_BYTES_OF_ALL {
                return Err(ImpersonationError::TooMany);
            }
            asked.take(name, text(name, value)?)?;
        }
        match (count, asked.user.is_empty()) {
            (0, _) => Ok(None),
            (_, true) => Err(ImpersonationError::WithoutUser),
            (_, false) => Ok(Some(asked)),
        }
    }

    fn take(&mut self, name: &HeaderName, value: String) -> Result<(), ImpersonationError> {
        let once = |slot: &mut String, value: String| {
            if !slot.is_empty() {
                return Err(ImpersonationError::Doubled(name.to_string()));
            }
            *slot = value;
            Ok(())
        };
        match name.as_str() {
            USER => once(&mut self.user, value),
            UID => once(&mut self.uid, value),
            GROUP => {
                self.groups.push(value);
                Ok(())
            }
            other => match other.strip_prefix(EXTRA) {
                Some("") => Err(ImpersonationError::Empty(name.to_string())),
                Some(key) => {
                    let key = decoded(key).ok_or_else(|| ImpersonationError::NotText(name.to_string()))?;
                    self.extra.entry(key).or_default().push(value);
                    Ok(())
                }
                None => Err(ImpersonationError::Unknown(name.to_string())),
            },
        }
    }

    /// What the caller must be allowed to impersonate: all of it.
    pub(super) fn rights(&self) -> impl Iterator<Item = Right<'_>> {
        let core =
            |resource, namespace, name| Right { group: "", resource, subresource: "", namespace, name };
        let who = match account(&self.user) {
            Some((namespace, name)) => core("serviceaccounts", namespace, name),
            None => core("users", "", self.user.as_str()),
        };
        let groups = self.groups.iter().map(move |group| core("groups", "", group));
        let of_user = |resource, subresource, name| Right {
            group: "authentication.k8s.io",
            resource,
            subresource,
            namespace: "",
            name,
        };
        let extra = self.extra.iter().flat_map(move |(key, values)| {
            values.iter().map(move |value| of_user("userextras", key.as_str(), value.as_str()))
        });
        let uid = (!self.uid.is_empty()).then(|| of_user("uids", "", self.uid.as_str()));
        std::iter::once(who).chain(groups).chain(extra).chain(uid)
    }

    /// The user that the request is served as.
    pub(super) fn into_user(self) -> User {
        let mut groups = self.groups;
        if let (true, Some((namespace, name))) = (groups.is_empty(), account(&self.user)) {
            groups = User::service_account(namespace, name, "").groups;
        }
        let has = |group: &str| groups.iter().any(|one| one == group);
        if self.user == User::anonymous().name {
            if !has(UNAUTHENTICATED) {
                groups.push(UNAUTHENTICATED.to_owned());
            }
        } else if !has(AUTHENTICATED) && !has(UNAUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        User { name: self.user, uid: self.uid, groups, extra: self.extra }
    }
}

/// Namespace and name of the service account that this user is, if it is one.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix("system:serviceaccount:")?.split_once(':')?;
    let valid = names::dns1123_label(namespace).is_empty() && names::dns1123_subdomain(name).is_empty();
    valid.then_some((namespace, name))
}

fn text(name: &HeaderName, value: &HeaderValue) -> Result<String, ImpersonationError> {
    let name = || name.to_string();
    match std::str::from_utf8(value.as_bytes()) {
        Err(_) => Err(ImpersonationError::NotText(name())),
        Ok("") => Err(ImpersonationError::Empty(name())),
        Ok(text) if text.len() > MOST_BYTES => Err(ImpersonationError::TooLong(name())),
        Ok(text) => Ok(text.to_owned()),
    }
}

/// A key with its escapes replaced; one whose escapes are wrong stays as it is. None if it is no text.
fn decoded(key: &str) -> Option<String> {
    let escape =
        |rest: &str| rest.get(..2).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    if !key.split('%').skip(1).all(escape) {
        return Some(key.to_owned());
    }
    percent_decode_str(key).decode_utf8().ok().map(std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &[u8])]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_header_that_is_unreadable_doubled_empty_or_without_its_user_is_an_error_and_not_nothing() {
        use ImpersonationError as E;
        let doubled = |name: &str| E::Doubled(name.to_owned());
        for (pairs, want) in [
            (vec![("Impersonate-User", &b"jan\xff"[..])], E::NotText(USER.to_owned())),
            (vec![("Impersonate-User", b"")], E::Empty(USER.to_owned())),
            (vec![("Impersonate-User", b"jane"), ("Impersonate-User", b"joe")], doubled(USER)),
            (vec![("Impersonate-User", b"jane"), ("Impersonate-User", b"jane")], doubled(USER)),
            (
                vec![("Impersonate-User", b"a"), ("Impersonate-Uid", b"1"), ("Impersonate-Uid", b"2")],
                doubled(UID),
            ),
            (
                vec![("Impersonate-User", b"a"), ("Impersonate-Group", b"\xc3\x28")],
                E::NotText(GROUP.to_owned()),
            ),
            (vec![("Impersonate-User", b"a"), ("Impersonate-Group", b"")], E::Empty(GROUP.to_owned())),
            (vec![("Impersonate-Group", b"system:masters")], E::WithoutUser),
            (vec![("Impersonate-Uid", b"1")], E::WithoutUser),
            (vec![("Impersonate-Extra-Scopes", b"view")], E::WithoutUser),
            (vec![("Impersonate-User", b"a"), ("Impersonate-Extra-", b"x")], E::Empty(EXTRA.to_owned())),
            (
                vec![("Impersonate-User", b"a"), ("Impersonate-Extra-%ff", b"x")],
                E::NotText(format!("{EXTRA}%ff")),
            ),
            (vec![("Impersonate-Usr", b"jane")], E::Unknown("impersonate-usr".to_owned())),
        ] {
            assert_eq!(Impersonation::read(&headers(&pairs)), Err(want), "{pairs:?}");
        }
        let many = vec![("Impersonate-Group", &b"g"[..]); MOST_VALUES + 1];
        assert_eq!(Impersonation::read(&headers(&many)), Err(E::TooMany));
        let long = "x".repeat(MOST_BYTES + 1);
        let long = headers(&[("Impersonate-User", long.as_bytes())]);
        assert_eq!(Impersonation::read(&long), Err(E::TooLong(USER.to_owned())));
        assert_eq!(Impersonation::read(&headers(&[("Accept", b"x")])), Ok(None));
    }

    #[test]
    fn everything_that_is_asked_for_needs_a_right_and_arrives() {
        let asked = headers(&[
            ("Impersonate-User", "jané".as_bytes()),
            ("Impersonate-Uid", b"u-1"),
            ("Impersonate-Group", b"dev"),
            ("Impersonate-Extra-example.com%2FScopes", b"view"),
            ("Impersonate-Extra-50%", b"x"),
        ]);
        let asked = Impersonation::read(&asked).unwrap().unwrap();
        let rights: Vec<_> = asked.rights().map(|r| (r.group, r.resource, r.subresource, r.name)).collect();
        let own = "authentication.k8s.io";
        assert_eq!(
            rights,
            [
                ("", "users", "", "jané"),
                ("", "groups", "", "dev"),
                (own, "userextras", "50%", "x"),
                (own, "userextras", "example.com/scopes", "view"),
                (own, "uids", "", "u-1"),
            ]
        );
        let user = asked.into_user();
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jané", "u-1"));
        assert_eq!(user.groups, ["dev", AUTHENTICATED]);
        assert_eq!(user.extra["example.com/scopes"], ["view"]);
    }

    #[test]
    fn an_account_has_the_groups_of_accounts_and_the_anonymous_user_its_own() {
        for (user, groups, resource, want) in [
            (
                "system:serviceaccount:shop:web",
                vec![],
                "serviceaccounts",
                vec!["system:serviceaccounts", "system:serviceaccounts:shop", AUTHENTICATED],
            ),
            ("system:serviceaccount:shop:web", vec!["dev"], "serviceaccounts", vec!["dev", AUTHENTICATED]),
            // Not the name of an account: the right to accounts in a namespace is none to this.
            ("system:serviceaccount:shop:web:x", vec![], "users", vec![AUTHENTICATED]),
            ("system:serviceaccount::web", vec![], "users", vec![AUTHENTICATED]),
            ("system:anonymous", vec!["dev"], "users", vec!["dev", UNAUTHENTICATED]),
            ("jane", vec![UNAUTHENTICATED], "users", vec![UNAUTHENTICATED]),
        ] {
            let groups = groups.into_iter().map(str::to_owned).collect();
            let asked = Impersonation { user: user.to_owned(), groups, ..Impersonation::default() };
            assert_eq!(asked.rights().next().unwrap().resource, resource, "{user}");
            assert_eq!(asked.into_user().groups, want, "{user}");
        }
    }
}
