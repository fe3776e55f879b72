//! Keys, certificates and tokens of one cluster. Made anew at each start: a lab has no long life.

use crate::addresses::{ClusterAddresses, host};
use crate::error::{Error, Result};
use crate::layout::write_private;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use std::path::Path;

/// Who talks to the API server. Each has its own token, so that the recorder can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// The person at the kubeconfig, and the tests.
    Admin,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// The kubelet.
    Kubelet,
    /// kube-proxy.
    Proxy,
    /// CoreDNS.
    Dns,
}

impl Identity {
    /// Everybody.
    pub(crate) const ALL: [Self; 6] =
        [Self::Admin, Self::ControllerManager, Self::Scheduler, Self::Kubelet, Self::Proxy, Self::Dns];

    /// The user name that the API server knows this one by, also in its audit log.
    pub(crate) fn user(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::ControllerManager => "system:kube-controller-manager",
            Self::Scheduler => "system:kube-scheduler",
            Self::Kubelet => "lab:kubelet",
            Self::Proxy => "system:kube-proxy",
            Self::Dns => "lab:coredns",
        }
    }
}

/// The name that an API server shows to extension API servers.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

/// What one cluster's parts trust and show each other.
#[derive(Debug, Clone)]
pub(crate) struct Pki {
    pub(crate) ca: String,
    ca_key: String,
    serving: String,
    serving_key: String,
    kubelet_client: String,
    kubelet_client_key: String,
    front_ca: String,
    front_client: String,
    front_client_key: String,
    account_key: String,
    account_public: String,
    tokens: Vec<(Identity, String)>,
}

impl Pki {
    /// Makes everything for a cluster at `addresses`.
    pub(crate) fn make(addresses: &ClusterAddresses) -> Result<Self> {
        let ca_key = KeyPair::generate()?;
        let ca = authority();
        let ca_pem = ca.self_signed(&ca_key)?.pem();
        let issuer = Issuer::from_params(&ca, &ca_key);

        let (serving, serving_key) = signed(&issuer, &serving_params(addresses)?)?;
        let mut client = CertificateParams::default();
        client.distinguished_name = named("kube-apiserver-kubelet-client", Some("system:masters"));
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (kubelet_client, kubelet_client_key) = signed(&issuer, &client)?;

        // Extension API servers know the API server by it, and by no other authority.
        let front_key = KeyPair::generate()?;
        let mut front = authority();
        front.distinguished_name = named("front-proxy-ca", None);
        let front_ca = front.self_signed(&front_key)?.pem();
        let mut client = CertificateParams::default();
        client.distinguished_name = named(FRONT_PROXY, None);
        client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let (front_client, front_client_key) = signed(&Issuer::from_params(&front, &front_key), &client)?;

        let account = KeyPair::generate()?;
        let mut tokens = Vec::new();
        for identity in Identity::ALL {
            tokens.push((identity, random_token()?));
        }
        Ok(Self {
            ca: ca_pem,
            ca_key: ca_key.serialize_pem(),
            serving,
            serving_key,
            kubelet_client,
            kubelet_client_key,
            front_ca,
            front_client,
            front_client_key,
            account_key: account.serialize_pem(),
            account_public: account.public_key_pem(),
            tokens,
        })
    }

    /// The bearer token of `identity`.
    pub(crate) fn token(&self, identity: Identity) -> &str {
        let found = self.tokens.iter().find(|(of, _)| *of == identity);
        &found.expect("every identity has a token").1
    }

    /// Writes the files that the API server and the controller manager are pointed at.
    pub(crate) fn write(&self, dir: &Path) -> Result<()> {
        let tokens: String = self
            .tokens
            .iter()
            .map(|(of, token)| format!("{token},{user},{user},system:masters\n", user = of.user()))
            .collect();
        for (name, text) in [
            ("ca.crt", &self.ca),
            ("ca.key", &self.ca_key),
            ("apiserver.crt", &self.serving),
            ("apiserver.key", &self.serving_key),
            ("kubelet-client.crt", &self.kubelet_client),
            ("kubelet-client.key", &self.kubelet_client_key),
            ("front-proxy-ca.crt", &self.front_ca),
            ("front-proxy-client.crt", &self.front_client),
            ("front-proxy-client.key", &self.front_client_key),
            ("sa.key", &self.account_key),
            ("sa.pub", &self.account_public),
            ("tokens.csv", &tokens),
        ] {
            write_private(&dir.join(name), text)?;
        }
        Ok(())
    }
}

/// Certificate and key of an administrator that were good until the year 2001, by a cluster's own authority.
pub(crate) fn expired_client(ca_key: &str) -> Result<(String, String)> {
    let (ca, ca_key) = (authority(), KeyPair::from_pem(ca_key)?);
    let mut client = CertificateParams::default();
    client.distinguished_name = named("late", Some("system:masters"));
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    (client.not_before, client.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1));
    signed(&Issuer::from_params(&ca, &ca_key), &client)
}

fn authority() -> CertificateParams {
    let mut ca = CertificateParams::default();
    ca.distinguished_name = named("atoll-lab-ca", None);
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    ca
}

fn serving_params(addresses: &ClusterAddresses) -> Result<CertificateParams> {
    let names = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"];
    let full = "kubernetes.default.svc.cluster.local";
    let mut params =
        CertificateParams::new(names.into_iter().chain([full]).map(String::from).collect::<Vec<_>>())?;
    params.distinguished_name = named("kube-apiserver", None);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let reached_at = [
        addresses.node().both(),
        addresses.service(1).both(),
        // Relays that stand before the API server listen on the host's own addresses.
        host(addresses.slot).both(),
        [std::net::Ipv4Addr::LOCALHOST.into(), std::net::Ipv6Addr::LOCALHOST.into()],
    ];
    params.subject_alt_names.extend(reached_at.into_iter().flatten().map(SanType::IpAddress));
    Ok(params)
}

fn signed(issuer: &Issuer<'_, &KeyPair>, params: &CertificateParams) -> Result<(String, String)> {
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn named(common: &str, organization: Option<&str>) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

fn random_token() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0_u8; 16];
    let mut source = std::fs::File::open("/dev/urandom").map_err(|e| Error::Certificates(e.to_string()))?;
    source.read_exact(&mut bytes).map_err(|e| Error::Certificates(e.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
