//! Objects that say who wrote them, whatever clients say.

use atoll_kubeapi::authn::{MASTERS, User};
use atoll_kubeapi::author::Stamping;
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api as KubeApi, Options};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

const STAMP: &str = "example.com/author";

async fn users() -> [Api<ConfigMap>; 3] {
    let stamping = Stamping {
        annotation: STAMP.to_owned(),
        resources: vec![(String::new(), "configmaps".to_owned())],
        controllers: vec!["controller".to_owned()],
    };
    let api = KubeApi::start(Store::memory(), Options::default().stamping(stamping)).await.unwrap();
    ["alice", "bob", "controller"].map(|name| {
        let user = User::authenticated(name, [MASTERS.to_owned()]);
        Api::default_namespaced(Client::new(api.service(user), "default"))
    })
}

fn map(data: &str, stamp: Option<&str>) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": data}});
    if let Some(stamp) = stamp {
        object["metadata"]["annotations"][STAMP] = stamp.into();
    }
    object
}

fn read(object: Value) -> ConfigMap {
    serde_json::from_value(object).unwrap()
}

fn author(object: &ConfigMap) -> String {
    let stamp = object.annotations().get(STAMP).map_or("{}", String::as_str);
    let stamp: Value = serde_json::from_str(stamp).unwrap_or_default();
    stamp["username"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn nobody_writes_another_authors_name_by_any_verb_or_patch() {
    let [alice, bob, _] = users().await;
    let forged = Some(r#"{"username":"root","groups":["system:masters"]}"#);
    let post = PostParams::default();
    let made = alice.create(&post, &read(map("1", forged))).await.unwrap();
    assert_eq!(author(&made), "alice");
    assert!(made.annotations()[STAMP].contains(MASTERS), "groups are kept: {made:?}");
    let plain = PatchParams::default();
    let applied = PatchParams::apply("bob").force();
    // The content changes: it is Bob's.
    let put = bob.replace("c", &post, &read(map("2", forged))).await.unwrap();
    assert_eq!(author(&put), "bob", "PUT");
    alice.patch("c", &plain, &Patch::Merge(map("3", None))).await.unwrap();
    let merged = bob.patch("c", &plain, &Patch::Merge(map("4", forged))).await.unwrap();
    assert_eq!(author(&merged), "bob", "merge patch");
    alice.patch("c", &plain, &Patch::Merge(map("5", None))).await.unwrap();
    let strategic = bob.patch("c", &plain, &Patch::Strategic(map("6", forged))).await.unwrap();
    assert_eq!(author(&strategic), "bob", "strategic merge patch");
    alice.patch("c", &plain, &Patch::Merge(map("7", None))).await.unwrap();
    let apply = bob.patch("c", &applied, &Patch::Apply(map("8", forged))).await.unwrap();
    assert_eq!(author(&apply), "bob", "apply");
    // Only metadata changes: it stays Bob's, also when somebody else says otherwise or takes the stamp off.
    for metadata in [
        json!({"labels": {"seen": "1"}}),
        json!({"annotations": {STAMP: "{\"username\":\"alice\"}"}}),
        json!({"annotations": {STAMP: null}}),
        json!({"annotations": null}),
    ] {
        let same = alice.patch("c", &plain, &Patch::Merge(json!({"metadata": metadata}))).await.unwrap();
        assert_eq!(author(&same), "bob", "{metadata}");
    }
    let made = bob
        .patch(
            "d",
            &applied,
            &Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "d", "annotations": {STAMP: "x"}}})),
        )
        .await
        .unwrap();
    assert_eq!(author(&made), "bob", "made by apply");
}

#[tokio::test(start_paused = true)]
async fn a_controllers_marks_make_it_no_author() {
    let [alice, _, controller] = users().await;
    let plain = PatchParams::default();
    alice.create(&PostParams::default(), &read(map("1", None))).await.unwrap();
    let label = Patch::Merge(json!({"metadata": {"labels": {"held": "1"}}}));
    assert_eq!(author(&controller.patch("c", &plain, &label).await.unwrap()), "alice");
    // It takes off what can't be right; then nobody is the author until somebody is.
    let off = Patch::Merge(json!({"metadata": {"annotations": {STAMP: null}}}));
    assert_eq!(author(&controller.patch("c", &plain, &off).await.unwrap()), "");
    let more = Patch::Merge(json!({"metadata": {"labels": {"held": "2"}}}));
    assert_eq!(author(&controller.patch("c", &plain, &more).await.unwrap()), "");
    let touched = Patch::Merge(json!({"metadata": {"labels": {"held": "3"}}}));
    assert_eq!(author(&alice.patch("c", &plain, &touched).await.unwrap()), "alice");
}

#[tokio::test(start_paused = true)]
async fn a_controllers_name_is_not_lent_to_an_impersonator() {
    let [alice, ..] = users().await;
    alice.create(&PostParams::default(), &read(map("1", None))).await.unwrap();
    let forged = json!({"metadata": {"annotations": {STAMP: r#"{"username":"root"}"#}}}).to_string();
    let client = alice.clone().into_client();
    let ask = async |name: &str| {
        let request = http::Request::patch("/api/v1/namespaces/default/configmaps/c")
            .header("content-type", "application/merge-patch+json")
            .header("impersonate-user", name)
            .header("impersonate-group", MASTERS);
        client.request::<ConfigMap>(request.body(forged.clone().into_bytes()).unwrap()).await
    };
    assert_eq!(author(&ask("bob").await.unwrap()), "alice", "the honest use");
    let refused = ask("controller").await.unwrap_err().to_string();
    assert!(refused.contains("this server's own"), "{refused}");
    assert_eq!(author(&alice.get("c").await.unwrap()), "alice");
}
