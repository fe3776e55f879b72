//! Services and what goes with them: addresses, ports, endpoints.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fixtures::{core, grouped};
use crate::suite::cases;
use crate::target::Target;

cases! {
    a_service_gets_an_address,
    addresses_are_given_once,
    a_given_address_is_kept,
    a_taken_address_is_refused,
    an_address_outside_the_range_is_refused,
    a_headless_service_gets_none,
    an_external_name_gets_none,
    a_node_port_is_given,
    a_taken_node_port_is_refused,
    a_node_port_outside_the_range_is_refused,
    ports_are_filled_in,
    a_service_needs_ports,
    ports_need_names_when_there_are_more,
    a_service_needs_a_dns_name,
    an_address_cannot_change,
    a_service_may_become_an_external_name,
    a_deleted_services_address_is_free,
    a_port_must_be_a_port,
    slices_are_stored,
    slices_need_an_address_type,
    slices_keep_their_address_type,
    the_kubernetes_service_is_there_and_comes_back,
    affinity_is_filled_in,
}

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

fn port() -> Value {
    json!([{"port": 80}])
}

async fn a_service_gets_an_address(api: Target) {
    let ns = api.namespace().await;
    let answer = api
        .post(&core(&ns, "services"), service("s", json!({"ports": port(), "selector": {"a": "b"}})))
        .await;
    answer.created();
    let address = answer.at("/spec/clusterIP").as_str().unwrap_or_default().to_owned();
    assert!(address.parse::<std::net::IpAddr>().is_ok(), "{answer}");
    answer
        .has("/spec/clusterIPs/0", address.as_str())
        .has("/spec/type", "ClusterIP")
        .has("/status", json!({"loadBalancer": {}}));
}

async fn addresses_are_given_once(api: Target) {
    let ns = api.namespace().await;
    let mut seen = std::collections::BTreeSet::new();
    let made =
        (0..10).map(|n| {
            let (api, ns) = (&api, &ns);
            async move {
                api.post(&core(ns, "services"), service(&format!("s{n}"), json!({"ports": port()}))).await
            }
        });
    for answer in futures_util::future::join_all(made).await {
        let address = answer.created()["spec"]["clusterIP"].to_string();
        assert!(seen.insert(address), "twice: {answer}");
    }
}

/// Frees a service's address and gives it back.
async fn free_address(api: &Target, ns: &str) -> String {
    let made = api.post(&core(ns, "services"), service("probe", json!({"ports": port()}))).await;
    let address = made.created()["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    api.delete(&format!("{}/probe", core(ns, "services"))).await.ok();
    address
}

async fn a_given_address_is_kept(api: Target) {
    let ns = api.namespace().await;
    let address = free_address(&api, &ns).await;
    let answer =
        api.post(&core(&ns, "services"), service("s", json!({"clusterIP": address, "ports": port()}))).await;
    answer.created();
    answer.has("/spec/clusterIP", address.as_str());
}

async fn a_taken_address_is_refused(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&core(&ns, "services"), service("s", json!({"ports": port()}))).await;
    let address = made.at("/spec/clusterIP").as_str().unwrap_or_default().to_owned();
    let answer =
        api.post(&core(&ns, "services"), service("t", json!({"clusterIP": address, "ports": port()}))).await;
    answer.refused(422, "Invalid", &format!("Service \"t\" is invalid: spec.clusterIPs: Invalid value: [\"{address}\"]: failed to allocate IP {address}: provided IP is already allocated"));
}

async fn an_address_outside_the_range_is_refused(api: Target) {
    let ns = api.namespace().await;
    let answer = api
        .post(&core(&ns, "services"), service("s", json!({"clusterIP": "192.0.2.1", "ports": port()})))
        .await;
    answer.refused_with(422, "Invalid", "Service \"s\" is invalid: spec.clusterIPs: Invalid value: [\"192.0.2.1\"]: failed to allocate IP 192.0.2.1: the provided network does not match the current range");
    let answer = api
        .post(&core(&ns, "services"), service("s", json!({"clusterIP": "nonsense", "ports": port()})))
        .await;
    answer.refused_with(
        422,
        "Invalid",
        "spec.clusterIPs[0]: Invalid value: \"nonsense\": must be a valid IP address",
    );
}

async fn a_headless_service_gets_none(api: Target) {
    let ns = api.namespace().await;
    let answer =
        api.post(&core(&ns, "services"), service("s", json!({"clusterIP": "None", "ports": port()}))).await;
    answer.created();
    answer.has("/spec/clusterIP", "None").has("/spec/clusterIPs", json!(["None"]));
}

async fn an_external_name_gets_none(api: Target) {
    let ns = api.namespace().await;
    let spec = json!({"type": "ExternalName", "externalName": "example.com"});
    let answer = api.post(&core(&ns, "services"), service("s", spec)).await;
    answer.created();
    answer.has("/spec/clusterIP", Value::Null).has("/spec/externalName", "example.com");
    let answer = api.post(&core(&ns, "services"), service("t", json!({"type": "ExternalName"}))).await;
    answer.refused_with(422, "Invalid", "spec.externalName: Required value");
}

async fn a_node_port_is_given(api: Target) {
    let ns = api.namespace().await;
    let answer =
        api.post(&core(&ns, "services"), service("s", json!({"type": "NodePort", "ports": port()}))).await;
    answer.created();
    let number = answer.at("/spec/ports/0/nodePort").as_u64().unwrap_or_default();
    assert!((30000..=32767).contains(&number), "{answer}");
    answer.has("/spec/externalTrafficPolicy", "Cluster");
}

async fn a_taken_node_port_is_refused(api: Target) {
    let ns = api.namespace().await;
    let made =
        api.post(&core(&ns, "services"), service("s", json!({"type": "NodePort", "ports": port()}))).await;
    let number = made.created()["spec"]["ports"][0]["nodePort"].as_u64().unwrap_or_default();
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": number}]});
    let answer = api.post(&core(&ns, "services"), service("t", spec)).await;
    answer.refused(422, "Invalid", &format!("Service \"t\" is invalid: spec.ports[0].nodePort: Invalid value: {number}: provided port is already allocated"));
}

async fn a_node_port_outside_the_range_is_refused(api: Target) {
    let ns = api.namespace().await;
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]});
    let answer = api.post(&core(&ns, "services"), service("s", spec)).await;
    answer.refused(422, "Invalid", "Service \"s\" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767");
}

async fn ports_are_filled_in(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&core(&ns, "services"), service("s", json!({"ports": [{"port": 80}]}))).await;
    answer.has("/spec/ports", json!([{"protocol": "TCP", "port": 80, "targetPort": 80}]));
}

async fn a_service_needs_ports(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&core(&ns, "services"), service("s", json!({}))).await;
    answer.refused(422, "Invalid", "Service \"s\" is invalid: spec.ports: Required value");
    answer.has_causes(&["FieldValueRequired spec.ports: Required value"]);
}

async fn ports_need_names_when_there_are_more(api: Target) {
    let ns = api.namespace().await;
    let answer =
        api.post(&core(&ns, "services"), service("s", json!({"ports": [{"port": 80}, {"port": 81}]}))).await;
    answer.is(422);
    answer.has_causes(&[
        "FieldValueRequired spec.ports[0].name: Required value",
        "FieldValueRequired spec.ports[1].name: Required value",
    ]);
    let twice = json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 80}]});
    let answer = api.post(&core(&ns, "services"), service("s", twice)).await;
    answer.refused_with(422, "Invalid", "spec.ports[1]: Duplicate value: ");
}

async fn a_service_needs_a_dns_name(api: Target) {
    let ns = api.namespace().await;
    api.post(&core(&ns, "services"), service("1a", json!({"ports": port()}))).await.created();
    let answer = api.post(&core(&ns, "services"), service("With.Dot", json!({"ports": port()}))).await;
    answer.refused_with(
        422,
        "Invalid",
        "Service \"With.Dot\" is invalid: metadata.name: Invalid value: \"With.Dot\": ",
    );
}

async fn an_address_cannot_change(api: Target) {
    let ns = api.namespace().await;
    api.post(&core(&ns, "services"), service("s", json!({"ports": port()}))).await.created();
    let path = format!("{}/s", core(&ns, "services"));
    let answer = api.merge(&path, json!({"spec": {"clusterIP": "None", "clusterIPs": ["None"]}})).await;
    answer.refused_with(
        422,
        "Invalid",
        "spec.clusterIPs[0]: Invalid value: [\"None\"]: may not change once set",
    );
    // Without it, the address stays.
    let before = api.get(&path).await.at("/spec/clusterIP");
    let answer = api.put(&path, service("s", json!({"ports": [{"port": 81}]}))).await;
    answer.ok();
    answer.has("/spec/clusterIP", before);
}

async fn a_service_may_become_an_external_name(api: Target) {
    let ns = api.namespace().await;
    api.post(&core(&ns, "services"), service("s", json!({"ports": port()}))).await.created();
    let patch = json!({"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": "", "clusterIPs": null}});
    let answer = api.merge(&format!("{}/s", core(&ns, "services")), patch).await;
    answer.ok();
    answer.has("/spec/clusterIP", Value::Null);
}

async fn a_deleted_services_address_is_free(api: Target) {
    let ns = api.namespace().await;
    let address = free_address(&api, &ns).await;
    let again = service("s", json!({"clusterIP": address, "ports": port()}));
    api.post(&core(&ns, "services"), again).await.created();
}

async fn a_port_must_be_a_port(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&core(&ns, "services"), service("s", json!({"ports": [{"port": 70000}]}))).await;
    answer.refused_with(
        422,
        "Invalid",
        "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive",
    );
    let answer = api
        .post(&core(&ns, "services"), service("s", json!({"ports": [{"port": 80, "protocol": "ICMP"}]})))
        .await;
    answer.refused_with(
        422,
        "Invalid",
        "spec.ports[0].protocol: Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
    );
}

fn slice(kind: &str) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "a", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": kind, "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}], "ports": [{"name": "http", "port": 80, "protocol": "TCP"}],
    })
}

async fn slices_are_stored(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("discovery.k8s.io/v1", &ns, "endpointslices");
    let answer = api.post(&path, slice("IPv4")).await;
    answer.created();
    answer
        .has("/addressType", "IPv4")
        .has("/endpoints/0/addresses/0", "10.0.0.1")
        .has("/ports/0/port", 80)
        .has("/metadata/generation", 1);
    let mut body = answer.body.clone();
    body["endpoints"][0]["conditions"]["ready"] = json!(false);
    api.put(&format!("{path}/a"), body)
        .await
        .has("/endpoints/0/conditions/ready", false)
        .has("/metadata/generation", 2);
}

async fn slices_need_an_address_type(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("discovery.k8s.io/v1", &ns, "endpointslices");
    let answer = api.post(&path, slice("")).await;
    answer.refused_with(422, "Invalid", "addressType: Required value");
    let answer = api.post(&path, slice("Carrier")).await;
    answer.refused_with(
        422,
        "Invalid",
        "addressType: Unsupported value: \"Carrier\": supported values: \"FQDN\", \"IPv4\", \"IPv6\"",
    );
    let mut body = slice("IPv4");
    body["endpoints"][0]["addresses"] = json!(["nonsense"]);
    api.post(&path, body).await.refused_with(
        422,
        "Invalid",
        "endpoints[0].addresses[0]: Invalid value: \"nonsense\": must be a valid IP address",
    );
}

async fn slices_keep_their_address_type(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("discovery.k8s.io/v1", &ns, "endpointslices");
    api.post(&path, slice("IPv4")).await.created();
    let answer = api.merge(&format!("{path}/a"), json!({"addressType": "IPv6", "endpoints": []})).await;
    answer.refused_with(422, "Invalid", "addressType: Invalid value: \"IPv6\": field is immutable");
}

async fn the_kubernetes_service_is_there_and_comes_back(api: Target) {
    let path = format!("{}/kubernetes", core("default", "services"));
    let first = api.get(&path).await;
    first.ok();
    first.has("/spec/ports/0/port", 443).has("/spec/ports/0/name", "https");
    api.delete(&path).await.ok();
    let other =
        |answer: &Answer| answer.code == 200 && answer.at("/metadata/uid") != first.at("/metadata/uid");
    let second = api.until(&path, other).await;
    second.has("/spec/clusterIP", first.at("/spec/clusterIP").clone());
}

async fn affinity_is_filled_in(api: Target) {
    let ns = api.namespace().await;
    let answer = api
        .post(&core(&ns, "services"), service("s", json!({"sessionAffinity": "ClientIP", "ports": port()})))
        .await;
    answer.has("/spec/sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10800}}));
    let answer = api.post(&core(&ns, "services"), service("t", json!({"ports": port()}))).await;
    answer.has("/spec/sessionAffinity", "None").has("/spec/internalTrafficPolicy", "Cluster");
}
