//! The cluster's own zone beside that of the clusterset: what `atoll up` has instead of CoreDNS.

use atoll_dns::{Lookup, Name, NxDomain, Settings};
use atoll_dns_server::Options;
use serde_json::json;

use crate::api::{FakeApi, import, service, slice};
use crate::server::{Server, code, query};

fn both_zones() -> Options {
    let zone = Name::parse("cluster.local").unwrap();
    Options { cluster_zone: Some(Settings::cluster(zone, 5)), ..Options::default() }
}

fn shop() -> FakeApi {
    let api = FakeApi::default();
    api.put("serviceimports", &import("web", "ClusterSetIP", &["10.111.0.7"]));
    api.put("services", &service("web", "10.96.0.7"));
    api.put("services", &service("db", "None"));
    let mut ready = slice("db-1", "db", &["10.11.0.7".to_owned()]);
    ready["metadata"]["labels"] = json!({"kubernetes.io/service-name": "db"});
    ready["endpoints"][0]["hostname"] = json!("db-0");
    api.put("endpointslices", &ready);
    api
}

#[tokio::test]
async fn each_zone_answers_its_own_names() {
    let server = Server::ready_with(&shop(), both_zones()).await;
    for (name, want) in [
        ("web.shop.svc.clusterset.local", [10, 111, 0, 7]),
        ("web.shop.svc.cluster.local", [10, 96, 0, 7]),
        ("db.shop.svc.cluster.local", [10, 11, 0, 7]),
        ("db-0.db.shop.svc.cluster.local", [10, 11, 0, 7]),
    ] {
        assert_eq!(server.a(name).await, [want], "{name}");
        let asked = server.names.lookup(&Name::parse(name).unwrap());
        assert_eq!(asked, Lookup::Addresses(vec![want.into()]), "{name}, in process");
    }
    for (name, refused) in [
        ("db.shop.svc.clusterset.local", 3),
        ("nothing.shop.svc.cluster.local", 3),
        ("paris.db.shop.svc.cluster.local", 3),
        ("example.com", 5),
    ] {
        assert_eq!(code(&server.udp(&query(name, 1)).await), refused, "{name}");
    }
    let missing = server.names.lookup(&Name::parse("nothing.shop.svc.cluster.local").unwrap());
    assert_eq!(missing, Lookup::NoSuchName(NxDomain::NoService));
    assert_eq!(server.names.lookup(&Name::parse("example.com").unwrap()), Lookup::NotOurs);
    let counted = r#"atoll_dns_queries_total{zone="cluster.local",type="A",rcode="NOERROR"} 3"#;
    server.page_says("/metrics", |page| page.contains(counted)).await;
}

#[tokio::test]
async fn services_come_and_go() {
    let api = shop();
    let server = Server::ready_with(&api, both_zones()).await;
    api.delete("services", "web");
    server.a_becomes("web.shop.svc.cluster.local", &[]).await;
    assert_eq!(server.a("web.shop.svc.clusterset.local").await, [[10, 111, 0, 7]], "another zone's");
    api.put("services", &service("web", "10.96.0.8"));
    server.a_becomes("web.shop.svc.cluster.local", &[[10, 96, 0, 8]]).await;
}

#[tokio::test]
async fn without_it_the_clusters_names_are_not_ours() {
    let server = Server::ready(&shop()).await;
    assert_eq!(code(&server.udp(&query("web.shop.svc.cluster.local", 1)).await), 5);
}
