//! Questions to a whole hub, through its own API and through another API server.

use std::time::Duration;

use anyhow::{Context, ensure};
use atoll_api::names::kind::explain;
use atoll_hub::explain::{Questions, group};
use atoll_hub::options::Explain;
use atoll_hub::{Options, connect};
use atoll_kubeapi::pki::{ADMIN, Pki};
use atoll_kubeapi::store::Store;
use http::Request;
use k8s_openapi::ByteString;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::world::{HUB, Outcome};

const PATIENCE: Duration = Duration::from_secs(30);
const WEB: &str = "/apis/explain.atoll.dev/v1alpha1/namespaces/shop/services/web";

/// A hub that runs.
struct Running(oneshot::Sender<()>, JoinHandle<Result<(), atoll_hub::HubError>>);

impl Running {
    fn start(client: &Client, questions: Questions, explain: Explain) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let options =
            Options { lease_time: Duration::from_secs(2), questions, explain, ..Options::new("hub-0") };
        let api = connect::Api::within(client.clone());
        let hub = Box::pin(atoll_hub::run(api, options, async { drop(stopped.await) }));
        Self(stop, tokio::spawn(hub))
    }

    async fn stop(self) -> Outcome {
        let _ = self.0.send(());
        Ok(self.1.await??)
    }
}

/// Sends a request as a user; the answer's code and body.
async fn send(
    client: &Client,
    request: http::request::Builder,
    body: &Value,
) -> anyhow::Result<(u16, Value)> {
    let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
    let answer = client.send(request.body(kube::client::Body::from(body))?).await?;
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect_bytes().await?;
    Ok((code, serde_json::from_slice(&bytes).unwrap_or_default()))
}

async fn get(client: &Client, path: &str) -> anyhow::Result<(u16, Value)> {
    send(client, Request::get(path), &Value::Null).await
}

async fn make(client: &Client, path: &str, object: &Value) -> Outcome {
    let (code, answer) = send(client, Request::post(path), object).await?;
    ensure!(code == 201, "{path}: {answer}");
    Ok(())
}

async fn until<F>(story: &str, mut look: impl FnMut() -> F) -> anyhow::Result<Value>
where
    F: Future<Output = anyhow::Result<Result<Value, Value>>>,
{
    let give_up = tokio::time::Instant::now() + PATIENCE;
    loop {
        match look().await? {
            Ok(value) => return Ok(value),
            Err(last) => ensure!(tokio::time::Instant::now() < give_up, "never: {story}; it is {last:#}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The leader itself has answered, whatever it said.
async fn leads(client: &Client) -> Outcome {
    until("the leader answers", async || {
        let (code, answer) = get(client, WEB).await?;
        Ok(if matches!(code, 200 | 404) { Ok(answer) } else { Err(answer) })
    })
    .await
    .map(drop)
}

/// Ann views the namespace `shop`.
async fn let_ann(client: &Client) -> Outcome {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    make(client, "/api/v1/namespaces", &namespace).await?;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "ann"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}]});
    make(client, "/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings", &binding).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_views_a_namespace_may_ask_the_leader_about_its_services() -> Outcome {
    let questions = Questions::default();
    let options = atoll_kubeapi::Options::default().aggregated(group(questions.clone()));
    let api = atoll_kubeapi::Api::start(Store::memory(), options).await?;
    let client = Client::new(api.admin(), "default");
    let (code, answer) = get(&client, WEB).await?;
    ensure!(
        code == 503 && answer["message"].as_str().is_some_and(|text| text.contains("not the leader")),
        "{answer}"
    );
    let_ann(&client).await?;
    let running = Running::start(&client, questions, Explain::ByApi);
    leads(&client).await?;
    let ask = async |path: &str| {
        send(&client, Request::get(path).header("impersonate-user", "ann"), &Value::Null).await
    };
    until("ann may ask", async || {
        let (code, answer) = ask(WEB).await?;
        Ok(if matches!(code, 200 | 404) { Ok(answer) } else { Err(answer) })
    })
    .await?;
    let root = "/apis/explain.atoll.dev/v1alpha1";
    for path in ["namespaces/default/services/web", "services", "addresses/10.0.0.1", "clustersets/this"] {
        let (code, answer) = ask(&format!("{root}/{path}")).await?;
        ensure!(code == 403, "ann asks for {path}: {answer}");
    }
    let plan = Request::post(format!("{root}/plans")).header("impersonate-user", "ann");
    let (code, answer) = send(&client, plan, &json!({})).await?;
    ensure!(code == 403, "ann plans: {answer}");
    running.stop().await?;
    let (code, _) = get(&client, WEB).await?;
    ensure!(code == 503, "a hub that stopped leads no more");
    Ok(())
}

/// The front of another API server: its authority is that of `pki`, and its certificate the admin's.
fn authentication(pki: &Pki) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "extension-apiserver-authentication"}, "data": {
        "requestheader-client-ca-file": pki.ca,
        "requestheader-allowed-names": json!([ADMIN]).to_string(),
        "requestheader-username-headers": r#"["X-Remote-User"]"#,
        "requestheader-group-headers": r#"["X-Remote-Group"]"#,
        "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
    }})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_on_another_api_server_is_registered_there_while_it_leads() -> Outcome {
    let options = atoll_kubeapi::Options::default().loopback_endpoints(true);
    let api = atoll_kubeapi::Api::start(Store::memory(), options).await?;
    let client = Client::new(api.admin(), "default");
    let pki = Pki::ephemeral(&[], jiff::Timestamp::now().as_second())?;
    make(&client, "/api/v1/namespaces/kube-system/configmaps", &authentication(&pki)).await?;
    let_ann(&client).await?;
    let running = Running::start(&client, Questions::default(), Explain::At(([127, 0, 0, 1], 0).into()));
    let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{}.{}", explain::VERSION, explain::GROUP);
    let registered = until("the group is registered", async || {
        let (code, answer) = get(&client, &path).await?;
        Ok(if code == 200 { Ok(answer) } else { Err(answer) })
    })
    .await?;
    let slices =
        format!("/apis/discovery.k8s.io/v1/namespaces/{HUB}/endpointslices/{}", explain::ATOLL_EXPLAIN);
    let (_, slice) = get(&client, &slices).await?;
    let port = slice["ports"][0]["port"].as_u64().with_context(|| format!("no port: {slice}"))?;
    ensure!(slice["endpoints"][0]["addresses"] == json!(["127.0.0.1"]), "{slice}");

    let ca: ByteString = serde_json::from_value(registered["spec"]["caBundle"].clone())?;
    let service = &registered["spec"]["service"];
    let name = format!(
        "{}.{}.svc",
        service["name"].as_str().unwrap_or_default(),
        service["namespace"].as_str().unwrap_or_default()
    );
    let text = json!({"apiVersion": "v1", "kind": "Config", "current-context": "front",
        "clusters": [{"name": "front", "cluster": {"server": format!("https://127.0.0.1:{port}"),
            "certificate-authority-data": ca, "tls-server-name": name}}],
        "users": [{"name": "front", "user": {
            "client-certificate-data": ByteString(pki.admin.certificate.clone().into_bytes()),
            "client-key-data": ByteString(pki.admin.key.clone().into_bytes())}}],
        "contexts": [{"name": "front", "context": {"cluster": "front", "user": "front"}}]});
    let read = kube::config::Kubeconfig::from_yaml(&text.to_string())?;
    let front =
        kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default()).await?;
    let front = Client::try_from(front)?;
    let of = |user: &str| {
        Request::get(WEB).header("x-remote-user", user).header("x-remote-group", "system:authenticated")
    };
    until("ann may ask", async || {
        // No client is believed before the hub has read whom to believe.
        Ok(match send(&front, of("ann"), &Value::Null).await {
            Ok((200 | 404, answer)) => Ok(answer),
            Ok((_, answer)) => Err(answer),
            Err(error) => Err(error.to_string().into()),
        })
    })
    .await?;
    let (code, answer) = send(&front, of("eve"), &Value::Null).await?;
    ensure!(code == 403, "eve asks: {answer}");
    let elsewhere = Request::get(WEB.replace("shop", "default")).header("x-remote-user", "ann");
    let (code, answer) = send(&front, elsewhere, &Value::Null).await?;
    ensure!(code == 403, "ann asks about another namespace: {answer}");
    running.stop().await?;
    for path in [&path, &slices] {
        let (code, answer) = get(&client, path).await?;
        ensure!(code == 404, "a hub that stopped is registered still: {answer}");
    }
    Ok(())
}
