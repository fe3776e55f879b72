//! On an API in this process.

use atoll_kubeapi::store::Store;
use serde_json::json;

use super::*;

const PATH: [&str; 3] = ["apiregistration.k8s.io/v1", "APIService", "v1alpha1.explain.atoll.dev"];

async fn client() -> Client {
    let options = atoll_kubeapi::Options::default();
    let own = atoll_kubeapi::Api::start(Store::memory(), options).await.unwrap();
    let client = Client::new(own.admin(), "default");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hub"}});
    let namespaces = api(&client, &namespace);
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    client
}

fn registration(address: &str) -> Registration {
    let place = Place { address: address.parse().unwrap(), ca: format!("authority of {address}") };
    Registration { namespace: "hub".to_owned(), place: Some(place) }
}

async fn found(client: &Client) -> Option<Value> {
    let [api_version, kind, name] = PATH;
    let registered = api(client, &json!({"apiVersion": api_version, "kind": kind}));
    registered.get_opt(name).await.unwrap().map(|found| serde_json::to_value(found).unwrap())
}

async fn change(client: &Client, object: &Value, patch: Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    api(client, object).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

#[tokio::test]
async fn what_was_changed_or_deleted_is_repaired_and_nothing_is_written_twice() {
    let (client, ours) = (client().await, registration("192.0.2.7:9443"));
    assert_eq!(ours.ensure(&client).await, Vec::<String>::new());
    let before = found(&client).await.unwrap();
    assert_eq!(ours.ensure(&client).await, Vec::<String>::new());
    assert_eq!(
        found(&client).await.unwrap()["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
    for object in ours.wanted() {
        let spoiled = match object["kind"].as_str().unwrap() {
            "ClusterRole" => json!({"rules": []}),
            "Service" => {
                json!({"spec": {"selector": {"app": "evil"}, "ports": [{"name": "other", "port": 1}]}})
            }
            "EndpointSlice" => json!({"endpoints": []}),
            _ => json!({"spec": {"caBundle": null, "insecureSkipTLSVerify": true}}),
        };
        change(&client, &object, spoiled).await;
    }
    // The family of a slice is for life.
    let moved = registration("[fd00::7]:9443");
    assert_eq!(moved.ensure(&client).await, Vec::<String>::new());
    for object in moved.wanted() {
        let name = object["metadata"]["name"].as_str().unwrap();
        let found = api(&client, &object).get(name).await.unwrap();
        let found = serde_json::to_value(found).unwrap();
        assert!(objects::covers(&found, &object), "{found:#}");
    }
}

#[tokio::test]
async fn what_others_registered_is_left_alone() {
    let (client, ours) = (client().await, registration("192.0.2.7:9443"));
    let mut theirs = ours.wanted().pop().unwrap();
    theirs["metadata"]["labels"] = json!({label::EXPLAIN: "another"});
    theirs["spec"]["caBundle"] = "dGhlaXJz".into();
    api(&client, &theirs)
        .create(&PostParams::default(), &serde_json::from_value(theirs.clone()).unwrap())
        .await
        .unwrap();
    let before = found(&client).await.unwrap();
    let problems = ours.ensure(&client).await;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains("exists and has no label atoll.dev/explain=hub"), "{problems:?}");
    ours.withdraw(&client).await;
    clear(&client, "hub").await;
    assert_eq!(found(&client).await, Some(before));
}

#[tokio::test]
async fn a_leader_that_stops_takes_its_own_registration_away_and_not_that_of_the_next() {
    let client = client().await;
    let (first, next) = (registration("192.0.2.7:9443"), registration("192.0.2.8:9443"));
    first.ensure(&client).await;
    assert_eq!(next.ensure(&client).await, Vec::<String>::new());
    first.withdraw(&client).await;
    assert!(found(&client).await.is_some(), "it leads to the next leader");
    next.withdraw(&client).await;
    assert_eq!(found(&client).await, None);
    first.ensure(&client).await;
    clear(&client, "hub").await;
    assert_eq!(found(&client).await, None, "a hub that does not answer clears what an earlier one left");
}
