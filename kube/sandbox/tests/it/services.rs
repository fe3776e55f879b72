//! Services lead to their endpoints, from pods and from this machine.

use crate::member::{Member, address, is_ready, until};
use atoll_sandbox::network::{Network, Protocol};
use atoll_sandbox::programs::http;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::json;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

const PATIENCE: Duration = Duration::from_secs(5);

async fn serve(member: &Member, name: &str) -> String {
    let args = json!([format!("--message={name}"), "--udp-port=81"]);
    let spec = json!({"containers": [{"name": "main", "image": "jeremyot/serve", "args": args}]});
    address(&member.pod(name, spec, is_ready).await)
}

async fn ask(member: &Member, host: &str, port: u16) -> Result<String, String> {
    let answer = http::get(&member.node.dialer("default"), host, port, "/", PATIENCE).await;
    answer
        .map(|answer| String::from_utf8_lossy(&answer.body).trim().to_owned())
        .map_err(|error| error.to_string())
}

/// Where a Service's port is reached from this machine.
async fn listening(member: &Member, ip: &str, port: u16, protocol: Protocol) -> SocketAddr {
    let asked: SocketAddr = format!("{ip}:{port}").parse().unwrap();
    until(&format!("{asked} listens"), async || {
        let all = member.node.listening();
        let found = all.iter().find(|one| one.asked == asked && one.protocol == protocol);
        found.ok_or_else(|| format!("{all:?}"))?.actual.clone()
    })
    .await
}

#[tokio::test]
async fn a_service_leads_to_its_endpoints_in_turn() {
    let member = Member::start().await;
    let (a, b) = (serve(&member, "a").await, serve(&member, "b").await);
    let ports = json!([{"port": 80, "targetPort": 8080}]);
    let ip = member.service("web", ports, json!([{"port": 8080}]), &[&a, &b]).await;
    until("both answer", async || {
        let mut who = BTreeSet::new();
        for _ in 0..2 {
            who.insert(ask(&member, &ip, 80).await?);
        }
        if who.len() == 2 { Ok(()) } else { Err(format!("{who:?}")) }
    })
    .await;
    let refused = ask(&member, &ip, 81).await.unwrap_err();
    assert!(refused.contains("has no such port"), "{refused}");
    member.slice("web", json!([{"port": 8080}]), &[]).await;
    let refused = until("refused", async || match ask(&member, &ip, 80).await {
        Err(why) => Ok(why),
        Ok(who) => Err(who),
    })
    .await;
    assert!(refused.contains("default/web has no endpoint"), "{refused}");
}

#[tokio::test]
async fn a_deployment_behind_a_service_answers_also_after_a_pod_is_gone() {
    let member = Member::start().await;
    let controllers = atoll_sandbox::controllers::run(member.client.clone(), std::future::pending());
    let _controllers = tokio::spawn(controllers);
    let pod = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "jeremyot/serve", "args": ["--message={{addr}}"]}]},
    });
    let _: Deployment = member
        .apply(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": pod},
        }))
        .await;
    let service: Service = member
        .apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }))
        .await;
    let ip = service.spec.unwrap().cluster_ip.unwrap();
    let first = until("somebody answers", async || ask(&member, &ip, 80).await).await;
    let pods = member.pods().list(&ListParams::default()).await.unwrap();
    member.pods().delete(&pods.items[0].name_any(), &DeleteParams::default()).await.unwrap();
    until("another one answers", async || match ask(&member, &ip, 80).await? {
        same if same == first => Err(same),
        _ => Ok(()),
    })
    .await;
}

#[tokio::test]
async fn tools_of_this_machine_reach_a_service_over_tcp_and_udp() {
    let member = Member::start().await;
    let pod = serve(&member, "a").await;
    let ports = json!([{"name": "http", "port": 80}, {"name": "udp", "port": 5353, "protocol": "UDP"}]);
    let targets = json!([{"name": "http", "port": 8080}, {"name": "udp", "port": 81, "protocol": "UDP"}]);
    let ip = member.service("web", ports, targets, &[&pod]).await;
    let at = listening(&member, &ip, 80, Protocol::Tcp).await;
    assert_eq!(at.port(), 20_080, "the test's network refuses ports below 1024");
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    stream.shutdown().await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    assert!(said.ends_with("\r\n\r\na\n"), "{said}");

    let at = listening(&member, &ip, 5353, Protocol::Udp).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(at).await.unwrap();
    let mut buffer = [0; 64];
    for _ in 0..2 {
        socket.send(b"hello").await.unwrap();
        let count = tokio::time::timeout(PATIENCE, socket.recv(&mut buffer)).await.unwrap().unwrap();
        assert_eq!(&buffer[..count], b"a");
    }
    let answer = member.node.dialer("default").exchange_udp(&ip, 5353, b"hello", PATIENCE).await.unwrap();
    assert_eq!(answer, b"a");

    let services: Api<Service> = Api::namespaced(member.client.clone(), "default");
    services.delete("web", &DeleteParams::default()).await.unwrap();
    until("the socket is closed", async || match TcpStream::connect(format!("{ip}:20080")).await {
        Err(_) => Ok(()),
        Ok(_) => Err("it still listens".to_owned()),
    })
    .await;
    assert!(member.node.listening().iter().all(|one| one.service.name != "web"));
}

#[tokio::test]
async fn a_service_reaches_pods_of_another_member_by_their_own_ports() {
    let network = Network::new().unprivileged();
    let (one, two) = (Member::on(network.clone()).await, Member::on(network).await);
    let spec = json!({"containers": [{"name": "main", "image": "nginx:1.27"}]});
    let pod = address(&one.pod("page", spec, is_ready).await);
    let ip = two.service("derived", json!([{"port": 80}]), json!([{"port": 80}]), &[&pod]).await;
    let said = until("the page comes", async || ask(&two, &ip, 80).await).await;
    assert!(said.contains(&format!("This is page at {pod}")), "{said}");
}
