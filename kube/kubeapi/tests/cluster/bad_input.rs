//! What no client should send: malformed, deep, huge, slow; tricks with paths and heads.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls;

use crate::fixtures::{Kind, core, map, maps, object};
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    malformed_json_is_refused,
    malformed_yaml_is_refused,
    a_body_that_is_no_object_is_refused,
    an_unknown_content_type_is_refused,
    broken_protobuf_is_refused,
    deep_json_is_refused,
    deep_custom_json_is_refused,
    a_huge_body_is_refused,
    a_large_object_is_refused,
    tricks_in_a_path_open_no_door,
    tricks_in_a_path_leave_the_api,
    odd_bytes_in_a_path_lead_nowhere,
    a_very_long_path_is_refused,
    an_unknown_method_is_refused,
    a_broken_request_line_is_refused,
    a_head_that_never_ends_is_cut_off,
    a_body_that_is_too_short_harms_nobody,
    a_client_without_tls_is_refused,
    many_broken_clients_harm_nobody,
    invalid_utf8_is_refused,
    a_null_in_a_name_is_refused,
    huge_numbers_do_not_wrap,
    a_patch_of_deep_json_is_refused,
    a_copy_bomb_is_refused,
    a_yaml_bomb_is_refused,
    odd_queries_are_refused,
    long_selectors_do_not_hurt,
    options_of_the_wrong_type_are_refused,
}

async fn post(api: &Target, content_type: &str, body: impl Into<Vec<u8>>) -> crate::answer::Answer {
    api.send(Call::new(Method::POST, &maps("default")).body(content_type, body)).await
}

async fn malformed_json_is_refused(api: Target) {
    for body in ["{", "{\"a\":}", "nonsense", "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"} trailing"] {
        let answer = post(&api, "application/json", body).await;
        answer.refused_with(400, "BadRequest", "");
    }
}

async fn malformed_yaml_is_refused(api: Target) {
    post(&api, "application/yaml", "a: [b\nc: d").await.refused_with(400, "BadRequest", "");
}

async fn a_body_that_is_no_object_is_refused(api: Target) {
    for body in ["[]", "5", "\"text\"", "true"] {
        post(&api, "application/json", body).await.refused_with(400, "BadRequest", "");
    }
}

async fn an_unknown_content_type_is_refused(api: Target) {
    let answer = post(&api, "text/plain", "{}").await;
    answer.refused(415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf");
}

async fn broken_protobuf_is_refused(api: Target) {
    for body in [
        &b"nonsense"[..],
        b"k8s\0",
        b"k8s\0\xff\xff\xff\xff",
        b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x7f",
    ] {
        let answer = post(&api, "application/vnd.kubernetes.protobuf", body).await;
        assert!((400..500).contains(&answer.code), "{answer}");
    }
}

fn nested(depth: usize) -> String {
    format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))
}

async fn deep_json_is_refused(api: Target) {
    let body = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{{\"name\":\"a\"}},\"deep\":{}}}",
        nested(100_000)
    );
    let answer = post(&api, "application/json", body).await;
    assert!(matches!(answer.code, 400 | 413), "{}", answer.code);
    let body = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    post(&api, "application/json", body).await.refused_with(400, "BadRequest", "");
}

async fn deep_custom_json_is_refused(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})).await;
    let body = format!(
        "{{\"apiVersion\":\"{}/v1\",\"kind\":\"Widget\",\"metadata\":{{\"name\":\"a\"}},\"spec\":{}}}",
        kind.group,
        nested(20_000)
    );
    let answer = api.send(Call::new(Method::POST, &kind.path(&ns)).body("application/json", body)).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
    api.post(&kind.path(&ns), kind.object("a", json!({"fine": true}))).await.created();
}

async fn a_huge_body_is_refused(api: Target) {
    let ns = api.namespace().await;
    let body = map("a", json!({"k": "x".repeat(4 << 20)})).to_string();
    let answer = api.send(Call::new(Method::POST, &maps(&ns)).body("application/json", body)).await;
    answer.refused(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728");
}

async fn a_large_object_is_refused(api: Target) {
    let ns = api.namespace().await;
    let answer = api.post(&maps(&ns), map("a", json!({"k": "x".repeat(1_100_000)}))).await;
    answer.refused(
        422,
        "Invalid",
        "ConfigMap \"a\" is invalid: []: Too long: may not be more than 1048576 bytes",
    );
}

const TRICKS: [&str; 12] = [
    "/api/v1/../v1/namespaces",
    "/api/v1/namespaces/./default",
    "/../../etc/passwd",
    "/api/v1/namespaces/default/configmaps/..",
    "/api/v1/namespaces/%2e%2e/configmaps",
    "/api/v1/namespaces/default/configmaps/a%2Fb",
    "/api/v1/namespaces/default%2Fconfigmaps",
    "/api%2Fv1/namespaces",
    "//api/v1/namespaces",
    "/api//v1/namespaces",
    "/api/v1/namespaces//configmaps",
    "/version/../api/v1/secrets",
];

async fn tricks_in_a_path_open_no_door(api: Target) {
    // Anonymous may see versions and health: no way of writing a path makes it more.
    for path in TRICKS.into_iter().chain([
        "/healthz/../api/v1/namespaces",
        "/readyz/..%2Fapi/v1/namespaces",
        "/version/%2e%2e/api/v1/namespaces",
        "/livez//api/v1/namespaces",
    ]) {
        let answer = api.send(Call::get(path).authorization("")).await;
        assert!((300..500).contains(&answer.code), "{answer}");
    }
}

async fn tricks_in_a_path_leave_the_api(api: Target) {
    for path in TRICKS {
        let answer = api.get(path).await;
        assert!(!answer.text().contains("root:"), "{answer}");
    }
    still_fine(&api).await;
}

async fn odd_bytes_in_a_path_lead_nowhere(api: Target) {
    for name in ["%00", "%ff", "a%0d%0aX-Injected:%201", "%F0%9F%90%9A", "a%20b", "a;b"] {
        let answer = api.get(&format!("{}/{name}", maps("default"))).await;
        assert!((400..500).contains(&answer.code), "{answer}");
        assert!(answer.header("x-injected").is_empty());
    }
}

async fn a_very_long_path_is_refused(api: Target) {
    let answer = api.get(&format!("{}/{}", maps("default"), "a".repeat(5000))).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
}

async fn an_unknown_method_is_refused(api: Target) {
    let method = Method::from_bytes(b"BREW").expect("a token is a method");
    let answer = api.send(Call::new(method, &maps("default"))).await;
    assert!(matches!(answer.code, 403 | 405), "{answer}");
}

/// A TLS connection to the server, with nothing said yet.
async fn connection(api: &Target) -> tokio_rustls::client::TlsStream<tokio::net::TcpStream> {
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{CertificateDer, ServerName};
    let mut roots = rustls::RootCertStore::empty();
    for der in CertificateDer::pem_slice_iter(api.way.ca.as_bytes()) {
        roots.add(der.expect("the CA is PEM")).expect("the CA is a certificate");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("TLS 1.2 and 1.3 are there")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let at = address(api);
    let host = at.rsplit_once(':').expect("host and port").0.to_owned();
    let tcp = tokio::net::TcpStream::connect(&at).await.expect("the server listens");
    let name = ServerName::try_from(host).expect("a host is a name");
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await.expect("TLS works")
}

fn address(api: &Target) -> String {
    api.way.server.trim_start_matches("https://").to_owned()
}

/// What the server says until it closes, within a deadline.
async fn last_words(mut stream: impl tokio::io::AsyncRead + Unpin, patience: Duration) -> Option<String> {
    let mut said = Vec::new();
    let read = tokio::time::timeout(patience, async {
        let mut piece = [0; 4096];
        while let Ok(n) = stream.read(&mut piece).await {
            if n == 0 {
                break;
            }
            said.extend_from_slice(&piece[..n]);
        }
    });
    read.await.ok()?;
    Some(String::from_utf8_lossy(&said).into_owned())
}

async fn still_fine(api: &Target) {
    api.get("/readyz").await.ok();
}

async fn a_broken_request_line_is_refused(api: Target) {
    for words in [
        "nonsense\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "GET /api HTTP/1.1\r\nHost: a\r\nBad Header\r\n\r\n",
    ] {
        let mut stream = connection(&api).await;
        stream.write_all(words.as_bytes()).await.expect("it can be written");
        let said = last_words(stream, Duration::from_secs(20))
            .await
            .unwrap_or_else(|| panic!("{words:?}: left open"));
        let code: u16 = said.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(400);
        assert!((400..506).contains(&code), "{words:?}: {said}");
    }
    still_fine(&api).await;
}

async fn a_head_that_never_ends_is_cut_off(api: Target) {
    let mut stream = connection(&api).await;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: a\r\n").await.expect("it can be written");
    // Headers without end: at some point the server has had enough.
    let line = format!("X-Pad: {}\r\n", "x".repeat(1000));
    let mut sent = 0;
    while sent < 3000 && stream.write_all(line.as_bytes()).await.is_ok() {
        sent += 1;
    }
    let said = last_words(stream, Duration::from_secs(20)).await;
    let said = said.expect("the connection is closed");
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    still_fine(&api).await;
}

async fn a_body_that_is_too_short_harms_nobody(api: Target) {
    let ns = api.namespace().await;
    let mut stream = connection(&api).await;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n{{\"apiVersion\"",
        maps(&ns),
        api.way.token
    );
    stream.write_all(head.as_bytes()).await.expect("it can be written");
    stream.shutdown().await.expect("it can be ended");
    drop(stream);
    still_fine(&api).await;
    assert!(api.get(&maps(&ns)).await.names().is_empty());
}

async fn a_client_without_tls_is_refused(api: Target) {
    let mut stream = tokio::net::TcpStream::connect(address(&api)).await.expect("the server listens");
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("it can be written");
    let said = last_words(stream, Duration::from_secs(20)).await.expect("the connection is closed");
    assert!(!said.contains(" 200 "), "{said}");
    still_fine(&api).await;
}

async fn many_broken_clients_harm_nobody(api: Target) {
    let mut held = Vec::new();
    for _ in 0..50 {
        let mut stream = tokio::net::TcpStream::connect(address(&api)).await.expect("the server listens");
        let _ = stream.write_all(b"\x16\x03\x01").await;
        held.push(stream);
    }
    still_fine(&api).await;
    drop(held);
    still_fine(&api).await;
}

async fn invalid_utf8_is_refused(api: Target) {
    let ns = api.namespace().await;
    let mut body = br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"#.to_vec();
    body.extend_from_slice(b"\"\xff\xfe\"}}");
    let answer = api.send(Call::new(Method::POST, &maps(&ns)).body("application/json", body)).await;
    // Go's decoder puts U+FFFD in the place of what is no UTF-8.
    assert!(matches!(answer.code, 201 | 400), "{answer}");
    if answer.code == 201 {
        answer.has("/data/k", "\u{fffd}\u{fffd}");
    }
}

async fn a_null_in_a_name_is_refused(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a\u{0}b", json!({}))).await.refused_with(
        422,
        "Invalid",
        "metadata.name: Invalid value: \"a\\x00b\"",
    );
}

async fn huge_numbers_do_not_wrap(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"n": {"type": "integer"}, "x": {"type": "number"}}))).await;
    for (number, code) in [("9223372036854775807", 201), ("9223372036854775808", 422), ("1e400", 400)] {
        let body = format!(
            "{{\"apiVersion\":\"{}/v1\",\"kind\":\"Widget\",\"metadata\":{{\"generateName\":\"a-\"}},\"spec\":{{\"n\":{number}}}}}",
            kind.group
        );
        let answer = api.send(Call::new(Method::POST, &kind.path(&ns)).body("application/json", body)).await;
        assert_eq!(answer.code, code, "{number}: {answer}");
    }
    let body = "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":99999999999}}";
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    let answer = api.send(Call::new(Method::POST, &path).body("application/json", body)).await;
    answer.refused_with(400, "BadRequest", "cannot unmarshal number");
}

async fn a_patch_of_deep_json_is_refused(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    for kind in [
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ] {
        let path = format!("{}/a?fieldManager=m", maps(&ns));
        let answer = api.send(Call::new(Method::PATCH, &path).body(kind, nested(50_000))).await;
        assert!((400..500).contains(&answer.code), "{kind}: {}", answer.code);
    }
    api.get(&format!("{}/a", maps(&ns))).await.ok();
}

async fn a_copy_bomb_is_refused(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({"k": "x".repeat(1000)}))).await.created();
    // Each copy doubles what there is; twenty of them would be a gigabyte.
    let mut operations = vec![json!({"op": "copy", "from": "/data", "path": "/metadata/x0"})];
    for n in 0..40 {
        operations.push(json!({"op": "copy", "from": "/metadata", "path": format!("/metadata/y{n}")}));
    }
    let answer = api.patch(&format!("{}/a", maps(&ns)), Patch::Json, json!(operations)).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
    still_fine(&api).await;
}

async fn a_yaml_bomb_is_refused(api: Target) {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let before = vec![format!("*a{}", n - 1); 9].join(", ");
        text.push_str(&format!("a{n}: &a{n} [{before}]\n"));
    }
    let since = std::time::Instant::now();
    let answer = post(&api, "application/yaml", text).await;
    assert!((400..500).contains(&answer.code), "{}", answer.code);
    assert!(since.elapsed() < Duration::from_secs(15), "it took {:?}", since.elapsed());
    still_fine(&api).await;
}

async fn odd_queries_are_refused(api: Target) {
    for query in ["timeoutSeconds=x", "limit=x"] {
        let answer = api.get(&format!("{}?{query}", maps("default"))).await;
        assert_eq!(answer.code, 400, "{query}: {answer}");
    }
    api.get(&format!("{}?%zz=1&limit=1", maps("default"))).await;
    still_fine(&api).await;
}

async fn long_selectors_do_not_hurt(api: Target) {
    let many: Vec<_> = (0..500).map(|n| format!("k{n}!=v{n}")).collect();
    api.send(Call::get(&maps("default")).query("labelSelector", &many.join(","))).await.ok();
    let deep = format!("a in ({})", "(".repeat(1000));
    api.send(Call::get(&maps("default")).query("labelSelector", &deep)).await.is(400);
}

async fn options_of_the_wrong_type_are_refused(api: Target) {
    let ns = api.namespace().await;
    api.post(&core(&ns, "secrets"), json!({"metadata": {"name": "s"}})).await.created();
    let path = format!("{}/s", core(&ns, "secrets"));
    for options in [json!({"gracePeriodSeconds": "soon"}), json!({"preconditions": []}), json!([])] {
        let answer = api.delete_with(&path, options).await;
        assert_eq!(answer.code, 400, "{answer}");
    }
    api.get(&path).await.ok();
}
