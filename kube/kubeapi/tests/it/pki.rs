//! Keys of a data directory: made once, kept private, refused when they don't fit.

use atoll_kubeapi::authn::{MASTERS, User};
use atoll_kubeapi::pki::{ADMIN, Pki, PkiError};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const NOW: i64 = 1_800_000_000;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_authority_is_made_once_and_certificates_at_every_start() {
    let dir = tempfile::tempdir().unwrap();
    let first = Pki::open(dir.path(), &["hub.example".into(), "10.0.0.7".into()], NOW).unwrap();
    let second = Pki::open(dir.path(), &[], NOW + 1).unwrap();
    assert_eq!(
        (&first.ca, &first.token_key, &first.admin_token),
        (&second.ca, &second.token_key, &second.admin_token)
    );
    assert_ne!(first.server.certificate, second.server.certificate);
    let user = User::from_certificate(&first.admin.certificate_der().unwrap()).unwrap();
    assert_eq!(user.name, ADMIN);
    assert_eq!(user.groups, [MASTERS, "system:authenticated"]);
    let other = Pki::ephemeral(&[], NOW).unwrap();
    assert_ne!(other.ca, first.ca);
}

#[test]
fn only_the_owner_can_read_keys() {
    let dir = tempfile::tempdir().unwrap();
    let pki = Pki::open(dir.path(), &[], NOW).unwrap();
    let config = pki.write_kubeconfig(dir.path(), "https://127.0.0.1:6443").unwrap();
    assert_eq!(config, dir.path().join("kubeconfig"));
    assert_eq!(mode(&config), 0o600);
    assert_eq!(mode(&dir.path().join("pki")), 0o700);
    for file in fs::read_dir(dir.path().join("pki")).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    let text = fs::read_to_string(config).unwrap();
    let read: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["clusters"][0]["cluster"]["server"], "https://127.0.0.1:6443");
    assert!(!format!("{pki:?}").contains("PRIVATE"), "keys don't belong into logs");
}

#[test]
fn a_key_that_others_can_read_is_not_used() {
    for name in ["ca.key", "tokens.key", "admin.token"] {
        let dir = tempfile::tempdir().unwrap();
        Pki::open(dir.path(), &[], NOW).unwrap();
        let path = dir.path().join("pki").join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Pki::open(dir.path(), &[], NOW).unwrap_err();
        assert!(matches!(&error, PkiError::Exposed { path: said, .. } if *said == path), "{error}");
        assert!(error.to_string().contains("chmod 600"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
        Pki::open(dir.path(), &[], NOW).unwrap();
    }
}

#[test]
fn a_missing_or_foreign_key_is_an_error_and_not_a_new_authority() {
    for (name, spoil) in [
        ("ca.key", None),
        ("tokens.key", None),
        ("admin.token", Some("short".to_owned())),
        ("tokens.key", Some("no key".to_owned())),
        ("ca.crt", Some("no certificate".to_owned())),
        ("ca.key", Some(Pki::ephemeral(&[], NOW).unwrap().token_key)),
    ] {
        let dir = tempfile::tempdir().unwrap();
        Pki::open(dir.path(), &[], NOW).unwrap();
        let path = dir.path().join("pki").join(name);
        match &spoil {
            None => fs::remove_file(&path).unwrap(),
            Some(text) => fs::write(&path, text).unwrap(),
        }
        match Pki::open(dir.path(), &[], NOW).unwrap_err() {
            PkiError::File { path: said, .. } | PkiError::Unusable { path: said, .. } => {
                assert_eq!(said, path);
            }
            error => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn a_first_start_that_broke_off_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    Pki::open(dir.path(), &[], NOW).unwrap();
    // The certificate is written last: without it nobody has trusted the rest.
    fs::remove_file(dir.path().join("pki/ca.crt")).unwrap();
    Pki::open(dir.path(), &[], NOW).unwrap();
}

#[test]
fn a_name_that_is_none_is_an_error() {
    assert!(matches!(Pki::ephemeral(&["hüb".into()], NOW), Err(PkiError::Make(_))));
}
