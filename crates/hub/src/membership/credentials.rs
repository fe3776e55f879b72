//! What a member's Secret holds, and which `Cluster` may use it for which way in. Pure.
//!
//! The Secret is the authority: `join` writes into it what its token is for. A `Cluster` that says something else gets nothing, and
//! nothing is sent anywhere: who may write a `Cluster` may not thereby read a token.

use atoll_api::names::{label, secret};
use atoll_engine::names::ClusterId;
use atoll_engine::network::Networks;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use crate::membership::annotations;
use crate::membership::roster::{NoLink, Wanted};

/// How a member is reached, and which cluster it is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// The Secret that the token is from.
    pub(crate) secret: String,
    /// The uid of its kube-system, if its Secret or its `Cluster` says so.
    pub(crate) uid: Option<String>,
    pub(crate) endpoint: String,
    pub(crate) proxy: Option<String>,
    /// The name that the server's certificate must have, if not that of the endpoint.
    pub(crate) server_name: Option<String>,
    pub(crate) trust: Trust,
    pub(crate) token: String,
    pub(crate) life: Option<Life>,
}

/// What the certificate of a member's API is checked against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trust {
    /// These certificates, in PEM.
    Ca(Vec<u8>),
    /// The root certificates of this host.
    SystemRoots,
    /// Nothing.
    Nothing,
}

/// From when to when a token counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
    /// For how many seconds it was asked.
    pub(crate) asked: i64,
}

impl Link {
    /// Whether both lead to the same cluster in the same way, whatever the token.
    pub(crate) fn same_way(&self, other: &Self) -> bool {
        let way = |link: &Self| Self { token: String::new(), life: None, ..link.clone() };
        way(self) == way(other)
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link")
            .field("uid", &self.uid)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

/// What the Secret of a member holds.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) token: String,
    pub(crate) ca: Vec<u8>,
    pub(crate) made: Made,
    pub(crate) life: Option<Life>,
    /// Where the member is, or what is wrong with that; none if it has not been said here yet.
    pub(crate) networks: Option<Result<Networks, String>>,
}

/// What a Secret was made for.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Made {
    /// This, by its own record.
    For(Binding),
    /// A `Cluster` of this name, by a `join` that kept no record.
    Earlier(String),
    /// It is not known.
    Unknown,
}

/// The record that `join` writes.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) cluster: String,
    pub(crate) uid: Option<String>,
    pub(crate) endpoint: String,
    pub(crate) proxy: Option<String>,
    pub(crate) server_name: Option<String>,
    pub(crate) trust: Trust,
}

impl Credentials {
    /// Whether they were made for this `Cluster`.
    pub(crate) fn are_of(&self, id: &ClusterId) -> bool {
        match &self.made {
            Made::For(Binding { cluster, .. }) | Made::Earlier(cluster) => cluster == id.as_str(),
            Made::Unknown => false,
        }
    }

    /// The uid that was pinned when `id` joined with these.
    pub(crate) fn pinned(&self, id: &ClusterId) -> Option<&str> {
        match &self.made {
            Made::For(binding) if binding.cluster == id.as_str() => binding.uid.as_deref(),
            Made::For(_) | Made::Earlier(_) | Made::Unknown => None,
        }
    }
}

/// The way in that a `Cluster` asks for, if these credentials, the Secret `name`, were made for it. `insecure`: the hub's operator
/// allows APIs whose certificate is not checked.
pub(crate) fn link(
    id: &ClusterId,
    wanted: &Wanted,
    name: &str,
    credentials: &Credentials,
    insecure: bool,
) -> Result<Link, NoLink> {
    let endpoint = url(wanted.endpoint.as_deref().ok_or(NoLink::NoEndpoint)?);
    if !endpoint.starts_with("https://") {
        return Err(NoLink::PlainHttp(endpoint));
    }
    let binding = match &credentials.made {
        Made::For(binding) if binding.cluster == id.as_str() => binding.clone(),
        // Without a record, only the pinned certificates keep the token from strangers.
        Made::Earlier(cluster) if cluster == id.as_str() && !credentials.ca.is_empty() => Binding {
            cluster: cluster.clone(),
            uid: wanted.uid.clone(),
            endpoint: endpoint.clone(),
            proxy: wanted.proxy.clone(),
            server_name: None,
            trust: Trust::Ca(credentials.ca.clone()),
        },
        Made::For(Binding { cluster, .. }) | Made::Earlier(cluster) if cluster != id.as_str() => {
            return Err(NoLink::NotItsOwn { secret: name.to_owned(), of: Some(cluster.clone()) });
        }
        Made::For(_) | Made::Earlier(_) | Made::Unknown => {
            return Err(NoLink::NotItsOwn { secret: name.to_owned(), of: None });
        }
    };
    let differs = |field, said: &str, bound: &str| {
        Err(NoLink::OtherWay { field, said: said.to_owned(), bound: bound.to_owned() })
    };
    let bound = url(&binding.endpoint);
    if endpoint != bound {
        return differs("spec.apiEndpoint", &endpoint, &bound);
    }
    if wanted.proxy != binding.proxy {
        let none = String::new;
        let (said, bound) = (wanted.proxy.clone().unwrap_or_else(none), binding.proxy.unwrap_or_else(none));
        return differs("spec.proxyURL", &said, &bound);
    }
    if let (Some(said), Some(bound)) = (&wanted.uid, &binding.uid)
        && said != bound
    {
        return differs("spec.id", said, bound);
    }
    let unchecked = binding.trust == Trust::Nothing;
    if wanted.insecure != unchecked {
        return differs(
            "spec.insecureSkipTLSVerification",
            &wanted.insecure.to_string(),
            &unchecked.to_string(),
        );
    }
    if unchecked && !insecure {
        return Err(NoLink::Insecure);
    }
    if binding.trust == Trust::Ca(Vec::new()) {
        return Err(NoLink::NotItsOwn { secret: name.to_owned(), of: None });
    }
    Ok(Link {
        secret: name.to_owned(),
        uid: binding.uid.or_else(|| wanted.uid.clone()),
        endpoint,
        proxy: binding.proxy,
        server_name: binding.server_name,
        trust: binding.trust,
        token: credentials.token.clone(),
        life: credentials.life,
    })
}

/// An address as a URL, so that two ways of writing it are one.
pub(crate) fn url(endpoint: &str) -> String {
    let url = endpoint.trim().trim_end_matches('/');
    if url.contains("://") { url.to_owned() } else { format!("https://{url}") }
}

/// The credentials in a Secret, if it holds a token.
pub(crate) fn read(object: &Secret) -> Option<Credentials> {
    let text = |key: &str| {
        let bytes = object.data.as_ref()?.get(key)?;
        let text = std::str::from_utf8(&bytes.0).ok()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let token = text(secret::TOKEN)?;
    let ca = object.data.as_ref()?.get(secret::CA_BUNDLE).map(|ca| ca.0.clone()).unwrap_or_default();
    let made = match text(secret::CLUSTER) {
        Some(cluster) => {
            let trust = match text(secret::SERVER_TRUST).as_deref() {
                Some(secret::trust::SYSTEM_ROOTS) => Trust::SystemRoots,
                Some(secret::trust::NONE) => Trust::Nothing,
                // What can't be read is read as the strictest.
                Some(_) | None => Trust::Ca(ca.clone()),
            };
            Made::For(Binding {
                cluster,
                uid: text(secret::CLUSTER_UID),
                endpoint: text(secret::API_ENDPOINT).unwrap_or_default(),
                proxy: text(secret::PROXY_URL),
                server_name: text(secret::TLS_SERVER_NAME),
                trust,
            })
        }
        None => object.labels().get(label::CLUSTER).cloned().map_or(Made::Unknown, Made::Earlier),
    };
    let time = |key: &str| text(key)?.parse::<Timestamp>().ok();
    let life = match (time(secret::TOKEN_ISSUED_AT), time(secret::TOKEN_EXPIRES_AT)) {
        (Some(issued), Some(expires)) => {
            let lasts = expires.as_second().saturating_sub(issued.as_second());
            let asked = text(secret::TOKEN_LIFETIME).and_then(|seconds| seconds.parse().ok());
            Some(Life { issued, expires, asked: asked.unwrap_or(lasts) })
        }
        (Some(_) | None, _) => None,
    };
    let endpoint = text(secret::API_ENDPOINT);
    let networks = annotations::bound(object, endpoint.as_deref());
    let networks = networks.map(|networks| networks.map_err(|error| error.to_string()));
    Some(Credentials { token, ca, made, life, networks })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use atoll_engine::network::Networks;
    use serde_json::json;

    fn id(name: &str) -> ClusterId {
        ClusterId::parse(name).unwrap()
    }

    /// What `join` has made for `cluster` at `endpoint`.
    pub(crate) fn credentials(cluster: &str, endpoint: &str, uid: Option<&str>) -> Credentials {
        let ca = b"ca".to_vec();
        let made = Made::For(Binding {
            cluster: cluster.to_owned(),
            uid: uid.map(str::to_owned),
            endpoint: endpoint.to_owned(),
            proxy: None,
            server_name: None,
            trust: Trust::Ca(ca.clone()),
        });
        Credentials { token: "t".to_owned(), ca, made, life: None, networks: Some(Ok(Networks::default())) }
    }

    pub(crate) fn wanted() -> Wanted {
        Wanted {
            uid: Some("u1".to_owned()),
            endpoint: Some("https://paris:6443".to_owned()),
            insecure: false,
            proxy: None,
            secret: Ok("paris".to_owned()),
            networks: Networks::default(),
            deleted: false,
            finalizer: true,
            cleaned: false,
            created: 0,
        }
    }

    fn paris() -> Credentials {
        credentials("paris", "https://paris:6443", Some("u1"))
    }

    #[test]
    fn another_members_secret_opens_nothing_whoever_names_it() {
        assert!(link(&id("paris"), &wanted(), "paris", &paris(), false).is_ok());
        let stolen = link(&id("evil"), &wanted(), "paris", &paris(), false).unwrap_err();
        let of = Some("paris".to_owned());
        assert_eq!(stolen, NoLink::NotItsOwn { secret: "paris".to_owned(), of });
        let unmarked = Credentials { made: Made::Unknown, ..paris() };
        assert!(matches!(
            link(&id("paris"), &wanted(), "paris", &unmarked, true),
            Err(NoLink::NotItsOwn { of: None, .. })
        ));
    }

    #[test]
    fn a_token_goes_only_where_its_secret_says() {
        type Change = fn(&mut Wanted);
        let attacks: [(&str, Change); 6] = [
            ("another host", |w| w.endpoint = Some("https://evil:6443".to_owned())),
            ("another port", |w| w.endpoint = Some("https://paris:6444".to_owned())),
            ("a user before the host", |w| w.endpoint = Some("https://paris:6443@evil".to_owned())),
            ("a proxy", |w| w.proxy = Some("http://evil:3128".to_owned())),
            ("no check of the certificate", |w| w.insecure = true),
            ("another identity", |w| w.uid = Some("u2".to_owned())),
        ];
        for (attack, change) in attacks {
            let mut wanted = wanted();
            change(&mut wanted);
            let refused = link(&id("paris"), &wanted, "paris", &paris(), true);
            assert!(matches!(refused, Err(NoLink::OtherWay { .. })), "{attack}: {refused:?}");
        }
        for honest in ["https://paris:6443/", "paris:6443"] {
            let wanted = Wanted { endpoint: Some(honest.to_owned()), ..wanted() };
            assert!(link(&id("paris"), &wanted, "paris", &paris(), false).is_ok(), "{honest}");
        }
    }

    #[test]
    fn plain_http_is_refused_even_if_the_secret_says_it() {
        let credentials = credentials("paris", "http://paris:8080", None);
        let wanted = Wanted { endpoint: Some("http://paris:8080".to_owned()), ..wanted() };
        let refused = link(&id("paris"), &wanted, "paris", &credentials, true);
        assert!(matches!(refused, Err(NoLink::PlainHttp(_))), "{refused:?}");
    }

    #[test]
    fn a_certificate_goes_unchecked_only_if_both_the_join_and_the_hubs_operator_said_so() {
        let mut unchecked = paris();
        if let Made::For(binding) = &mut unchecked.made {
            binding.trust = Trust::Nothing;
        }
        let wanted = Wanted { insecure: true, ..wanted() };
        let id = id("paris");
        assert_eq!(link(&id, &wanted, "paris", &unchecked, false).unwrap_err(), NoLink::Insecure);
        assert_eq!(link(&id, &wanted, "paris", &unchecked, true).unwrap().trust, Trust::Nothing);
    }

    #[test]
    fn a_secret_of_an_earlier_join_counts_for_its_cluster_and_with_its_certificates_only() {
        let earlier =
            |ca: &[u8]| Credentials { made: Made::Earlier("paris".to_owned()), ca: ca.to_vec(), ..paris() };
        let found = link(&id("paris"), &wanted(), "paris", &earlier(b"ca"), false).unwrap();
        assert_eq!(found.trust, Trust::Ca(b"ca".to_vec()));
        for (attack, id, wanted, ca) in [
            ("another Cluster", id("evil"), wanted(), "ca"),
            ("no certificates", id("paris"), wanted(), ""),
            ("no check", id("paris"), Wanted { insecure: true, ..wanted() }, "ca"),
        ] {
            assert!(link(&id, &wanted, "paris", &earlier(ca.as_bytes()), true).is_err(), "{attack}");
        }
    }

    #[test]
    fn a_record_with_no_certificates_does_not_fall_back_to_public_roots() {
        let secret: Secret = serde_json::from_value(json!({ "data": {
            "token": "dA==", "cluster": "cGFyaXM=", "apiEndpoint": "aHR0cHM6Ly9wYXJpczo2NDQz",
            "serverTrust": "QW55dGhpbmc=" } }))
        .unwrap();
        let credentials = read(&secret).unwrap();
        assert!(link(&id("paris"), &wanted(), "paris", &credentials, true).is_err());
    }

    #[test]
    fn no_text_shows_a_token() {
        let link = link(&id("paris"), &wanted(), "paris", &paris(), false).unwrap();
        let secret = Link { token: "swordfish".to_owned(), ..link };
        assert!(!format!("{secret:?}").contains("swordfish"));
    }
}
