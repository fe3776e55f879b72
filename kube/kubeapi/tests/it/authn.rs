//! Who asks, by certificate or token.

use atoll_kubeapi::authn::{
    Bound, CertificateError, ISSUER, Issue, TokenAuthenticator, TokenError, TokenIdentity, User,
};
use atoll_kubeapi::pki::Pki;
use rcgen::{CertificateParams, DnType, KeyPair};

const NOW: i64 = 1_800_000_000;

fn tokens() -> (Pki, TokenAuthenticator) {
    let pki = Pki::ephemeral(&[], NOW).unwrap();
    let tokens = TokenAuthenticator::new(&pki).unwrap();
    (pki, tokens)
}

fn issue() -> Issue<'static> {
    Issue {
        namespace: "shop",
        name: "web",
        uid: "u-1",
        audiences: &[],
        bound: None,
        now: NOW,
        seconds: 600,
        id: "t-1",
    }
}

fn certificate(names: &[(DnType, &str)]) -> Vec<u8> {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    for (kind, name) in names {
        params.distinguished_name.push(kind.clone(), *name);
    }
    params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
}

#[test]
fn a_certificate_names_user_and_groups() {
    let der = certificate(&[(DnType::CommonName, "jané"), (DnType::OrganizationName, "dev")]);
    let user = User::from_certificate(&der).unwrap();
    assert_eq!(
        (user.name.as_str(), user.groups),
        ("jané", vec!["dev".to_owned(), "system:authenticated".into()])
    );
    let nameless = certificate(&[(DnType::OrganizationName, "system:masters")]);
    assert_eq!(User::from_certificate(&nameless), Err(CertificateError::Nameless));
}

#[test]
fn what_is_no_certificate_is_nobody() {
    let der = certificate(&[(DnType::CommonName, "jane"), (DnType::OrganizationName, "dev")]);
    for end in 0..der.len() {
        // Cut anywhere, it must not be somebody else, let alone panic.
        assert_eq!(User::from_certificate(&der[..end]), Err(CertificateError::Unreadable), "{end}");
    }
    assert_eq!(User::from_certificate(&[0x30; 64]), Err(CertificateError::Unreadable));
}

#[test]
fn a_token_is_good_for_its_account_time_and_audience() {
    let (_, tokens) = tokens();
    let token = tokens.key().unwrap().issue(&issue()).unwrap();
    let TokenIdentity::Account(claims) = tokens.authenticate(&token, &[], NOW).unwrap() else {
        panic!("the admin?")
    };
    assert_eq!(claims.account, ("shop".into(), "web".into(), "u-1".into()));
    let user = claims.user();
    assert_eq!((user.name.as_str(), user.uid.as_str()), ("system:serviceaccount:shop:web", "u-1"));
    assert_eq!(
        user.groups,
        ["system:serviceaccounts", "system:serviceaccounts:shop", "system:authenticated"]
    );
    assert_eq!(user.extra["authentication.kubernetes.io/credential-id"], ["JTI=t-1"]);

    assert_eq!(tokens.authenticate(&token, &[], NOW + 600), Err(TokenError::Expired));
    assert_eq!(tokens.authenticate(&token, &[], NOW - 1), Err(TokenError::Early));
    let vault = ["vault".to_owned()];
    let wrong = tokens.authenticate(&token, &vault, NOW);
    assert_eq!(wrong, Err(TokenError::Audience { found: vec![ISSUER.into()], wanted: vault.to_vec() }));
    let for_vault = tokens.key().unwrap().issue(&Issue { audiences: &vault, ..issue() }).unwrap();
    assert!(tokens.authenticate(&for_vault, &vault, NOW).is_ok());
    assert!(matches!(tokens.authenticate(&for_vault, &[], NOW), Err(TokenError::Audience { .. })));
}

#[test]
fn a_bound_token_says_to_what() {
    let (_, tokens) = tokens();
    let bound = Bound { kind: "Pod".into(), name: "web-0".into(), uid: "p-1".into() };
    let token = tokens.key().unwrap().issue(&Issue { bound: Some(bound.clone()), ..issue() }).unwrap();
    let TokenIdentity::Account(claims) = tokens.authenticate(&token, &[], NOW).unwrap() else {
        panic!("the admin?")
    };
    assert_eq!(claims.bound, Some(bound));
    assert_eq!(claims.user().extra["authentication.kubernetes.io/pod-name"], ["web-0"]);
}

#[test]
fn a_changed_or_foreign_token_is_refused() {
    let (_, ours) = tokens();
    let (_, theirs) = tokens();
    let token = ours.key().unwrap().issue(&issue()).unwrap();
    assert_eq!(theirs.authenticate(&token, &[], NOW), Err(TokenError::Signature));
    let parts: Vec<&str> = token.split('.').collect();
    let admin = ours.key().unwrap().issue(&Issue { name: "admin", ..issue() }).unwrap();
    let other = admin.split('.').nth(1).unwrap();
    let mixed = format!("{}.{other}.{}", parts[0], parts[2]);
    assert_eq!(ours.authenticate(&mixed, &[], NOW), Err(TokenError::Signature));
    // {"alg":"none"}: the algorithm isn't the token's to choose.
    let none = format!("eyJhbGciOiJub25lIn0.{}.", parts[1]);
    assert_eq!(ours.authenticate(&none, &[], NOW), Err(TokenError::Foreign));
    for text in ["", ".", "..", "a.b.c", "abcdef", "é.é.é"] {
        assert_eq!(ours.authenticate(text, &[], NOW), Err(TokenError::Foreign), "{text}");
    }
}

#[test]
fn the_admins_token_is_the_admin() {
    let (pki, tokens) = tokens();
    let TokenIdentity::Admin(user) = tokens.authenticate(&pki.admin_token, &[], NOW).unwrap() else {
        panic!("not the admin")
    };
    assert!(user.groups.contains(&"system:masters".to_owned()));
    let cut = &pki.admin_token[..pki.admin_token.len() - 1];
    assert_eq!(tokens.authenticate(cut, &[], NOW), Err(TokenError::Foreign));
}
