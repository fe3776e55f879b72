//! Pods with and without somebody who runs them, and the network that a process has for them.

use atoll_kubeapi::pods::{PodAttachOptions, PodError, PodExecOptions, PodLogOptions, PodRef, Pods, Session};
use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api, Options};
use bytes::Bytes;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Pods whose log is what was asked for, and that can do nothing else.
struct Parrots;

impl Pods for Parrots {
    fn logs(&self, pod: &PodRef, options: PodLogOptions) -> Result<mpsc::Receiver<Bytes>, PodError> {
        if pod.container == "mute" {
            return Err(PodError::NotRunning("it is waiting to start".to_owned()));
        }
        let (lines, log) = mpsc::channel(1);
        tokio::spawn(async move { lines.send(format!("{options:?}").into()).await });
        Ok(log)
    }

    fn exec(&self, _: &PodRef, _: PodExecOptions) -> Result<Session, PodError> {
        Err(PodError::Internal("nobody comes this far without a connection".to_owned()))
    }

    fn attach(&self, _: &PodRef, _: PodAttachOptions) -> Result<Session, PodError> {
        Err(PodError::Internal("nobody comes this far without a connection".to_owned()))
    }
}

async fn client(options: Options) -> (Api, Client) {
    let api = Api::start(Store::memory(), options).await.unwrap();
    let client = Client::new(api.admin(), "default");
    (api, client)
}

async fn post(client: &Client, path: &str, body: &Value) -> kube::Result<Value> {
    client.request(Request::post(path).body(body.to_string().into_bytes()).unwrap()).await
}

async fn pod_on(client: &Client, node: &str, container: &str) {
    let spec = json!({"nodeName": node, "containers": [{"name": container, "image": "any"}]});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": container}, "spec": spec});
    post(client, "/api/v1/namespaces/default/pods", &pod).await.unwrap();
}

async fn text(client: &Client, path: &str) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/default/pods/{path}");
    let got = client.request_text(Request::get(path).body(Vec::new()).unwrap()).await;
    got.map_err(|error| match error {
        kube::Error::Api(status) => format!("{} {} {}", status.code, status.reason, status.message),
        other => panic!("no Status: {other}"),
    })
}

#[tokio::test(start_paused = true)]
async fn without_anybody_who_runs_pods_a_node_can_not_be_reached() {
    let (_api, client) = client(Options::default()).await;
    pod_on(&client, "n", "main").await;
    let refused = text(&client, "main/log").await.unwrap_err();
    assert_eq!(refused, "404 NotFound nodes \"n\" not found");
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    post(&client, "/api/v1/nodes", &node).await.unwrap();
    for (path, doing) in
        [("main/log", "cannot get the log"), ("main/exec?command=ls", "error dialing backend")]
    {
        let refused = text(&client, path).await.unwrap_err();
        let want = format!(
            "500  {doing}: nothing runs pods behind this API, so there is no kubelet on node \"n\" to ask"
        );
        assert_eq!(refused, want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_is_asked_for_as_the_client_says() {
    let (_api, client) = client(Options::default().pods(Arc::new(Parrots))).await;
    pod_on(&client, "n", "main").await;
    let query = "follow=true&tailLines=5&limitBytes=7&timestamps=true&sinceSeconds=9&container=main";
    let options = PodLogOptions {
        follow: true,
        previous: false,
        tail_lines: Some(5),
        since_seconds: Some(9),
        timestamps: true,
        limit_bytes: Some(7),
    };
    assert_eq!(text(&client, &format!("main/log?{query}")).await.unwrap(), format!("{options:?}"));
    pod_on(&client, "n", "mute").await;
    assert_eq!(text(&client, "mute/log").await.unwrap_err(), "400 BadRequest it is waiting to start");
}

#[tokio::test(start_paused = true)]
async fn a_session_needs_a_connection() {
    let (_api, client) = client(Options::default().pods(Arc::new(Parrots))).await;
    pod_on(&client, "n", "main").await;
    let refused = text(&client, "main/attach?stdout=true").await.unwrap_err();
    assert_eq!(refused, "400 BadRequest Upgrade request required");
    let request = Request::get("/api/v1/namespaces/default/pods/main/exec?command=ls&stdout=true")
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", "v5.channel.k8s.io");
    let refused = client.request_text(request.body(Vec::new()).unwrap()).await.unwrap_err();
    assert!(refused.to_string().contains("call `atoll_kubeapi::pods::Pods` itself"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn services_get_addresses_of_the_network() {
    let (_api, client) = client(Options::default().service_network("127.9.128.0/17".parse().unwrap())).await;
    let address =
        |service: &Value| service["spec"]["clusterIP"].as_str().unwrap().parse::<Ipv4Addr>().unwrap();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    let services = "/api/v1/namespaces/default/services";
    let made = address(&post(&client, services, &service).await.unwrap());
    assert!(made >= Ipv4Addr::new(127, 9, 128, 1) && made <= Ipv4Addr::new(127, 9, 255, 254), "{made}");
    let own = client
        .request(Request::get(format!("{services}/kubernetes")).body(Vec::new()).unwrap())
        .await
        .unwrap();
    assert_eq!(address(&own), Ipv4Addr::new(127, 9, 128, 1));
    let outside = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "t"},
        "spec": {"clusterIP": "127.9.0.1", "ports": [{"port": 80}]}});
    let refused = post(&client, services, &outside).await.unwrap_err();
    assert!(refused.to_string().contains("does not match the current range"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn loopback_endpoints_are_for_those_who_allow_them() {
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "e"},
        "addressType": "IPv4", "endpoints": [{"addresses": ["127.9.1.1"]}]});
    let path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let (_api, refusing) = client(Options::default()).await;
    let refused = post(&refusing, path, &slice).await.unwrap_err();
    assert!(refused.to_string().contains("may not be in the loopback range"), "{refused}");
    let (_api, allowing) = client(Options::default().loopback_endpoints(true)).await;
    post(&allowing, path, &slice).await.unwrap();
}
