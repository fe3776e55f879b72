//! Keys and certificates are replaced while clients are at work: no request fails, no watch ends.

use atoll_kubeapi::Options;
use atoll_kubeapi::hosted::{HostOptions, Hosted};
use atoll_kubeapi::pki::Pki;
use futures_util::StreamExt;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, Config};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

fn text(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join("pki").join(name)).unwrap()
}

/// Written in place, so that its mode stays.
fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join("pki").join(name), text).unwrap();
}

/// The keys of another data directory.
fn others() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    Pki::open(dir.path(), &[], jiff::Timestamp::now().as_second()).unwrap();
    dir
}

/// A client that trusts these authorities, on connections of its own.
fn client(url: &str, authorities: &[&str], token: &str) -> Client {
    use rustls_pki_types::CertificateDer;
    use rustls_pki_types::pem::PemObject;
    let mut config = Config::new(url.parse().unwrap());
    let der = authorities.iter().map(|pem| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec());
    config.root_cert = Some(der.collect());
    config.auth_info.token = Some(token.to_owned().into());
    Client::try_from(config).unwrap()
}

async fn lists(client: Client) -> Result<usize, kube::Error> {
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    maps.list(&ListParams::default()).await.map(|found| found.items.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_of_the_api_is_replaced_under_load_and_no_request_fails_and_no_watch_ends() {
    let (dir, new) = (tempfile::tempdir().unwrap(), others());
    let (dir, new) = (dir.path(), new.path());
    let host = HostOptions { data_dir: dir, address: "127.0.0.1:0".parse().unwrap(), names: &[] };
    let hosted = Hosted::start(&host, Options::default()).await.unwrap();
    let (old_ca, new_ca) = (text(dir, "ca.crt"), text(new, "ca.crt"));
    let both = [old_ca.as_str(), new_ca.as_str()];
    let admin_token = text(dir, "admin.token").trim().to_owned();
    let admin = client(&hosted.url, &[&old_ca], &admin_token);
    let binding = json!({"metadata": {"name": "web"}, "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": "default"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}});
    let bindings: Api<ClusterRoleBinding> = Api::all(admin.clone());
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::default_namespaced(admin.clone());
    let account = serde_json::from_value(json!({"metadata": {"name": "web"}})).unwrap();
    accounts.create(&PostParams::default(), &account).await.unwrap();
    let issue = async |accounts: &Api<ServiceAccount>| {
        let request: TokenRequest =
            serde_json::from_value(json!({"metadata": {}, "spec": {"audiences": []}})).unwrap();
        let made = accounts.create_token_request("web", &PostParams::default(), &request).await.unwrap();
        made.status.unwrap().token.unwrap()
    };
    let old_token = issue(&accounts).await;

    // The load: on a kept connection and on a new one each time, by a token that is as old as the test.
    let (done, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let load: Vec<_> = [true, false]
        .map(|kept| {
            let make = {
                let (url, both, token) = (hosted.url.clone(), both.map(str::to_owned), old_token.clone());
                move || client(&url, &both.each_ref().map(String::as_str), &token)
            };
            let (done, count) = (Arc::clone(&done), Arc::clone(&count));
            tokio::spawn(async move {
                let kept = kept.then(&make);
                while !done.load(Ordering::Acquire) {
                    lists(kept.clone().unwrap_or_else(&make)).await.unwrap();
                    count.fetch_add(1, Ordering::AcqRel);
                }
            })
        })
        .into();
    let maps: Api<ConfigMap> = Api::default_namespaced(client(&hosted.url, &both, &old_token));
    let mut watch = maps.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    let more = async || {
        let now = count.load(Ordering::Acquire);
        let wait = async {
            while count.load(Ordering::Acquire) < now + 10 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait).await.expect("the load goes on");
    };
    more().await;

    // Half of a change changes nothing.
    write(dir, "ca.key", &text(new, "ca.key"));
    assert!(hosted.reload_keys().is_err(), "it is not the key of the certificate");
    more().await;
    // Both authorities count, and the new one signs; both keys of tokens; both tokens of the admin.
    write(dir, "ca.crt", &format!("{new_ca}{old_ca}"));
    write(dir, "tokens.key", &format!("{}{}", text(new, "tokens.key"), text(dir, "tokens.key")));
    write(dir, "admin.token", &format!("{}\n{admin_token}\n", text(new, "admin.token").trim()));
    assert!(hosted.reload_keys().unwrap());
    assert!(!hosted.reload_keys().unwrap(), "nothing is new");
    more().await;
    assert!(
        lists(client(&hosted.url, &[&new_ca], &admin_token)).await.is_ok(),
        "the new certificate is shown"
    );
    assert!(lists(client(&hosted.url, &[&old_ca], &admin_token)).await.is_err());
    let written = kube::config::Kubeconfig::read_from(&hosted.kubeconfig).unwrap();
    let by_file =
        Config::from_custom_kubeconfig(written, &kube::config::KubeConfigOptions::default()).await.unwrap();
    assert!(
        lists(Client::try_from(by_file).unwrap()).await.is_ok(),
        "the administrator's file was written anew"
    );
    let new_admin = client(&hosted.url, &[&new_ca], text(new, "admin.token").trim());
    let new_token = issue(&Api::default_namespaced(new_admin.clone())).await;
    assert!(lists(client(&hosted.url, &[&new_ca], &new_token)).await.is_ok());
    done.store(true, Ordering::Release);
    for load in load {
        load.await.expect("no request failed");
    }

    // The old ones go: what they signed counts no more, on whatever connection.
    write(dir, "ca.crt", &new_ca);
    write(dir, "tokens.key", &text(new, "tokens.key"));
    write(dir, "admin.token", &text(new, "admin.token"));
    assert!(hosted.reload_keys().unwrap());
    for gone in [&old_token, &admin_token] {
        let refused = lists(client(&hosted.url, &both, gone)).await;
        assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 401), "{refused:?}");
    }
    assert!(lists(client(&hosted.url, &[&new_ca], &new_token)).await.is_ok());

    // The watch of the beginning has seen it all.
    let last: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "last"}})).unwrap();
    Api::default_namespaced(new_admin).create(&PostParams::default(), &last).await.unwrap();
    let seen = async {
        loop {
            match watch.next().await.expect("the watch goes on").unwrap() {
                WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("last") => return,
                WatchEvent::Error(error) => panic!("{error:?}"),
                _ => {}
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), seen).await.expect("the event comes");
}
