//! What a hostile user sends.

use super::hub::post;
use clap::ValueEnum;
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use std::fmt;
use std::fmt::Write as _;
use std::time::Duration;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Input {
    /// A small object: what all others are compared with.
    #[value(skip)]
    Cheap,
    /// Bodies as long as they may be.
    LargeBodies,
    /// Objects that name one field very often.
    DuplicateKeys,
    /// Objects with very many owners.
    Owners,
    /// Objects whose rules cost very much.
    Rules,
    /// Very long lists.
    Lists,
    /// Applied objects with very many fields.
    Applies,
    /// Very deep bodies.
    DeepBodies,
    /// Bodies of very many tiny maps.
    TinyMaps,
}

impl fmt::Display for Input {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Cheap => "cheap",
            Self::LargeBodies => "large-bodies",
            Self::DuplicateKeys => "duplicate-keys",
            Self::Owners => "owners",
            Self::Rules => "rules",
            Self::Lists => "lists",
            Self::Applies => "applies",
            Self::DeepBodies => "deep-bodies",
            Self::TinyMaps => "tiny-maps",
        })
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const LOOPS: &str = "/apis/bench.example.com/v1/loops";
/// Just below what a body may have.
const MOST: usize = 3_000_000;

impl Input {
    pub(super) const ALL: [Self; 8] = [
        Self::LargeBodies,
        Self::DuplicateKeys,
        Self::Owners,
        Self::Rules,
        Self::Lists,
        Self::Applies,
        Self::DeepBodies,
        Self::TinyMaps,
    ];

    /// The body that is sent again and again.
    pub(super) fn body(self) -> Vec<u8> {
        let map = |name: &str, more: &str| {
            format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}{more}}}"#)
        };
        match self {
            Self::Cheap => map("cheap", r#","data":{"a":"b"}"#),
            Self::LargeBodies => map("large", &format!(r#","data":{{"text":"{}"}}"#, "x".repeat(MOST))),
            Self::DuplicateKeys => {
                map("twice", &format!(r#","data":{{{}"a":"b"}}"#, r#""a":"b","#.repeat(MOST / 8 - 20)))
            }
            Self::Owners => {
                let owners = (0..20_000).map(|at| {
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "name": format!("owner-{at}"), "uid": format!("uid-{at}")})
                });
                let owners = Value::from(owners.collect::<Vec<_>>());
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "owned-", "ownerReferences": owners}})
                    .to_string()
            }
            Self::Rules => {
                let list: Vec<String> = (0..10_000).map(|at| format!("element-{at}")).collect();
                json!({"apiVersion": "bench.example.com/v1", "kind": "Loop", "metadata": {"name": "loop"}, "spec": {"list": list}})
                    .to_string()
            }
            Self::Lists => String::new(),
            Self::Applies => {
                let mut data = String::new();
                for at in 0..20_000 {
                    let _ = write!(data, r#"{}"field-{at}":"{at}""#, if at == 0 { "" } else { "," });
                }
                map("applied", &format!(r#","data":{{{data}}}"#))
            }
            Self::DeepBodies => "[".repeat(MOST),
            Self::TinyMaps => map("tiny", &format!(r#","x":[{}{{}}]"#, r#"{"a":1},"#.repeat(MOST / 8 - 20))),
        }
        .into_bytes()
    }

    /// The request with this body.
    pub(super) fn request(self, body: Vec<u8>) -> Result<Request<Vec<u8>>, http::Error> {
        let (request, kind) = match self {
            Self::Cheap => (Request::put(format!("{MAPS}/cheap")), "application/json"),
            Self::LargeBodies | Self::DuplicateKeys | Self::Owners | Self::DeepBodies | Self::TinyMaps => {
                (Request::post(MAPS), "application/json")
            }
            Self::Rules => (Request::post(LOOPS), "application/json"),
            Self::Lists => (Request::get(MAPS), "application/json"),
            Self::Applies => {
                let path = format!("{MAPS}/applied?fieldManager=hostile&force=true");
                (Request::patch(path), "application/apply-patch+yaml")
            }
        };
        request.header(http::header::CONTENT_TYPE, kind).body(body)
    }
}

/// Makes what the inputs need: a kind with rules, objects to list, an object to change.
pub(super) async fn prepare(admin: &Client) -> anyhow::Result<()> {
    let rule = json!([{"rule": "self.list.all(x, self.list.all(y, x != y || x == y))"}]);
    let list = json!({"type": "array", "items": {"type": "string"}});
    let spec = json!({"type": "object", "x-kubernetes-validations": rule, "properties": {"list": list}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "loops.bench.example.com"}, "spec": {"group": "bench.example.com", "scope": "Cluster",
            "names": {"plural": "loops", "singular": "loop", "kind": "Loop", "listKind": "LoopList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    post(admin, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await?;
    for name in ["cheap", "applied", "honest"] {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}});
        post(admin, MAPS, &map).await?;
    }
    let text = "x".repeat(5_000);
    for at in 0..1_000 {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("listed-{at}")}, "data": {"text": text}});
        post(admin, MAPS, &map).await?;
    }
    for _ in 0..100 {
        let loops = Request::get(LOOPS).body(Vec::new())?;
        if admin.request_text(loops).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("the kind `loops` is not served")
}
