//! The account of a namespace.

use crate::cluster::Cluster;
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn every_namespace_has_an_account_and_gets_it_back() {
    let cluster = Cluster::start().await;
    let account = ("v1", "ServiceAccount", "default");
    let first = cluster.until(account, Value::is_object).await;
    cluster.delete("v1", "ServiceAccount", "default").await;
    cluster
        .until(account, |found| found.is_object() && found["metadata"]["uid"] != first["metadata"]["uid"])
        .await;
    cluster.create("v1", "Namespace", json!({"metadata": {"name": "shop"}})).await;
    let namespaces = ("v1", "Namespace");
    cluster.until_all(namespaces, |all| all.iter().any(|one| one["metadata"]["name"] == "shop")).await;
    cluster.delete("v1", "Namespace", "shop").await;
    cluster.until_all(namespaces, |all| !all.iter().any(|one| one["metadata"]["name"] == "shop")).await;
}
