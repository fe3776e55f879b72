//! Pods run, say how they are, and end.

use crate::member::{Member, address, container, is_ready, phase, restarts, uid, until};
use atoll_kubeapi::pods::{
    Exit, Output, PodAttachOptions, PodError, PodExecOptions, PodLogOptions, PodRef, Pods, Session,
};
use atoll_sandbox::programs::http;
use bytes::Bytes;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node};
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::watcher::{self, watcher};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

fn reference(name: &str) -> PodRef {
    PodRef { namespace: "default".to_owned(), name: name.to_owned(), container: "main".to_owned() }
}

async fn text(mut receiver: mpsc::Receiver<Bytes>) -> String {
    let mut text = String::new();
    while let Some(bytes) = receiver.recv().await {
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    text
}

async fn outcome(mut session: Session) -> (String, Exit) {
    drop(session.stdin.take());
    let mut text = String::new();
    while let Some(Output::Stdout(bytes) | Output::Stderr(bytes)) = session.output.recv().await {
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    (text, session.ended.await.unwrap())
}

fn exec(member: &Member, pod: &str, command: &[&str]) -> Result<Session, PodError> {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let options = PodExecOptions { command, stdin: false, stdout: true, stderr: true, tty: false };
    member.runtime.exec(&reference(pod), options)
}

async fn shell(member: &Member, pod: &str, line: &str) -> (String, Exit) {
    outcome(exec(member, pod, &["sh", "-c", line]).unwrap()).await
}

async fn get(member: &Member, address: &str, port: u16) -> Result<String, String> {
    let answer = http::get(&member.node.dialer("default"), address, port, "/", Duration::from_secs(5)).await;
    answer.map(|answer| String::from_utf8_lossy(&answer.body).into_owned()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn the_node_is_ready() {
    let member = Member::start().await;
    let nodes: Api<Node> = Api::all(member.client.clone());
    let node = nodes.get(member.node.name()).await.unwrap();
    let status = node.status.unwrap();
    assert!(status.conditions.unwrap().iter().any(|one| one.type_ == "Ready" && one.status == "True"));
    assert_eq!(status.addresses.unwrap()[0].address, member.block.api().ip().to_string());
    let zone = format!("m{}", member.block.0);
    assert_eq!(node.metadata.labels.unwrap()["topology.kubernetes.io/zone"], zone);
}

#[tokio::test]
async fn serve_says_who_it_is_at_its_own_address() {
    let member = Member::start().await;
    let field =
        |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let spec = json!({"containers": [{
        "name": "main", "image": "jeremyot/serve:0a40de8",
        "args": ["--message='hello (Node: {{env \"NODE_NAME\"}} Pod: {{env \"POD_NAME\"}} Address: {{addr}})'"],
        "env": [field("NODE_NAME", "spec.nodeName"), field("POD_NAME", "metadata.name")],
    }]});
    let pod = member.pod("serve", spec, is_ready).await;
    let address = address(&pod);
    assert!(address.starts_with(&format!("127.{}.1.", member.block.0)), "{address}");
    assert_eq!(pod.spec.as_ref().unwrap().node_name.as_deref(), Some(member.node.name()));
    let said = get(&member, &address, 8080).await.unwrap();
    assert_eq!(said, format!("'hello (Node: {} Pod: serve Address: {address})'\n", member.node.name()));
    assert_eq!(container(&pod, "main")["started"], true);
    assert_eq!(container(&pod, "main")["image"], "jeremyot/serve:0a40de8");
}

#[tokio::test]
async fn pods_have_addresses_of_their_own() {
    let member = Member::start().await;
    let spec = json!({"containers": [{"name": "main", "image": "jeremyot/serve"}]});
    let mut addresses = Vec::new();
    for name in ["a", "b", "c"] {
        addresses.push(address(&member.pod(name, spec.clone(), is_ready).await));
    }
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 3, "{addresses:?}");
}

#[tokio::test]
async fn a_pod_that_starts_is_written_twice() {
    let member = Member::start().await;
    let mut seen = std::pin::pin!(watcher(member.pods(), watcher::Config::default()));
    let spec = json!({"containers": [{"name": "main", "image": "jeremyot/serve"}]});
    let ready = member.pod("serve", spec, is_ready);
    let mut states = Vec::new();
    let mut ready = std::pin::pin!(ready);
    let mut waiting = true;
    while states.last().is_none_or(|pod| !is_ready(pod)) {
        tokio::select! {
            _ = &mut ready, if waiting => waiting = false,
            Some(event) = seen.next() => {
                if let watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) = event.unwrap() {
                    states.push(pod);
                }
            }
        }
    }
    assert!(states.len() <= 3, "made, placed, ready: {states:#?}");
}

#[tokio::test]
async fn an_unknown_image_is_explained() {
    let member = Member::start().await;
    let spec = json!({"containers": [{"name": "main", "image": "postgres:17"}]});
    let waits = |reason| move |pod: &_| container(pod, "main")["state"]["waiting"]["reason"] == reason;
    let pod = member.pod("db", spec, waits("ErrImagePull")).await;
    assert_eq!(phase(&pod), "Pending");
    let message = container(&pod, "main")["state"]["waiting"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("jeremyot/serve") && message.contains("process:"), "{message}");
    let events: Api<Event> = Api::namespaced(member.client.clone(), "default");
    until("an event says so", async || {
        let all = events.list(&Default::default()).await.unwrap().items;
        let about = all.iter().filter(|one| one.involved_object.name.as_deref() == Some("db")).count();
        if about == 1 { Ok(()) } else { Err(format!("{about} events")) }
    })
    .await;
    let spec = json!({"containers": [{"name": "main", "image": "nginx"}]});
    member.pod("db", spec, is_ready).await;
    let stuck = json!({"containers": [{"name": "main", "image": "mysql"}]});
    member.pod("stuck", stuck, waits("ErrImagePull")).await;
    member.pods().delete("stuck", &DeleteParams::default()).await.unwrap();
    member.gone("stuck").await;
}

#[tokio::test]
async fn a_request_pod_prints_answers_and_succeeds() {
    let member = Member::start().await;
    let serve =
        json!({"containers": [{"name": "main", "image": "jeremyot/serve", "args": ["--message=hi"]}]});
    let server = address(&member.pod("serve", serve, is_ready).await);
    let spec = json!({"restartPolicy": "Never", "containers": [{
        "name": "main", "image": "jeremyot/request:0a40de8", "stdin": true, "stdinOnce": true,
        "args": ["--duration=250ms", "--interval=100ms", format!("--address={server}:8080")],
    }]});
    let pod = member.pod("request", spec, |pod| phase(pod) == "Succeeded").await;
    assert_eq!(container(&pod, "main")["state"]["terminated"]["exitCode"], 0);
    let said = text(member.runtime.logs(&reference("request"), PodLogOptions::default()).unwrap()).await;
    let lines: Vec<_> = said.lines().collect();
    // How many there are depends on how busy the machine is.
    assert!((1..=3).contains(&lines.len()), "{said}");
    for line in lines {
        let (time, answer) = line.split_at(20);
        assert_eq!(answer, "hi", "{line}");
        assert!(time.as_bytes()[4] == b'/' && time.as_bytes()[13] == b':', "{line}");
    }
    assert!(matches!(exec(&member, "request", &["env"]), Err(PodError::NotRunning(_))));
}

#[tokio::test]
async fn who_attaches_to_an_interactive_pod_misses_nothing() {
    let member = Member::start().await;
    let spec = json!({"restartPolicy": "Never", "containers": [{
        "name": "main", "image": "busybox", "stdin": true, "stdinOnce": true,
        "command": ["sh", "-c", "echo before; cat; echo after"],
    }]});
    for (name, reads_log_first, want) in
        [("a", false, "before\ntyped\nafter\n"), ("b", true, "typed\nafter\n")]
    {
        member.pod(name, spec.clone(), |pod| phase(pod) == "Running").await;
        if reads_log_first {
            let log = || member.runtime.logs(&reference(name), PodLogOptions::default()).unwrap();
            until("it has begun", async || match text(log()).await.as_str() {
                "before\n" => Ok(()),
                other => Err(other.to_owned()),
            })
            .await;
        }
        let options = PodAttachOptions { stdin: true, stdout: true, stderr: true, tty: false };
        let session = member.runtime.attach(&reference(name), options).unwrap();
        session.stdin.as_ref().unwrap().send("typed\n".into()).await.unwrap();
        let (said, exit) = outcome(session).await;
        assert_eq!((said.as_str(), exit), (want, Exit::Code(0)));
        member.pod_is(name, |pod| phase(pod) == "Succeeded").await;
    }
}

#[tokio::test]
async fn what_ends_is_started_again_and_its_old_log_is_kept() {
    let member = Member::start().await;
    let spec = json!({"containers": [{
        "name": "main", "image": "process:sh", "args": ["-c", "echo run; exit 3"],
    }]});
    let pod = member.pod("crash", spec, |pod| restarts(pod) >= 2).await;
    let ended = &container(&pod, "main")["lastState"]["terminated"];
    assert_eq!((&ended["exitCode"], &ended["reason"]), (&json!(3), &json!("Error")));
    member
        .pod_is("crash", |pod| container(pod, "main")["state"]["waiting"]["reason"] == "CrashLoopBackOff")
        .await;
    let options = PodLogOptions { previous: true, ..PodLogOptions::default() };
    assert_eq!(text(member.runtime.logs(&reference("crash"), options).unwrap()).await, "run\n");
}

#[tokio::test]
async fn init_containers_run_first_and_readiness_is_probed() {
    let member = Member::start().await;
    let _: ConfigMap = member
        .apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "words"}, "data": {"word": "ready?"}}))
        .await;
    let spec = json!({
        "initContainers": [{"name": "first", "image": "process:sh", "args": ["-c", "exit 0"]}],
        "containers": [{
            "name": "main", "image": "jeremyot/serve", "args": ["--message=$(WORD)"],
            "env": [{"name": "WORD", "valueFrom": {"configMapKeyRef": {"name": "words", "key": "word"}}}],
            "ports": [{"name": "http", "containerPort": 8080}],
            "readinessProbe": {"httpGet": {"port": "http", "path": "/healthz"}, "periodSeconds": 1},
        }, {
            "name": "sick", "image": "jeremyot/serve", "args": ["--port=8081"],
            "readinessProbe": {"tcpSocket": {"port": 9999}, "periodSeconds": 1},
        }],
    });
    let pod = member.pod("web", spec, |pod| container(pod, "main")["ready"] == true).await;
    assert_eq!(container(&pod, "first")["state"]["terminated"]["exitCode"], 0);
    assert_eq!(container(&pod, "sick")["ready"], false);
    assert!(!is_ready(&pod));
    assert_eq!(get(&member, &address(&pod), 8080).await.unwrap(), "ready?\n");
}

#[tokio::test]
async fn a_dead_container_is_restarted() {
    let member = Member::start().await;
    let spec = json!({"terminationGracePeriodSeconds": 1, "containers": [{
        "name": "main", "image": "process:sleep", "args": ["1000"],
        "livenessProbe": {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1},
    }]});
    let pod = member.pod("dead", spec, |pod| restarts(pod) >= 1).await;
    assert_eq!(container(&pod, "main")["lastState"]["terminated"]["exitCode"], 143, "SIGTERM");
}

#[tokio::test]
async fn a_pod_has_its_grace_period_and_is_killed_after_it() {
    let member = Member::start().await;
    let spec = |grace: u32, script: &str| {
        json!({"terminationGracePeriodSeconds": grace, "containers": [{
            "name": "main", "image": "process:sh", "args": ["-c", script],
        }]})
    };
    let polite = spec(30, "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done");
    let stubborn = spec(1, "trap '' TERM; echo up; while :; do sleep 0.01; done");
    for (name, spec) in [("polite", polite), ("stubborn", stubborn)] {
        member.pod(name, spec, is_ready).await;
        let options = PodLogOptions { follow: true, ..PodLogOptions::default() };
        let mut log = member.runtime.logs(&reference(name), options).unwrap();
        assert_eq!(log.recv().await.unwrap(), "up\n", "the trap is set");
        let begin = Instant::now();
        member.pods().delete(name, &DeleteParams::default()).await.unwrap();
        member.gone(name).await;
        let took = begin.elapsed();
        let said = text(log).await;
        match name {
            "polite" => assert!(said == "bye\n" && took < Duration::from_secs(20), "{said:?} {took:?}"),
            // Kubernetes counts whole seconds: the time may be up a moment early.
            _ => assert!(said.is_empty() && took < Duration::from_secs(20), "{said:?} {took:?}"),
        }
    }
}

#[tokio::test]
async fn a_hook_runs_before_the_end() {
    let member = Member::start().await;
    let spec = json!({"terminationGracePeriodSeconds": 30, "containers": [{
        "name": "main", "image": "jeremyot/serve",
        "lifecycle": {"preStop": {"sleep": {"seconds": 1}}},
    }]});
    let pod = member.pod("hooked", spec, is_ready).await;
    let begin = Instant::now();
    member.pods().delete("hooked", &DeleteParams::default()).await.unwrap();
    assert!(get(&member, &address(&pod), 8080).await.is_ok(), "it still answers");
    member.gone("hooked").await;
    assert!(begin.elapsed() >= Duration::from_millis(900), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn after_a_restart_pods_run_again_where_they_were() {
    let member = Member::start().await;
    let serve = json!({"containers": [{"name": "main", "image": "jeremyot/serve"}]});
    let done = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "process:true"}]});
    let first = member.pod("serve", serve.clone(), is_ready).await;
    let over = member.pod("done", done, |pod| phase(pod) == "Succeeded").await;
    let member = member.restart().await;
    let again = member.pod_is("serve", |pod| restarts(pod) == 1 && is_ready(pod)).await;
    assert_eq!((uid(&again), address(&again)), (uid(&first), address(&first)));
    assert!(get(&member, &address(&again), 8080).await.is_ok());
    let other = member.pod("other", serve, is_ready).await;
    assert_ne!(address(&other), address(&again));
    let still = member.pods().get("done").await.unwrap();
    assert_eq!(still.metadata.resource_version, over.metadata.resource_version, "nobody touched it");
}

#[tokio::test]
async fn a_forced_deletion_ends_the_process() {
    let member = Member::start().await;
    let spec = json!({"containers": [{"name": "main", "image": "process:sh", "args": ["-c", "echo $$$$; sleep 1000"]}]});
    member.pod("proc", spec, is_ready).await;
    let options = PodLogOptions { follow: true, ..PodLogOptions::default() };
    let mut log = member.runtime.logs(&reference("proc"), options).unwrap();
    let pid = String::from_utf8_lossy(&log.recv().await.unwrap()).trim().to_owned();
    assert!(std::path::Path::new(&format!("/proc/{pid}")).exists());
    member.pods().delete("proc", &DeleteParams::default().grace_period(0)).await.unwrap();
    until("the process is gone", async || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) if !stat.contains(") Z ") => Err(stat),
        _ => Ok(()),
    })
    .await;
}

#[tokio::test]
async fn commands_in_pods_do_what_the_suites_need() {
    let member = Member::start().await;
    let script = "if $has_ipv6; then\nsocat TCP6-LISTEN:42,crlf,fork SYSTEM:'echo \"six\"'\nelse\nsocat -v -v TCP-LISTEN:42,crlf,reuseaddr,fork SYSTEM:'echo \"pod ip $first_ip\"'\nfi";
    let udp = script.replace("TCP", "UDP");
    let spec = json!({"containers": [
        {"name": "main", "image": "alpine/socat:1.7.4.4", "command": ["/bin/sh"], "args": ["-c", script]},
        {"name": "udp", "image": "alpine/socat:1.7.4.4", "command": ["/bin/sh"], "args": ["-c", udp]},
    ]});
    let echo = address(&member.pod("hello", spec, is_ready).await);
    let tools = json!({"containers": [{
        "name": "main", "image": "nicolaka/netshoot:v0.15",
        "args": ["/bin/sh", "-ec", "while :; do echo '.'; sleep 5 ; done"],
        "env": [{"name": "COLOUR", "value": "blue"}],
    }]});
    member.pod("tools", tools, is_ready).await;
    let answer = format!("pod ip {echo}\r\n");
    for (line, want, code) in [
        (format!("echo hi | nc -w 2 {echo} 42"), answer.clone(), 0),
        (format!("echo hi | nc -u -w 1 {echo} 42"), answer, 0),
        ("echo $COLOUR; hostname".to_owned(), "blue\ntools\n".to_owned(), 0),
        ("exit 7".to_owned(), String::new(), 7),
        ("false || env | cat && true".to_owned(), "COLOUR=blue\nHOSTNAME=tools\n".to_owned(), 0),
    ] {
        assert_eq!(shell(&member, "tools", &line).await, (want, Exit::Code(code)), "{line}");
    }
    let server = format!("Server:\t\t{0}\nAddress:\t{0}#53\n\n", member.block.dns());
    let long = "web.shop.svc.clusterset.local";
    for (line, want, code) in [
        (
            "nslookup web",
            format!("{server}Name:\tweb.default.svc.cluster.local\nAddress: 127.99.128.7\n\n"),
            0,
        ),
        (&format!("nslookup -type=SRV {long}."), format!("{server}{long}\tservice = 0 50 42 {long}.\n\n"), 0),
        ("nslookup -type=A nobody.", format!("{server}** server can't find nobody: NXDOMAIN\n\n"), 1),
        (&format!("dig +short {long}"), "127.99.128.8\n".to_owned(), 0),
        ("dig +short web", String::new(), 0),
    ] {
        assert_eq!(shell(&member, "tools", line).await, (want, Exit::Code(code)), "{line}");
    }
    let (said, code) = shell(&member, "tools", "make coffee").await;
    assert_eq!(code, Exit::Code(127));
    assert!(said.contains("not found") && said.contains("process:"), "{said}");
}
