//! Questions over real sockets.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::api::{FakeApi, import, slice};
use crate::server::{Server, addresses, code, query};

const WEB: &str = "web.shop.svc.clusterset.local";
const DB: &str = "db.shop.svc.clusterset.local";

fn shop() -> FakeApi {
    let api = FakeApi::default();
    api.put("serviceimports", &import("web", "ClusterSetIP", &["10.111.0.7"]));
    api.put("serviceimports", &import("db", "Headless", &[]));
    api.put("endpointslices", &slice("db-1", "db", &["10.11.0.7".to_owned()]));
    api
}

#[tokio::test]
async fn both_families_are_answered() {
    let server = Server::ready(&shop()).await;
    for address in &server.addresses {
        let reply = server.udp_at(*address, &query(WEB, 1)).await;
        assert_eq!(addresses(&reply), [[10, 111, 0, 7]], "{address}");
    }
}

#[tokio::test]
async fn changes_show_as_they_come() {
    let api = shop();
    let server = Server::ready(&api).await;
    assert_eq!(server.a(DB).await, [[10, 11, 0, 7]]);
    api.put("endpointslices", &slice("db-1", "db", &["10.11.0.8".to_owned(), "10.11.0.9".to_owned()]));
    server.a_becomes(DB, &[[10, 11, 0, 8], [10, 11, 0, 9]]).await;
    api.delete("endpointslices", "db-1");
    server.a_becomes(DB, &[]).await;
    assert_eq!(code(&server.udp(&query(DB, 1)).await), 3, "nothing ready is no name");
    api.delete("serviceimports", "web");
    server.a_becomes(WEB, &[]).await;
}

#[tokio::test]
async fn what_is_cut_over_udp_is_whole_over_tcp() {
    let api = shop();
    let many: Vec<String> = (0..500).map(|n| format!("10.11.{}.{}", n / 250, n % 250 + 1)).collect();
    api.put("endpointslices", &slice("db-1", "db", &many));
    let server = Server::ready(&api).await;
    let cut = server.udp(&query(DB, 1)).await;
    assert_eq!(cut[2] & 2, 2, "marked as cut");
    assert!(cut.len() <= 512);
    let mut stream = server.tcp().await;
    // Two questions at once: both are answered, in order.
    let question = query(DB, 1);
    let length = u16::try_from(question.len()).unwrap().to_be_bytes();
    let both = [&length[..], &question, &length, &question].concat();
    stream.write_all(&both).await.unwrap();
    for _ in 0..2 {
        let mut reply = vec![0; usize::from(stream.read_u16().await.unwrap())];
        stream.read_exact(&mut reply).await.unwrap();
        assert_eq!((reply[2] & 2, addresses(&reply).len()), (0, 500));
    }
    let counted = ["atoll_dns_truncated_total 1\n", "atoll_dns_tcp_queries_total 2\n"];
    server.page_says("/metrics", |page| counted.iter().all(|line| page.contains(line))).await;
}

#[tokio::test]
async fn malformed_packets_cost_nothing_and_kill_nothing() {
    let server = Server::ready(&shop()).await;
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for packet in [&b""[..], b"\x01", &[0xff; 1400], &[0; 12], &query(WEB, 1)[..20]] {
        socket.send_to(packet, server.addresses[0]).await.unwrap();
    }
    let mut stream = server.tcp().await;
    stream.write_all(&[0, 3, 1, 2, 3]).await.unwrap();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "no question, no answer, no connection");
    assert_eq!(server.a(WEB).await, [[10, 111, 0, 7]]);
    server.page_says("/metrics", |page| page.contains("atoll_dns_dropped_packets_total 4")).await;
}

#[tokio::test]
async fn a_client_that_stalls_keeps_nobody_waiting() {
    let server = Server::ready(&shop()).await;
    let mut stalled = server.tcp().await;
    stalled.write_all(&[0]).await.unwrap();
    let mut stream = server.tcp().await;
    let question = query(WEB, 1);
    stream.write_all(&u16::try_from(question.len()).unwrap().to_be_bytes()).await.unwrap();
    stream.write_all(&question).await.unwrap();
    let length = tokio::time::timeout(Duration::from_secs(5), stream.read_u16()).await;
    assert!(length.expect("an answer at once").unwrap() > 12);
}

#[tokio::test]
async fn questions_are_counted_by_zone_type_and_code() {
    let server = Server::ready(&shop()).await;
    server.udp(&query(WEB, 28)).await;
    server.udp(&query("none.shop.svc.clusterset.local", 1)).await;
    server.udp(&query("example.org", 1)).await;
    let wanted = [
        r#"atoll_dns_queries_total{zone="clusterset.local",type="AAAA",rcode="NOERROR"} 1"#,
        r#"atoll_dns_queries_total{zone="clusterset.local",type="A",rcode="NXDOMAIN"} 1"#,
        r#"atoll_dns_queries_total{zone="other",type="A",rcode="REFUSED"} 1"#,
        "atoll_dns_services 2",
    ];
    server.page_says("/metrics", |page| wanted.iter().all(|line| page.contains(line))).await;
}

#[tokio::test]
async fn the_clusters_own_endpoints_come_first_where_asked_for() {
    let api = shop();
    let mut near = import("db", "Headless", &[]);
    near["spec"]["trafficDistribution"] = "PreferClose".into();
    api.put("serviceimports", &near);
    let mut far = slice("db-2", "db", &["10.10.0.1".to_owned(), "10.10.0.2".to_owned()]);
    far["metadata"]["labels"]["multicluster.kubernetes.io/source-cluster"] = "tokyo".into();
    api.put("endpointslices", &far);
    api.put(
        "clusterproperties",
        &serde_json::json!({
            "apiVersion": "about.k8s.io/v1beta1", "kind": "ClusterProperty",
            "metadata": {"name": "cluster.clusterset.k8s.io"}, "spec": {"value": "paris"},
        }),
    );
    let server = Server::ready(&api).await;
    let mut in_a_row = 0;
    // The cluster's name may come a moment after everything else.
    for _ in 0..2000 {
        let reply = server.udp(&query(DB, 1)).await;
        let question = 12 + reply[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
        in_a_row = if reply[question + 12..question + 16] == [10, 11, 0, 7] { in_a_row + 1 } else { 0 };
        if in_a_row == 10 {
            return;
        }
    }
    panic!("paris' own endpoint is not always first");
}
