//! `atoll hub backup` and `restore`, on a directory at rest and on one in use.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use atoll_kubeapi::authn::TokenAuthenticator;
use atoll_kubeapi::backup::STORE_FILE;
use atoll_kubeapi::encryption::Keys;
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::server::Server;
use atoll_kubeapi::store::{Key, Store, Write};
use atoll_kubeapi::{Api, Options};

use crate::atoll;

fn keys(dir: &Path) -> Pki {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Pki::open(dir, &[], now.cast_signed()).unwrap()
}

async fn filled(dir: &Path, objects: usize) -> Store {
    let store = Store::open(dir.join(STORE_FILE)).unwrap();
    for at in 0..objects {
        let key = Key::new("", "configmaps", "shop", &format!("n{at}"));
        store.write(key, Write::create(|revision| format!("{{\"at\":{revision}}}").into())).await.unwrap();
    }
    store
}

fn names(dir: &Path) -> Vec<String> {
    let store = Store::open(dir.join(STORE_FILE)).unwrap();
    let page = store.list("/core/configmaps/shop/", None, None, None).unwrap();
    page.objects.into_iter().map(|object| object.key.name().to_owned()).collect()
}

#[tokio::test]
async fn a_directory_at_rest_is_copied_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let (data, other, file) = (dir.path().join("data"), dir.path().join("other"), dir.path().join("backup"));
    keys(&data);
    drop(filled(&data, 3).await);
    let [data, other_text, file] = [&data, &other, &file].map(|path| path.to_str().unwrap());
    let (code, out, talk) = atoll(&["hub", "backup", "--data-dir", data, "-o", file]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    assert_eq!(out, format!("backed up 3 objects at revision 3 to {file}\n"));
    let again = ["hub", "backup", "--data-dir", data, "-o", file];
    let (code, _, talk) = atoll(&again);
    let want =
        format!("error: {file} exists already\n  hint: choose another file, or overwrite it with --force\n");
    assert_eq!((code, talk), (Some(2), want));
    assert_eq!(atoll(&[&again[..], &["--force"]].concat()).0, Some(0));
    let restore = ["hub", "restore", file, "--data-dir", other_text];
    let (code, out, talk) = atoll(&restore);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    assert_eq!(out, "restored 3 objects of revision 3; the hub continues from revision 1000000003\n");
    assert_eq!(names(&other), ["n0", "n1", "n2"]);

    let (code, _, talk) = atoll(&restore);
    assert_eq!(code, Some(2));
    let want = format!(
        "error: cannot restore into {other_text}
  why: {other_text} is not empty
  hint: use another directory, or --force to move existing data to restore.old
"
    );
    assert_eq!(talk, want);
    assert_eq!(atoll(&[&restore[..], &["--force"]].concat()).0, Some(0));
}

#[tokio::test]
async fn an_encrypted_directory_is_backed_up_and_restored_with_its_key_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("keys"), "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n").unwrap();
    std::fs::set_permissions(path("keys"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let one = Keys::read(&path("keys")).unwrap();
    keys(&path("data"));
    let store = Store::open_encrypted(path("data").join(STORE_FILE), &one).unwrap();
    let key = Key::new("", "secrets", "shop", "a");
    store.write(key, Write::create(|_| "{\"data\":\"hunter2\"}".into())).await.unwrap();
    drop(store);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let (data, other, file, key_file) = (text("data"), text("other"), text("backup"), text("keys"));
    let backup = ["hub", "backup", "--data-dir", &data, "-o", &file];
    let restore = ["hub", "restore", &file, "--data-dir", &other];
    let with_key = ["--encryption-key-file", key_file.as_str()];

    let (code, _, talk) = atoll(&backup);
    assert!(code == Some(1) && talk.contains("is encrypted with key "), "{talk}");
    let (code, _, talk) = atoll(&[&backup[..], &with_key].concat());
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    assert!(!String::from_utf8_lossy(&std::fs::read(path("backup")).unwrap()).contains("hunter2"));
    let (code, _, talk) = atoll(&restore);
    assert!(code == Some(1) && talk.contains("it is encrypted with key "), "{talk}");
    let (code, _, talk) = atoll(&[&restore[..], &with_key].concat());
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    let restored = Store::open_encrypted(path("other").join(STORE_FILE), &one).unwrap();
    assert_eq!(restored.list("/", None, None, None).unwrap().objects.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_hub_is_asked_for_its_backup() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("backup"));
    let pki = keys(&data);
    let store = filled(&data, 2).await;
    let options = Options::default().tokens(TokenAuthenticator::new(&pki).unwrap()).data_dir(&data);
    let api = Api::start(store.clone(), options).await.unwrap();
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), &pki).await.unwrap();
    pki.write_kubeconfig(&data, &format!("https://{}", server.address().unwrap())).unwrap();
    let serving = tokio::spawn(server.run(api));

    let arguments = ["hub", "backup", "--data-dir", data.to_str().unwrap(), "-o", file.to_str().unwrap()];
    let arguments: Vec<String> = arguments.map(str::to_owned).to_vec();
    let asked =
        tokio::task::spawn_blocking(move || atoll(&arguments.iter().map(String::as_str).collect::<Vec<_>>()));
    let (code, _, talk) = asked.await.unwrap();
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    let restored = dir.path().join("restored");
    let (code, _, talk) =
        atoll(&["hub", "restore", file.to_str().unwrap(), "--data-dir", restored.to_str().unwrap()]);
    assert_eq!((code, talk.as_str()), (Some(0), ""));
    assert_eq!(names(&restored), ["n0", "n1"]);

    let busy = ["hub", "restore", file.to_str().unwrap(), "--force", "--data-dir", data.to_str().unwrap()];
    let (code, _, talk) = atoll(&busy);
    assert_eq!(code, Some(1));
    assert!(talk.ends_with("is in use by a running hub\n  hint: stop the hub first\n"), "{talk}");
    serving.abort();
}

#[test]
fn a_backup_that_broke_off_and_a_directory_without_data_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (empty, file) = (dir.path().join("empty"), dir.path().join("half"));
    std::fs::write(&file, "{\"backup\":1,\"revision\":3,\"objects\":1}\n").unwrap();
    let (code, _, talk) =
        atoll(&["hub", "restore", file.to_str().unwrap(), "--data-dir", empty.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert!(talk.contains("why: line 2 of the backup: "), "{talk}");
    let (code, _, talk) =
        atoll(&["hub", "backup", "--data-dir", "/nonexistent", "-o", file.to_str().unwrap()]);
    assert_eq!(code, Some(2));
    assert!(
        talk.starts_with("error: no data of a hub in /nonexistent\n  hint: use the --data-dir"),
        "{talk}"
    );
}
