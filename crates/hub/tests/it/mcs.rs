//! What a `MultiClusterService` does, from its manifest to the members and back to its conditions.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::world::{Cluster, Outcome, World};

#[allow(clippy::needless_pass_by_value)] // a manifest is written where it is used
fn mcs(name: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
        "metadata": {"name": name, "namespace": "shop"}, "spec": {"types": ["CrossCluster"]}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn between(providers: &[&str], consumers: &[&str]) -> Value {
    let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
    json!({"providerClusters": named(providers), "consumerClusters": named(consumers)})
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}})
}

fn slice(service: &str, name: &str, address: &str) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}},
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}, "nodeName": "n1"}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]})
}

/// The status and message of a condition.
fn condition(object: &Value, kind: &str) -> (String, String) {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == kind).unwrap_or_default();
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

async fn is_fine(hub: &Cluster, object: &Value) -> anyhow::Result<Value> {
    hub.becomes(object, "both conditions are True", |found| {
        ["ServiceApplied", "EndpointSliceDispatched"].iter().all(|kind| condition(found, kind).0 == "True")
    })
    .await
}

/// The cells of one object's row, by column.
async fn shown_in_table(hub: &Cluster, name: &str) -> anyhow::Result<Value> {
    let path = "/apis/networking.karmada.io/v1alpha1/namespaces/shop/multiclusterservices";
    let ask = http::Request::get(path).header("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    let table: Value = serde_json::from_str(&hub.client.request_text(ask.body(Vec::new())?).await?)?;
    let columns = table["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let rows = table["rows"].as_array().cloned().unwrap_or_default();
    let row = rows.into_iter().find(|row| row["cells"][0] == name).unwrap_or_default();
    let cells = row["cells"].as_array().cloned().unwrap_or_default();
    let named = columns.iter().zip(cells);
    Ok(named.map(|(column, cell)| (column["name"].as_str().unwrap_or_default().to_owned(), cell)).collect())
}

async fn told(hub: &Cluster, reason: &str) -> Outcome {
    let kind = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop"}});
    for _ in 0..500 {
        let events = hub.list(&kind, "").await?;
        if events.iter().any(|event| event.data["reason"] == reason) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("no event {reason}")
}

async fn two() -> anyhow::Result<World> {
    let world = World::start(2).await?;
    world.hub.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    world.hub.apply(service("serve")).await?;
    for (number, member) in (1..).zip(&world.members) {
        member.apply(slice("serve", &format!("serve-{number}"), &format!("10.{number}.0.1"))).await?;
    }
    Ok(world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_get_the_service_and_the_providers_slices_and_conditions_tell_the_truth() -> Outcome {
    let mut world = two().await?;
    let object = mcs("serve", between(&["member1"], &["member2"]));
    world.hub.apply(object.clone()).await?;
    let [m1, m2] = &world.members[..] else { anyhow::bail!("two members") };
    m2.reaches("serve", &["10.1.0.1"]).await?;
    let shown = is_fine(&world.hub, &object).await?;
    ensure!(condition(&shown, "ServiceApplied").1 == "Service is propagated to target clusters.");
    ensure!(condition(&shown, "EndpointSliceDispatched").1 == "EndpointSlice are dispatched successfully");
    ensure!(shown["status"]["providers"] == 1 && shown["status"]["consumers"] == 1, "{shown:#}");
    ensure!(shown["status"]["endpoints"] == 1, "{shown:#}");
    let labels = &shown["metadata"]["labels"];
    ensure!(labels["multiclusterservice.karmada.io/permanent-id"].as_str().is_some_and(|id| id.len() == 36));
    ensure!(shown["metadata"]["finalizers"] == json!(["karmada.io/multiclusterservice-controller"]));
    for reason in ["SyncServiceSucceed", "DispatchEndpointSliceSucceed"] {
        told(&world.hub, reason).await?;
    }
    for member in [m1, m2] {
        let there = member.get(&service("serve")).await?;
        ensure!(there["spec"]["ports"][0]["port"] == 80, "{there:#}");
    }

    // Two providers, of which one consumes; then the other way round; then a cluster that does not exist.
    world.hub.apply(mcs("serve", between(&["member1", "member2"], &["member2"]))).await?;
    m2.reaches("serve", &["10.1.0.1"]).await?;
    world.hub.apply(mcs("serve", between(&["member2"], &["member1"]))).await?;
    m1.reaches("serve", &["10.2.0.1"]).await?;
    m2.reaches("serve", &[]).await?;
    is_fine(&world.hub, &object).await?;
    world.hub.apply(mcs("serve", between(&["member2", "nobody"], &["member1"]))).await?;
    told(&world.hub, "ClusterNotFound").await?;
    let lacking = world
        .hub
        .becomes(&object, "it says who is missing", |found| {
            condition(found, "ServiceApplied").1.contains("nobody")
        })
        .await?;
    ensure!(condition(&lacking, "ServiceApplied").0 == "False");

    // All, one way and the other.
    for spec in [between(&[], &["member2"]), between(&["member1"], &[]), between(&[], &[])] {
        world.hub.apply(mcs("serve", spec)).await?;
        m2.reaches("serve", &["10.1.0.1"]).await?;
    }
    m1.reaches("serve", &["10.2.0.1"]).await?;
    is_fine(&world.hub, &object).await?;

    world.hub.delete(&object).await?;
    for member in [m1, m2] {
        member.reaches("serve", &[]).await?;
        ensure!(!member.get(&service("serve")).await?.is_null(), "the Service stays");
    }
    world.hub.becomes(&object, "the MultiClusterService is gone", Value::is_null).await?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_are_checked_in_karmadas_words() -> Outcome {
    let mut world = World::start(0).await?;
    world.hub.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    let ready =
        async |object: Value| world.hub.apply(object).await.map(drop).map_err(|error| error.to_string());
    let give_up = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while let Err(why) = ready(mcs("ready", json!({}))).await {
        ensure!(tokio::time::Instant::now() < give_up, "the kind is not served: {why}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let (label, most) = ("a lowercase RFC 1123 label must consist of", "must be no more than 63 characters");
    let long = "a".repeat(64);
    let ready_again = json!({"types": ["LoadBalancer"]});
    let mut tried = Vec::new();
    for (name, spec, at, words) in [
        ("1web", json!({}), "", "a DNS-1035 label must consist of"),
        (&long, json!({}), "", most),
        (
            "web",
            json!({"types": ["CrossCluster", "LoadBalancer"]}),
            "spec.types",
            "MultiClusterService types should not contain more than one type",
        ),
        ("web", json!({"types": ["NodePort"]}), "spec.types[]", "ExposureType Error"),
        ("ready", ready_again, "spec.types", "MultiClusterService types are immutable"),
        (
            "web",
            json!({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}),
            "spec.ports",
            "Duplicate value",
        ),
        ("web", json!({"ports": [{"name": "No", "port": 1}]}), "spec.ports[].name", label),
        ("web", json!({"ports": [{"name": long, "port": 1}]}), "spec.ports[].name", most),
        (
            "web",
            json!({"ports": [{"port": 0}]}),
            "spec.ports[].port",
            "must be between 1 and 65535, inclusive",
        ),
        (
            "web",
            json!({"ports": [{"port": 65536}]}),
            "spec.ports[].port",
            "must be between 1 and 65535, inclusive",
        ),
    ] {
        let refused = ready(mcs(name, spec.clone())).await.err().unwrap_or_default();
        ensure!(refused.contains(words), "{spec} is answered with {refused:?}, and not {words:?}");
        tried.push((at.to_owned(), words));
    }
    for side in ["providerClusters", "consumerClusters"] {
        for (cluster, words) in [
            (String::new(), "must be not empty"),
            ("a".repeat(49), "must be no more than 48 characters"),
            ("Member_1".to_owned(), label),
        ] {
            let refused =
                ready(mcs("web", json!({side: [{"name": cluster}]}))).await.err().unwrap_or_default();
            ensure!(refused.contains(words), "{side} {cluster:?} is answered with {refused:?}");
            tried.push((format!("spec.{side}[].name"), words));
        }
    }
    for rule in atoll_api::crds::rules::MULTI_CLUSTER_SERVICE {
        let of_rule = |(at, words): &(String, &str)| at == rule.at && rule.message.contains(words);
        ensure!(tried.iter().any(of_rule), "no object breaks the rule on {:?}: {}", rule.at, rule.message);
    }
    let fine = json!({"ports": [{"port": 80}, {"port": 81}, {"name": "x", "port": 82}]});
    ensure!(ready(mcs("web", fine)).await.is_ok());
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_members_owner_set_on_the_service_stays_and_it_goes_only_where_we_made_it() -> Outcome {
    let mut world = two().await?;
    let mut theirs = service("serve");
    theirs["spec"]["type"] = "NodePort".into();
    theirs["spec"]["ports"][0]["nodePort"] = 30080.into();
    theirs["metadata"]["annotations"] = json!({"team": "blue"});
    let before = world.members[1].create(theirs).await?;
    world.hub.delete(&service("serve")).await?;
    let object = mcs("serve", between(&["member1"], &["member2"]));
    world.hub.apply(object.clone()).await?;
    // Not there yet: said, and not taken for done.
    let waiting = world
        .hub
        .becomes(&object, "the missing Service is said", |found| {
            condition(found, "ServiceApplied").1.contains("there is no Service serve in the hub")
        })
        .await?;
    ensure!(condition(&waiting, "ServiceApplied").0 == "False");
    let mut template = service("serve");
    template["spec"]["type"] = "NodePort".into();
    world.hub.apply(template).await?;
    is_fine(&world.hub, &object).await?;
    let after = world.members[1].get(&service("serve")).await?;
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        ensure!(after["spec"][field] == before["spec"][field], "{field}: {after:#}");
    }
    ensure!(after["spec"]["ports"][0]["nodePort"] == 30080, "{after:#}");
    ensure!(after["metadata"]["annotations"]["team"] == "blue", "{after:#}");
    ensure!(after["spec"]["selector"]["app"] == "serve", "what the hub says is said here too");

    // Both leave the list: it stays where it was theirs, and goes where we made it.
    world.join("member3").await?;
    world.hub.apply(mcs("serve", between(&["member3"], &["member3"]))).await?;
    world.members[0].becomes(&service("serve"), "ours is taken away", Value::is_null).await?;
    let kept = world.members[1]
        .becomes(&service("serve"), "theirs is theirs again", |found| {
            found["metadata"]["labels"]["atoll.dev/propagated-by"].is_null()
        })
        .await?;
    ensure!(kept["metadata"]["uid"] == before["metadata"]["uid"]);
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_of_the_user_has_the_service_again_when_the_multi_cluster_service_goes() -> Outcome {
    let mut world = two().await?;
    let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "serve", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "Service", "name": "serve"}],
            "placement": {"clusterAffinity": {"clusterNames": ["member1"]}}}});
    world.hub.apply(policy).await?;
    let there = |found: &Value| !found.is_null();
    world.members[0].becomes(&service("serve"), "the policy brings it", there).await?;
    let first = world.members[0].get(&service("serve")).await?;
    let object = mcs("serve", between(&["member1"], &["member2"]));
    world.hub.apply(object.clone()).await?;
    world.members[1].becomes(&service("serve"), "the MultiClusterService brings it", there).await?;
    is_fine(&world.hub, &object).await?;
    world.hub.delete(&object).await?;
    world.members[1].becomes(&service("serve"), "the policy does not want it there", Value::is_null).await?;
    let binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "serve-service", "namespace": "shop"}});
    world
        .hub
        .becomes(&binding, "it is where the policy says", |found| {
            let clusters = found["spec"]["clusters"].as_array().cloned().unwrap_or_default();
            clusters.iter().map(|one| &one["name"]).eq(["member1"])
        })
        .await?;
    let last = world.members[0].get(&service("serve")).await?;
    ensure!(last["metadata"]["uid"] == first["metadata"]["uid"], "it was never taken away: {last:#}");
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_hub_takes_nothing_away_and_finishes_what_was_deleted_meanwhile() -> Outcome {
    let mut world = two().await?;
    let object = mcs("serve", between(&["member1"], &["member2"]));
    world.hub.apply(object.clone()).await?;
    world.members[1].reaches("serve", &["10.1.0.1"]).await?;
    is_fine(&world.hub, &object).await?;
    let made = |found: &Value| found["metadata"]["uid"].clone();
    let dispatched = slice("serve", "member1-serve-1", "10.1.0.1");
    let first = made(&world.members[1].get(&dispatched).await?);
    ensure!(!first.is_null());
    world.halt().await?;
    world.members[0].apply(slice("serve", "serve-1", "10.1.0.9")).await?;
    world.run();
    world.members[1].reaches("serve", &["10.1.0.9"]).await?;
    ensure!(made(&world.members[1].get(&dispatched).await?) == first, "it was changed, and not made anew");

    world.halt().await?;
    world.hub.delete(&object).await?;
    world.run();
    world.members[1].reaches("serve", &[]).await?;
    world.hub.becomes(&object, "the MultiClusterService is gone", Value::is_null).await?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_cut_off_is_kept_and_shown_as_stale_or_withdrawn_as_asked() -> Outcome {
    let mut world = two().await?;
    let retained = mcs("serve", between(&["member1"], &["member2"]));
    world.hub.apply(retained.clone()).await?;
    let mut withdrawn = mcs("other", between(&["member1"], &["member2"]));
    withdrawn["metadata"]["annotations"] = json!({"atoll.dev/liveness": "Withdraw"});
    world.hub.apply(service("other")).await?;
    world.members[0].apply(slice("other", "other-1", "10.1.0.2")).await?;
    world.hub.apply(withdrawn).await?;
    world.members[1].reaches("serve", &["10.1.0.1"]).await?;
    world.members[1].reaches("other", &["10.1.0.2"]).await?;
    is_fine(&world.hub, &retained).await?;

    world.members[0].cut();
    world.members[1].reaches("other", &[]).await?;
    let stale = world
        .hub
        .becomes(&retained, "the provider is shown as stale", |found| {
            found["status"]["clusters"][0]["staleSince"].is_string()
        })
        .await?;
    ensure!(condition(&stale, "EndpointSliceDispatched").1.contains("stale since"), "{stale:#}");
    // As `kubectl get mcs -o wide` prints it.
    let row = shown_in_table(&world.hub, "serve").await?;
    let since = &stale["status"]["clusters"][0]["staleSince"];
    ensure!(since.as_str().is_some_and(|since| since.ends_with('Z')), "{stale:#}");
    for (column, want) in [("Providers", json!(1)), ("Consumers", json!(1)), ("Endpoints", json!(1))] {
        ensure!(row[column] == want, "{column}: {row:#}");
    }
    ensure!(row["Stale"] == "member1" && row["Dispatched"] == "True", "{row:#}");
    world.members[1].reaches("serve", &["10.1.0.1"]).await?;

    world.members[0].serve().await?;
    world.members[1].reaches("other", &["10.1.0.2"]).await?;
    world
        .hub
        .becomes(&retained, "it is stale no more", |found| {
            found["status"]["clusters"][0]["staleSince"].is_null()
        })
        .await?;

    // A cluster that leaves takes its slices with it.
    let cluster = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": "member1"}});
    world.hub.delete(&cluster).await?;
    world.members[1].reaches("serve", &[]).await?;
    world.halt().await
}

/// It has never heard the provider, and no ServiceExport is remembered of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_starts_while_a_provider_is_away_keeps_what_it_gave() -> Outcome {
    let mut world = two().await?;
    let object = mcs("serve", between(&["member1"], &["member2"]));
    world.hub.apply(object.clone()).await?;
    world.members[1].reaches("serve", &["10.1.0.1"]).await?;
    is_fine(&world.hub, &object).await?;
    let dispatched = slice("serve", "member1-serve-1", "");
    let before = world.members[1].get(&dispatched).await?;
    world.halt().await?;
    world.members[0].cut();
    world.run();
    world
        .hub
        .becomes(&object, "the new hub shows it as stale", |found| {
            found["status"]["clusters"][0]["staleSince"].is_string()
        })
        .await?;
    let after = world.members[1].get(&dispatched).await?;
    ensure!(!after.is_null() && after["metadata"]["uid"] == before["metadata"]["uid"], "{after:#}");
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_clash_or_are_too_long_exports_and_ports() -> Outcome {
    let mut world = two().await?;
    world.join("member3").await?;
    let long = format!("serve-{}", "x".repeat(240));
    world.members[0].apply(slice("serve", &long, "10.1.0.2")).await?;
    world.members[1].apply(slice("serve", "serve-1", "10.2.0.2")).await?; // as member1 calls its own
    let export = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": "serve", "namespace": "shop"}});
    world.members[0].apply(export).await?;
    let object = mcs("serve", between(&["member1", "member2"], &["member3"]));
    world.hub.apply(object.clone()).await?;
    let all = ["10.1.0.1", "10.1.0.2", "10.2.0.1", "10.2.0.2"];
    world.members[2].reaches("serve", &all).await?;
    let (names, _) = world.members[2].dispatched("serve").await?;
    ensure!(names.iter().any(|name| name.starts_with("member1.")), "{names:?}");
    ensure!(
        names.contains(&"member1-serve-1".to_owned()) && names.contains(&"member2-serve-1".to_owned()),
        "{names:?}"
    );
    // The export has its own slices, on the derived Service; facts are neither.
    let imported = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "derived-serve", "namespace": "shop"}});
    world.members[2].becomes(&imported, "the export is imported", |found| !found.is_null()).await?;
    world.members[2].reaches("serve", &all).await?;

    // A port that no service has crosses nowhere, and that is said.
    let mut filtered = mcs("serve", between(&["member1", "member2"], &["member3"]));
    filtered["spec"]["ports"] = json!([{"port": 81}]);
    world.hub.apply(filtered).await?;
    let said = world
        .hub
        .becomes(&object, "the port is said to be missing", |found| {
            condition(found, "EndpointSliceDispatched").1.contains("no port 81")
        })
        .await?;
    ensure!(condition(&said, "EndpointSliceDispatched").0 == "False");
    let first = slice("serve", "member1-serve-1", "");
    world.members[2]
        .becomes(&first, "no port crosses", |found| found["ports"].as_array().is_none_or(Vec::is_empty))
        .await?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_is_exported_through_the_hub_is_mirrored_there() -> Outcome {
    let mut world = two().await?;
    let export = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
        "metadata": {"name": "serve", "namespace": "shop"}});
    let policy = |kind: &str, api: &str, name: &str| {
        json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
            "metadata": {"name": name, "namespace": "shop"},
            "spec": {"resourceSelectors": [{"apiVersion": api, "kind": kind, "name": "serve"}],
                "placement": {"clusterAffinity": {"clusterNames": ["member1"]}}}})
    };
    world.hub.apply(export.clone()).await?;
    world.hub.apply(policy("ServiceExport", "multicluster.x-k8s.io/v1beta1", "export")).await?;
    world.hub.apply(policy("Service", "v1", "service")).await?;
    let copy = slice("serve", "imported-member1-serve-1", "");
    let address = |found: &Value| found["endpoints"][0]["addresses"][0].clone();
    let there = world.hub.becomes(&copy, "it is mirrored", |found| address(found) == "10.1.0.1").await?;
    ensure!(there["metadata"]["labels"]["kubernetes.io/service-name"] == "derived-serve", "{there:#}");
    ensure!(there["endpoints"][0]["nodeName"].is_null(), "{there:#}");
    world.members[0].apply(slice("serve", "serve-1", "10.1.0.7")).await?;
    world.hub.becomes(&copy, "it follows", |found| address(found) == "10.1.0.7").await?;

    // A hub that starts anew knows its copies, and what is exported no more goes.
    world.halt().await?;
    world.members[0].apply(slice("serve", "serve-1", "10.1.0.8")).await?;
    world.run();
    world.hub.becomes(&copy, "it follows", |found| address(found) == "10.1.0.8").await?;
    world.halt().await?;
    world.hub.delete(&export).await?;
    world.run();
    world.hub.becomes(&copy, "it is gone", Value::is_null).await?;
    world.halt().await
}
