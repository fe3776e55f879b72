//! New keys, and certificates signed by the authority's.

use super::{ADMIN, Identity, PkiError, StoredKeys};
use crate::access::authn::MASTERS;
use aws_lc_rs::rand::{SecureRandom, SystemRandom};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use std::time::Duration;

const DAY: u64 = 24 * 60 * 60;
/// Longer than a hub lives.
const AUTHORITY_DAYS: u64 = 20 * 365;
/// Made anew at every start, so it only has to outlast a process.
const SERVER_DAYS: u64 = 10 * 365;
/// Made anew at every start, too; but copies of it get about.
const ADMIN_DAYS: u64 = 365;
/// Clocks differ.
const SKEW: u64 = 60 * 60;

pub(super) fn keys(now: i64) -> Result<StoredKeys, PkiError> {
    let ca_key = KeyPair::generate()?;
    let mut ca = authority();
    valid(&mut ca, now, AUTHORITY_DAYS);
    let mut token = [0; 32];
    SystemRandom::new().fill(&mut token).map_err(|_| PkiError::Random)?;
    Ok(StoredKeys {
        ca: ca.self_signed(&ca_key)?.pem(),
        ca_key: ca_key.serialize_pem(),
        token_key: KeyPair::generate()?.serialize_pem(),
        admin_token: URL_SAFE_NO_PAD.encode(token),
    })
}

/// Those of the server and of the admin.
pub(super) fn certificates(
    ca_key: &str,
    names: &[String],
    now: i64,
) -> Result<(Identity, Identity), PkiError> {
    // The issuer is known by its name and key; its certificate isn't needed to sign.
    let issuer = Issuer::new(authority(), KeyPair::from_pem(ca_key)?);
    let mut server = CertificateParams::new(served(names))?;
    server.distinguished_name = named("kube-apiserver");
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let mut admin = CertificateParams::default();
    admin.distinguished_name = named(ADMIN);
    admin.distinguished_name.push(DnType::OrganizationName, MASTERS);
    admin.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    Ok((signed(server, SERVER_DAYS, &issuer, now)?, signed(admin, ADMIN_DAYS, &issuer, now)?))
}

/// What every server is reached by, and then the given.
fn served(names: &[String]) -> Vec<String> {
    let mut all: Vec<String> = [
        "localhost",
        "127.0.0.1",
        "::1",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    .map(str::to_owned)
    .to_vec();
    for name in names {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
    all
}

fn authority() -> CertificateParams {
    let mut ca = CertificateParams::default();
    ca.distinguished_name = named("atoll-hub-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    ca
}

fn signed(
    mut params: CertificateParams,
    days: u64,
    issuer: &Issuer<'_, KeyPair>,
    now: i64,
) -> Result<Identity, PkiError> {
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    valid(&mut params, now, days);
    let key = KeyPair::generate()?;
    Ok(Identity { certificate: params.signed_by(&key, issuer)?.pem(), key: key.serialize_pem() })
}

fn valid(params: &mut CertificateParams, now: i64, days: u64) {
    let now = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(now.max(0).unsigned_abs());
    params.not_before = now - Duration::from_secs(SKEW);
    params.not_after = now + Duration::from_secs(days * DAY);
}

fn named(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}
