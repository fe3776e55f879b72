//! The form of the bytes: a change of it has to be meant, and may need a new version.

use std::time::Duration;

use atoll_engine::world::Change;
use atoll_link::frame::{self, Frame};
use atoll_link::{Assignment, Down, Hello, Lease, Message, Side, Up};

use crate::examples::{identity, parts};
use crate::fixture::{WEB, key, slice, slice_name};

fn text<M: Message>(message: M) -> String {
    let frame = Frame { number: 7, heard: 3, message };
    String::from_utf8(frame::encode(&frame).unwrap()).unwrap()
}

#[test]
fn messages_have_this_form() {
    let slice = slice("http:8080", &["10.1.0.1"]).into();
    let tokyo = parts().into_iter().last();
    let touched = atoll_engine::plan::Touched::Everything;
    let assign = Assignment { service: key(WEB), part: tokyo, touched, answer: None };
    for (got, want) in [
        (text(Up::Alive), r#"{"number":7,"heard":3,"message":{"kind":"Alive"}}"#),
        (
            text(Up::Unreachable { silent_for: Duration::from_millis(1500), why: "refused".to_owned() }),
            r#"{"number":7,"heard":3,"message":{"kind":"Unreachable","body":{"silent_for":{"secs":1,"nanos":500000000},"why":"refused"}}}"#,
        ),
        (
            text(Up::Change(Change::Slice(key(WEB), slice_name("web-1"), Some(slice)))),
            r#"{"number":7,"heard":3,"message":{"kind":"Change","body":{"Slice":[{"namespace":"shop","name":"web"},"web-1",{"family":"V4","ports":[{"name":"http","protocol":"Tcp","port":8080,"app_protocol":null}],"endpoints":[{"addresses":["10.1.0.1"],"conditions":{"ready":true,"serving":true,"terminating":false},"hostname":null,"node":"node-1","zone":"zone-a","for_zones":[]}]}]}}}"#,
        ),
        (
            text(Down::Lease(Lease::Held(Duration::from_secs(8)))),
            r#"{"number":7,"heard":3,"message":{"kind":"Lease","body":{"Held":{"secs":8,"nanos":0}}}}"#,
        ),
        (
            text(Down::Start(identity())),
            r#"{"number":7,"heard":3,"message":{"kind":"Start","body":{"cluster":"paris","hub":"8c0f6a2e-hub","clusterset":"atolls.example"}}}"#,
        ),
        (text(Down::Assign(assign)), ASSIGN),
    ] {
        assert_eq!(got, want);
    }
    let hello = Hello { program: "atoll 1.0".to_owned(), ..Hello::ours(Side::Member) };
    let want = r#"{"side":"Member","speaks":{"oldest":1,"newest":1},"program":"atoll 1.0"}"#;
    assert_eq!(serde_json::to_string(&hello).unwrap(), want);
}

const ASSIGN: &str = r#"{"number":7,"heard":3,"message":{"kind":"Assign","body":{"service":{"namespace":"shop","name":"web"},"part":{"import":{"Present":{"import":{"spec":{"headless":false,"ports":[{"name":"http","protocol":"Tcp","port":80,"app_protocol":"kubernetes.io/h2c"}],"session_affinity":"None","client_ip_timeout":null,"internal_traffic_policy":"Cluster","traffic_distribution":null,"labels":{},"annotations":{}},"families":["V4"],"derived":{"name":"derived-web","families":["V4"],"traffic_distribution":null},"clusters":["paris","rome"],"ready":"Ready","notes":[],"stale":{}},"slices":{"lima":{"KeepWhatIsThere":"NotHeard"},"paris":{"Exactly":[[{"name":"imported-paris-web-1","original":"web-1","source":"paris","family":"V4","ports":[{"name":"http","protocol":"Tcp","port":8080,"app_protocol":null}],"endpoints":[{"addresses":["10.1.0.1"],"conditions":{"ready":true,"serving":true,"terminating":false},"hostname":null,"node":null,"zone":"zone-a","for_zones":[],"for_nodes":[]}],"notes":[{"AddressRefused":{"address":"127.0.0.1","why":"Loopback"}}]}],"Alive"]},"rome":{"Exactly":[[],"Alive"]}}}},"export":null,"dispatch":{"Untouched":"NothingKnown"},"follow":false},"touched":"Everything","answer":null}}}"#;
