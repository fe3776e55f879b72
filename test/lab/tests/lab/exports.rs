//! A service exported in one real cluster is reached from all: the rules of KEP-1645, as a user sees them.

use crate::harness::{Outcome, Suite};
use crate::mcs::{
    addresses, answered, condition, deployment, endpoints_are, export, export_says, export_with, import_is,
    nothing_is_imported, serve, service, unexport, who_answers,
};
use anyhow::{Context, ensure};
use atoll_lab::Lab;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

pub(crate) fn tests(suite: &mut Suite) {
    suite.set_test("an_exported_service_is_reached_from_every_cluster", reached_from_every_cluster);
    suite.set_test("two_exporters_both_answer_and_one_remains", two_exporters);
    suite.set_test("what_is_not_exported_is_not_imported", not_exported);
    suite.set_test("a_namespace_that_comes_later_imports_then", a_later_namespace);
    suite.set_test("external_names_and_missing_services_are_invalid", invalid_exports);
    suite.set_test("node_ports_and_load_balancers_export_as_cluster_set_ip", other_types);
    suite.set_test("affinity_and_policies_are_carried", carried);
    suite.set_test("headless_services_have_no_address", headless);
    suite.set_test("ports_change_and_replicas_scale", ports_and_scale);
    suite.set_test("two_hundred_and_fifty_endpoints_arrive", many_endpoints);
    suite.set_test("a_member_announces_no_api_address_of_another_member", stranger);
    suite.set_test("a_changed_derived_service_is_repaired", drift);
    suite.set_test("a_users_service_of_the_derived_name_is_left_alone", taken_name);
    suite.set_test("every_conflict_shows_on_all_exports", conflicts);
    suite.set_test("traffic_to_a_port_reaches_only_clusters_that_expose_it", strict_ports);
    suite.set_test("editors_may_export_and_may_not_import", roles);
}

async fn namespaces(lab: &Lab, namespace: &str) -> Outcome {
    for cluster in lab.clusters() {
        cluster.namespace(namespace).await?;
    }
    Ok(())
}

async fn reached_from_every_cluster(lab: &Lab) -> Outcome {
    namespaces(lab, "reach").await?;
    serve(lab.member(1), "reach", "web").await?;
    for cluster in lab.clusters() {
        cluster.tools("reach", "tools").await?;
    }
    export(lab.member(1), "reach", "web").await?;
    for cluster in lab.clusters() {
        answered(cluster, "reach", "web", "member1").await?;
        let import = import_is(cluster, "reach", "web", "it is ready", |import| {
            condition(import, "Ready").is_some_and(|(is, _)| is == "True/Ready")
        })
        .await?;
        ensure!(import["spec"]["ips"].as_array().map(Vec::len) == Some(2), "both families: {import}");
        ensure!(import["status"]["clusters"][0]["cluster"] == "member1", "{import}");
        ensure!(import["status"]["endpointSliceObjects"] == "Present", "{import}");
    }
    export_says(lab.member(1), "reach", "web", "Valid", "True/Valid").await?;
    export_says(lab.member(1), "reach", "web", "Ready", "True/Exported").await?;
    export_says(lab.member(1), "reach", "web", "Conflict", "False/NoConflicts").await?;
    unexport(lab.member(1), "reach", "web").await?;
    for cluster in lab.clusters() {
        nothing_is_imported(cluster, "reach", "web").await?;
    }
    Ok(())
}

async fn two_exporters(lab: &Lab) -> Outcome {
    namespaces(lab, "two").await?;
    for cluster in [lab.member(1), lab.member(2)] {
        serve(cluster, "two", "web").await?;
        export(cluster, "two", "web").await?;
    }
    lab.member(3).tools("two", "tools").await?;
    endpoints_are(lab.member(3), "two", "web", "IPv4", 2).await?;
    let before = addresses(lab.member(3), "two", "web").await?;
    answered(lab.member(3), "two", "web", "member1").await?;
    answered(lab.member(3), "two", "web", "member2").await?;
    unexport(lab.member(1), "two", "web").await?;
    endpoints_are(lab.member(3), "two", "web", "IPv4", 1).await?;
    answered(lab.member(3), "two", "web", "member2").await?;
    let who = who_answers(lab.member(3), "two", "web", 20).await?;
    ensure!(who.keys().eq(["member2"]), "{who:?}");
    ensure!(addresses(lab.member(3), "two", "web").await? == before, "the addresses stay");
    unexport(lab.member(2), "two", "web").await
}

async fn not_exported(lab: &Lab) -> Outcome {
    namespaces(lab, "private").await?;
    serve(lab.member(1), "private", "secret").await?;
    serve(lab.member(1), "private", "public").await?;
    // A Service of the same name that its own cluster does not export is never included.
    serve(lab.member(2), "private", "public").await?;
    export(lab.member(1), "private", "public").await?;
    endpoints_are(lab.member(3), "private", "public", "IPv4", 1).await?;
    nothing_is_imported(lab.member(3), "private", "secret").await?;
    unexport(lab.member(1), "private", "public").await
}

async fn a_later_namespace(lab: &Lab) -> Outcome {
    for cluster in [lab.member(1), lab.member(2)] {
        cluster.namespace("later").await?;
    }
    serve(lab.member(1), "later", "web").await?;
    export(lab.member(1), "later", "web").await?;
    addresses(lab.member(2), "later", "web").await?;
    nothing_is_imported(lab.member(3), "later", "web").await?;
    lab.member(3).namespace("later").await?;
    lab.member(3).tools("later", "tools").await?;
    answered(lab.member(3), "later", "web", "member1").await?;
    unexport(lab.member(1), "later", "web").await
}

async fn invalid_exports(lab: &Lab) -> Outcome {
    namespaces(lab, "invalid").await?;
    let one = lab.member(1);
    export(one, "invalid", "nowhere").await?;
    export_says(one, "invalid", "nowhere", "Valid", "False/NoService").await?;
    one.apply(&[json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "external", "namespace": "invalid"},
        "spec": {"type": "ExternalName", "externalName": "example.com"},
    })])
    .await?;
    export(one, "invalid", "external").await?;
    export_says(one, "invalid", "external", "Valid", "False/InvalidServiceType").await?;
    for name in ["nowhere", "external"] {
        nothing_is_imported(lab.member(2), "invalid", name).await?;
    }
    // The Service that was missing comes.
    serve(one, "invalid", "nowhere").await?;
    export_says(one, "invalid", "nowhere", "Valid", "True/Valid").await?;
    addresses(lab.member(2), "invalid", "nowhere").await?;
    unexport(one, "invalid", "nowhere").await
}

async fn other_types(lab: &Lab) -> Outcome {
    namespaces(lab, "types").await?;
    lab.member(2).tools("types", "tools").await?;
    for (name, kind) in [("node-port", "NodePort"), ("balancer", "LoadBalancer")] {
        let one = lab.member(1);
        one.apply(&[deployment(one, "types", name, 1), service("types", name, &json!({"type": kind}))])
            .await?;
        export(one, "types", name).await?;
        answered(lab.member(2), "types", name, "member1").await?;
        let derived: Api<Service> = Api::namespaced(lab.member(2).client().await?, "types");
        let derived = derived.get(&format!("derived-{name}")).await?.spec.context("a spec")?;
        ensure!(derived.type_.as_deref() == Some("ClusterIP"), "{derived:?}");
        ensure!(derived.selector.is_none_or(|selector| selector.is_empty()), "no selector");
        unexport(one, "types", name).await?;
    }
    Ok(())
}

async fn carried(lab: &Lab) -> Outcome {
    namespaces(lab, "carried").await?;
    let one = lab.member(1);
    let more = json!({
        "sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 77}},
        "internalTrafficPolicy": "Cluster", "trafficDistribution": "PreferSameZone",
    });
    one.apply(&[service("carried", "web", &more)]).await?;
    export_with(
        one,
        "carried",
        "web",
        json!({
            "exportedLabels": {"team": "shop"}, "exportedAnnotations": {"note": "carried"},
        }),
    )
    .await?;
    let import = import_is(lab.member(2), "carried", "web", "it is there", |_| true).await?;
    let spec = &import["spec"];
    for (key, want) in [
        ("type", json!("ClusterSetIP")),
        ("sessionAffinity", json!("ClientIP")),
        ("sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 77}})),
        ("internalTrafficPolicy", json!("Cluster")),
        ("trafficDistribution", json!("PreferSameZone")),
    ] {
        ensure!(spec[key] == want, "{key}: {spec}");
    }
    ensure!(import["metadata"]["labels"]["team"] == "shop", "{import}");
    ensure!(import["metadata"]["annotations"]["note"] == "carried", "{import}");
    let derived: Api<Service> = Api::namespaced(lab.member(2).client().await?, "carried");
    let derived = derived.get("derived-web").await?.spec.context("a spec")?;
    ensure!(derived.session_affinity.as_deref() == Some("ClientIP"), "{derived:?}");
    ensure!(derived.traffic_distribution.as_deref() == Some("PreferSameZone"), "{derived:?}");
    unexport(one, "carried", "web").await
}

async fn headless(lab: &Lab) -> Outcome {
    namespaces(lab, "headless").await?;
    let one = lab.member(1);
    one.apply(&[
        deployment(one, "headless", "web", 2),
        service("headless", "web", &json!({"clusterIP": "None"})),
    ])
    .await?;
    export(one, "headless", "web").await?;
    let import = import_is(lab.member(2), "headless", "web", "it is headless", |import| {
        import["spec"]["type"] == "Headless"
    })
    .await?;
    ensure!(import["spec"]["ips"].as_array().is_none_or(Vec::is_empty), "no address: {import}");
    ensure!(import["spec"]["ipFamilies"].as_array().is_some_and(|families| !families.is_empty()), "{import}");
    let slices = endpoints_are(lab.member(2), "headless", "web", "IPv4", 2).await?;
    for slice in slices {
        let labels = slice.metadata.labels.unwrap_or_default();
        ensure!(
            labels.get("multicluster.kubernetes.io/source-cluster").map(String::as_str) == Some("member1")
        );
        ensure!(
            labels.get("kubernetes.io/service-name").map(String::as_str) == Some("derived-web"),
            "{labels:?}"
        );
        let leaked = slice
            .endpoints
            .unwrap_or_default()
            .iter()
            .any(|endpoint| endpoint.node_name.is_some() || endpoint.target_ref.is_some());
        ensure!(!leaked, "node names and pods of another cluster stay behind");
    }
    unexport(one, "headless", "web").await
}

async fn ports_and_scale(lab: &Lab) -> Outcome {
    namespaces(lab, "change").await?;
    let one = lab.member(1);
    serve(one, "change", "web").await?;
    export(one, "change", "web").await?;
    endpoints_are(lab.member(2), "change", "web", "IPv4", 1).await?;
    one.apply(&[deployment(one, "change", "web", 3)]).await?;
    endpoints_are(lab.member(2), "change", "web", "IPv4", 3).await?;
    one.apply(&[deployment(one, "change", "web", 1)]).await?;
    endpoints_are(lab.member(2), "change", "web", "IPv4", 1).await?;
    let before = addresses(lab.member(2), "change", "web").await?;
    let ports = json!({"ports": [
        {"name": "http", "port": 8000, "targetPort": 8080, "protocol": "TCP"},
        {"name": "udp", "port": 81, "targetPort": 8081, "protocol": "UDP"},
    ]});
    one.apply(&[service("change", "web", &ports)]).await?;
    import_is(lab.member(2), "change", "web", "the port is 8000", |import| {
        import["spec"]["ports"].as_array().into_iter().flatten().any(|port| port["port"] == 8000)
    })
    .await?;
    lab.member(2).tools("change", "tools").await?;
    let ask = format!("workload fetch --timeout=2s --address={}:8000", before[0]);
    lab.member(2).exec_until("change", "tools", &ask, |said| said.starts_with("member1")).await?;
    ensure!(addresses(lab.member(2), "change", "web").await? == before, "the addresses stay");
    unexport(one, "change", "web").await
}

async fn many_endpoints(lab: &Lab) -> Outcome {
    namespaces(lab, "many").await?;
    let one = lab.member(1);
    let slice = |number: u32| {
        let endpoints: Vec<Value> = (1..=50)
            .map(|host| json!({"addresses": [format!("10.11.{number}.{host}")], "conditions": {"ready": true}}))
            .collect();
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "name": format!("web-{number}"), "namespace": "many", "labels": {"kubernetes.io/service-name": "web"},
            },
            "endpoints": endpoints, "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        })
    };
    let selectorless = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "many"},
        "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    });
    let mut objects = vec![selectorless];
    objects.extend((1..=5).map(slice));
    one.apply(&objects).await?;
    export(one, "many", "web").await?;
    for cluster in lab.clusters() {
        endpoints_are(cluster, "many", "web", "IPv4", 250).await?;
    }
    unexport(one, "many", "web").await
}

async fn stranger(lab: &Lab) -> Outcome {
    namespaces(lab, "stranger").await?;
    let one = lab.member(1);
    // Where the third member's node and API are.
    let theirs = lab.member(3).addresses().node().v4.to_string();
    one.apply(&[
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "stranger"},
            "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]}}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "web-1", "namespace": "stranger", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": [{"addresses": [theirs], "conditions": {"ready": true}}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]}),
    ])
    .await?;
    export(one, "stranger", "web").await?;
    let why = export_says(one, "stranger", "web", "Ready", "False/Failed").await?;
    ensure!(why.contains("another cluster's nodes"), "{theirs}: {why}");
    for cluster in lab.clusters().iter().skip(1) {
        endpoints_are(cluster, "stranger", "web", "IPv4", 0).await?;
    }
    unexport(one, "stranger", "web").await
}

async fn drift(lab: &Lab) -> Outcome {
    namespaces(lab, "drift").await?;
    serve(lab.member(1), "drift", "web").await?;
    export(lab.member(1), "drift", "web").await?;
    let before = addresses(lab.member(2), "drift", "web").await?;
    let services: Api<Service> = Api::namespaced(lab.member(2).client().await?, "drift");
    let change = json!({"spec": {
        "selector": {"app": "somebody-elses"},
        "ports": [{"name": "added", "port": 9999, "protocol": "TCP"}],
    }});
    services.patch("derived-web", &PatchParams::default(), &Patch::Strategic(change)).await?;
    atoll_lab::until(
        atoll_lab::Deadline::after(crate::mcs::SOON, "the derived Service is repaired"),
        async || {
            Ok(match services.get("derived-web").await {
                Ok(service) => {
                    let spec = service.spec.unwrap_or_default();
                    let ports: Vec<_> = spec.ports.iter().flatten().map(|port| port.port).collect();
                    let clean = spec.selector.is_none_or(|selector| selector.is_empty()) && ports == [80, 81];
                    if clean { Ok(()) } else { Err(format!("{ports:?}")) }
                }
                Err(error) => Err(error.to_string()),
            })
        },
    )
    .await?;
    services.delete("derived-web", &Default::default()).await?;
    lab.member(2).tools("drift", "tools").await?;
    answered(lab.member(2), "drift", "web", "member1").await?;
    let after = addresses(lab.member(2), "drift", "web").await?;
    ensure!(after == before, "made anew with other addresses: {after:?}, it had {before:?}");
    // An API server that is asked for both addresses while it lets go of them loses one: not every time.
    for _ in 0..10 {
        let gone = services.get("derived-web").await?;
        services.delete("derived-web", &Default::default()).await?;
        let made =
            atoll_lab::until(atoll_lab::Deadline::after(crate::mcs::SOON, "it is made anew"), async || {
                Ok(match services.get_opt("derived-web").await {
                    Ok(Some(made)) if made.metadata.uid != gone.metadata.uid => Ok(made),
                    seen => Err(format!("{seen:?}")),
                })
            })
            .await?;
        let (made, gone) = (made.spec.unwrap_or_default(), gone.spec.unwrap_or_default());
        ensure!(
            made.cluster_ips == gone.cluster_ips,
            "{:?}, it had {:?}",
            made.cluster_ips,
            gone.cluster_ips
        );
    }
    unexport(lab.member(1), "drift", "web").await
}

async fn taken_name(lab: &Lab) -> Outcome {
    namespaces(lab, "taken").await?;
    let two = lab.member(2);
    two.apply(&[json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "derived-web", "namespace": "taken"},
        "spec": {"ports": [{"port": 4711}], "selector": {"app": "mine"}},
    })])
    .await?;
    let services: Api<Service> = Api::namespaced(two.client().await?, "taken");
    let before = services.get("derived-web").await?;
    serve(lab.member(1), "taken", "web").await?;
    export(lab.member(1), "taken", "web").await?;
    two.tools("taken", "tools").await?;
    answered(two, "taken", "web", "member1").await?;
    let after = services.get("derived-web").await?;
    ensure!(before.metadata.resource_version == after.metadata.resource_version, "it was not touched");
    unexport(lab.member(1), "taken", "web").await?;
    atoll_lab::until(atoll_lab::Deadline::after(crate::mcs::SOON, "the import goes"), async || {
        let import = crate::mcs::imports(two, "taken").await?.get_opt("web").await;
        Ok(if matches!(import, Ok(None)) { Ok(()) } else { Err(format!("{import:?}")) })
    })
    .await?;
    services.get("derived-web").await?;
    Ok(())
}

async fn conflicts(lab: &Lab) -> Outcome {
    namespaces(lab, "conflict").await?;
    let (one, two) = (lab.member(1), lab.member(2));
    let plain = json!({});
    let port =
        |port: u16, protocol: &str| json!({"ports": [{"name": "http", "port": port, "protocol": protocol}]});
    let affinity = |seconds: u32| json!({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}});
    let family = |family: &str| json!({"ipFamilyPolicy": "SingleStack", "ipFamilies": [family]});
    let cases: [(&str, Value, Value, Value, Value); 9] = [
        ("PortConflict", port(80, "TCP"), port(81, "TCP"), plain.clone(), plain.clone()),
        ("TypeConflict", plain.clone(), json!({"clusterIP": "None"}), plain.clone(), plain.clone()),
        ("SessionAffinityConflict", plain.clone(), affinity(10), plain.clone(), plain.clone()),
        ("SessionAffinityConfigConflict", affinity(10), affinity(20), plain.clone(), plain.clone()),
        (
            "InternalTrafficPolicyConflict",
            plain.clone(),
            json!({"internalTrafficPolicy": "Local"}),
            plain.clone(),
            plain.clone(),
        ),
        (
            "TrafficDistributionConflict",
            plain.clone(),
            json!({"trafficDistribution": "PreferSameZone"}),
            plain.clone(),
            plain.clone(),
        ),
        ("IPFamilyConflict", family("IPv4"), family("IPv6"), plain.clone(), plain.clone()),
        (
            "LabelsConflict",
            plain.clone(),
            plain.clone(),
            json!({"exportedLabels": {"a": "1"}}),
            json!({"exportedLabels": {"a": "2"}}),
        ),
        (
            "AnnotationsConflict",
            plain.clone(),
            plain.clone(),
            json!({"exportedAnnotations": {"a": "1"}}),
            json!({"exportedAnnotations": {"a": "2"}}),
        ),
    ];
    for (reason, first, second, first_export, second_export) in cases {
        let name = reason.to_lowercase();
        one.apply(&[service("conflict", &name, &first)]).await?;
        export_with(one, "conflict", &name, first_export).await?;
        export_says(one, "conflict", &name, "Conflict", "False/NoConflicts").await?;
        two.apply(&[service("conflict", &name, &second)]).await?;
        export_with(two, "conflict", &name, second_export).await?;
        for cluster in [one, two] {
            let message =
                export_says(cluster, "conflict", &name, "Conflict", &format!("True/{reason}")).await?;
            ensure!(
                message.contains("\"member1\"") && message.contains("1/2 clusters disagree"),
                "{reason}: {message}"
            );
        }
        unexport(two, "conflict", &name).await?;
        export_says(one, "conflict", &name, "Conflict", "False/NoConflicts").await?;
        unexport(one, "conflict", &name).await?;
    }
    Ok(())
}

async fn strict_ports(lab: &Lab) -> Outcome {
    namespaces(lab, "strict").await?;
    for (cluster, extra) in [(lab.member(1), 4001), (lab.member(2), 4002)] {
        let ports = json!({"ports": [
            {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
            {"name": "udp", "port": 81, "targetPort": 8081, "protocol": "UDP"},
            {"name": format!("p{extra}"), "port": extra, "targetPort": 8080, "protocol": "TCP"},
        ]});
        cluster.apply(&[deployment(cluster, "strict", "web", 1), service("strict", "web", &ports)]).await?;
        cluster.pods_ready("strict", "app=web", 1).await?;
        export(cluster, "strict", "web").await?;
    }
    let three = lab.member(3);
    three.tools("strict", "tools").await?;
    endpoints_are(three, "strict", "web", "IPv4", 2).await?;
    let address = addresses(three, "strict", "web").await?.remove(0);
    for (port, who) in [(4001, "member1"), (4002, "member2")] {
        let ask = format!("workload fetch --timeout=2s --address={address}:{port}");
        three.exec_until("strict", "tools", &ask, |said| said.starts_with(who)).await?;
        let many = format!("for i in $(seq 15); do {ask} || echo nobody; done");
        let said = three.exec("strict", "tools", &["sh", "-c", &many]).await?;
        ensure!(said.lines().all(|line| line.starts_with(who)), "port {port}: {said}");
    }
    for cluster in [lab.member(1), lab.member(2)] {
        export_says(cluster, "strict", "web", "Conflict", "True/PortConflict").await?;
    }
    for cluster in [lab.member(1), lab.member(2)] {
        unexport(cluster, "strict", "web").await?;
    }
    Ok(())
}

async fn roles(lab: &Lab) -> Outcome {
    let cluster = lab.member(1);
    cluster.namespace("roles").await?;
    cluster
        .apply(&[
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "dev", "namespace": "roles"}}),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": {"name": "dev", "namespace": "roles"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
                "subjects": [{"kind": "ServiceAccount", "name": "dev", "namespace": "roles"}],
            }),
        ])
        .await?;
    let may = async |verb: &str, resource: &str| -> anyhow::Result<bool> {
        let question =
            ["auth", "can-i", verb, resource, "-n", "roles", "--as=system:serviceaccount:roles:dev"];
        let output = cluster.kubectl().args(question).output().await?;
        Ok(String::from_utf8_lossy(&output.stdout).trim() == "yes")
    };
    atoll_lab::until(atoll_lab::Deadline::after(crate::mcs::SOON, "the roles are aggregated"), async || {
        let may_export = may("create", "serviceexports.multicluster.x-k8s.io").await;
        Ok(if matches!(may_export, Ok(true)) { Ok(()) } else { Err(format!("{may_export:?}")) })
    })
    .await?;
    ensure!(may("get", "serviceimports.multicluster.x-k8s.io").await?, "imports may be read");
    for verb in ["create", "update", "patch", "delete"] {
        ensure!(!may(verb, "serviceimports.multicluster.x-k8s.io").await?, "{verb} of an import");
    }
    Ok(())
}
