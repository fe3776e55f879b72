//! Real packets: within a cluster, between clusters, from outside, by address and by name.

use crate::harness::{Outcome, Suite};
use anyhow::ensure;
use atoll_lab::image::{SERVE, SOCAT};
use atoll_lab::pods::addresses_of;
use atoll_lab::{Cluster, Lab};
use serde_json::json;

pub(crate) fn tests(suite: &mut Suite) {
    suite.test("pods_run_and_exec_works", pods_run_and_exec_works);
    suite.test("a_cluster_ip_answers_tcp_and_udp_in_both_families", a_cluster_ip_answers_tcp_and_udp);
    suite.test("pods_reach_pods_of_every_other_cluster_in_both_families", pods_reach_other_clusters);
    suite.test("a_bystander_reaches_pods_and_apis", a_bystander_reaches_pods_and_apis);
    suite.test("services_and_pods_have_names", services_and_pods_have_names);
    suite.test("an_image_without_a_shell_runs_as_documents_use_it", documents_images_run);
}

/// A Deployment `web` that says its cluster, and a dual-stack Service before it.
pub(crate) async fn serve(cluster: &Cluster, namespace: &str) -> atoll_lab::Result<Vec<String>> {
    let message = format!("--message=hello from {}", cluster.name());
    cluster.namespace(namespace).await?;
    cluster
        .apply(&[
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": namespace},
                "spec": {
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {"containers": [{
                            "name": "web", "image": SERVE, "args": [message, "--udp-port=8081"],
                        }]},
                    },
                },
            }),
            json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web", "namespace": namespace},
                "spec": {
                    "selector": {"app": "web"}, "ipFamilyPolicy": "RequireDualStack",
                    "ports": [
                        {"name": "http", "port": 80, "targetPort": 8080},
                        {"name": "udp", "port": 81, "targetPort": 8081, "protocol": "UDP"},
                    ],
                },
            }),
        ])
        .await?;
    let pods = cluster.pods_ready(namespace, "app=web", 1).await?;
    addresses_of(&pods[0])
}

fn bracketed(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

async fn pods_run_and_exec_works(lab: &Lab) -> Outcome {
    for cluster in lab.clusters() {
        cluster.namespace("exec").await?;
        cluster.tools("exec", "tools").await?;
        let said = cluster.exec("exec", "tools", &["sh", "-c", "echo to $(hostname)"]).await?;
        ensure!(said == "to tools\n", "{said:?}");
        let refused = cluster.exec("exec", "tools", &["sh", "-c", "exit 7"]).await;
        ensure!(refused.is_err(), "a command's failure is not hidden");
    }
    Ok(())
}

async fn a_cluster_ip_answers_tcp_and_udp(lab: &Lab) -> Outcome {
    let cluster = lab.member(1);
    serve(cluster, "cluster-ip").await?;
    cluster.tools("cluster-ip", "tools").await?;
    let services: kube::Api<k8s_openapi::api::core::v1::Service> =
        kube::Api::namespaced(cluster.client().await?, "cluster-ip");
    let addresses = services.get("web").await?.spec.and_then(|spec| spec.cluster_ips).unwrap_or_default();
    ensure!(addresses.len() == 2, "{addresses:?}");
    for address in addresses {
        let address = bracketed(&address);
        let tcp = format!("workload fetch --timeout=2s --address={address}:80");
        cluster.exec_until("cluster-ip", "tools", &tcp, |said| said == "hello from member1\n").await?;
        let udp = format!("workload fetch --timeout=2s --udp=true --address={address}:81");
        cluster.exec_until("cluster-ip", "tools", &udp, |said| said == "hello from member1").await?;
    }
    Ok(())
}

async fn pods_reach_other_clusters(lab: &Lab) -> Outcome {
    let mut served = Vec::new();
    for cluster in lab.clusters() {
        served.push((cluster.name(), serve(cluster, "across").await?));
        cluster.tools("across", "tools").await?;
    }
    for client in lab.clusters() {
        for (server, addresses) in &served {
            for address in addresses {
                let fetch = format!("workload fetch --timeout=2s --address={}:8080", bracketed(address));
                let want = format!("hello from {server}\n");
                client.exec_until("across", "tools", &fetch, |said| said == want).await?;
            }
        }
    }
    Ok(())
}

async fn a_bystander_reaches_pods_and_apis(lab: &Lab) -> Outcome {
    let client = lab.bystander("client").machine();
    for cluster in lab.clusters() {
        for address in serve(cluster, "outside").await? {
            let target = format!("TCP:{}:8080,connect-timeout=3", bracketed(&address));
            let output = client
                .command("sh")
                .args([
                    "-c",
                    &format!(
                        "printf 'GET / HTTP/1.1\\r\\nConnection: close\\r\\n\\r\\n' | socat -t 3 - {target}"
                    ),
                ])
                .output()?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            ensure!(said.contains(&format!("hello from {}", cluster.name())), "{said}");
        }
        ensure!(reaches_api(lab, cluster)?, "the API of {} answers a bystander", cluster.name());
    }
    Ok(())
}

/// Whether the bystander `client` gets an answer from the API of `cluster`, within two seconds.
pub(crate) fn reaches_api(lab: &Lab, cluster: &Cluster) -> anyhow::Result<bool> {
    let client = lab.bystander("client").machine();
    let target = format!("TCP:{}:6443,connect-timeout=2", cluster.addresses().node().v4);
    // A TLS server answers plain text with an alert or a plain 400: any byte will do.
    let script = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | socat -t 2 - {target} | head -c 1 | wc -c");
    let output = client.command("sh").args(["-c", &script]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim() == "1")
}

async fn services_and_pods_have_names(lab: &Lab) -> Outcome {
    for cluster in lab.clusters() {
        let pods = serve(cluster, "names").await?;
        cluster.tools("names", "tools").await?;
        let by_short_name = "workload fetch --timeout=2s --address=web";
        let want = format!("hello from {}\n", cluster.name());
        cluster.exec_until("names", "tools", by_short_name, |said| said == want).await?;
        for kind in ["A", "AAAA"] {
            let ask = format!("dig +short +time=2 web.names.svc.cluster.local {kind}");
            let range =
                if kind == "A" { cluster.addresses().service(1).v4.to_string() } else { "fd00:20:".into() };
            let prefix = range.split_inclusive(['.', ':']).take(2).collect::<String>();
            cluster.exec_until("names", "tools", &ask, |said| said.starts_with(&prefix)).await?;
        }
        let dashed = pods[0].replace('.', "-");
        let ask = format!("dig +short +time=2 {dashed}.names.pod.cluster.local");
        cluster.exec_until("names", "tools", &ask, |said| said.trim() == pods[0]).await?;
        let unknown = "dig +time=2 nothing.names.svc.cluster.local";
        cluster.exec_until("names", "tools", unknown, |said| said.contains("status: NXDOMAIN")).await?;
    }
    Ok(())
}

/// The suite's and the documents' pods set arguments and count on the image's entry point.
async fn documents_images_run(lab: &Lab) -> Outcome {
    let cluster = lab.member(2);
    serve(cluster, "images").await?;
    cluster.tools("images", "tools").await?;
    let container = json!({
        "name": "echo", "image": SOCAT,
        "args": ["-v", "-v", "TCP6-LISTEN:42,crlf,reuseaddr,fork,ipv6only=0", "SYSTEM:echo pod ip $(MY_POD_IP)"],
        "env": [{"name": "MY_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
    });
    cluster
        .apply(&[json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "echo", "namespace": "images", "labels": {"app": "echo"}},
            "spec": {"containers": [container]},
        })])
        .await?;
    let pods = cluster.pods_ready("images", "app=echo", 1).await?;
    for address in addresses_of(&pods[0])? {
        let ask = format!("echo hi | nc -w 2 {address} 42");
        cluster.exec_until("images", "tools", &ask, |said| said.starts_with("pod ip 10.12.0.")).await?;
    }
    let request = [
        "-n",
        "images",
        "run",
        "-i",
        "--rm",
        "--restart=Never",
        "--image=jeremyot/request:0a40de8",
        "request",
    ];
    let output =
        cluster.kubectl().args(request).args(["--", "--duration=1s", "--address=web"]).output().await?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(said.contains("hello from member2"), "{said} {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
