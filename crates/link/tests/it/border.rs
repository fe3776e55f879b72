//! What a newer peer adds is passed over; what a hostile one sends is refused.

use atoll_link::frame::{self, Incoming, LONGEST};
use atoll_link::{BadFrame, Down, Frame, Inbox, Up};
use serde_json::{Value, json};

use crate::said;

fn up(message: &Value) -> Result<Incoming<Up>, BadFrame> {
    frame::decode(&said(message))
}

fn down(message: &Value) -> Result<Incoming<Down>, BadFrame> {
    frame::decode(&said(message))
}

#[test]
fn fields_that_only_a_newer_side_knows_are_ignored() {
    let wrote = json!({ "kind": "Wrote", "trace": "abc", "body": {
        "service": { "namespace": "shop", "name": "web", "shard": 3 },
        "kind": "Slice", "verb": "Update", "slice": null, "bytes": 1200,
    }});
    assert!(matches!(up(&wrote), Ok(Incoming::Known(frame)) if matches!(frame.message, Up::Wrote(_))));
    let alive = json!({ "kind": "Alive", "body": null });
    assert!(matches!(up(&alive), Ok(Incoming::Known(frame)) if frame.message == Up::Alive));
}

#[test]
fn a_kind_that_only_a_newer_side_knows_is_skipped_and_its_number_counts() {
    for body in [json!({ "a": [1, { "b": 2 }] }), json!("text"), Value::Null] {
        let frame = up(&json!({ "kind": "Dreams", "body": body })).unwrap();
        let Incoming::Unknown(frame) = frame else { panic!("{frame:?}") };
        assert_eq!((frame.number, frame.heard, frame.message.kind.as_str()), (7, 3, "Dreams"));
    }
    assert!(
        matches!(down(&json!({ "kind": "Alive" })), Ok(Incoming::Unknown(_))),
        "members say that, hubs do not"
    );
}

#[test]
fn bad_names_addresses_and_ports_do_not_cross() {
    let slice = |name: &str, port: u64, address: &str| {
        json!({ "kind": "Change", "body": { "Slice": [{ "namespace": "shop", "name": "web" }, name, {
            "family": "V4",
            "ports": [{ "name": "http", "protocol": "Tcp", "port": port, "app_protocol": null }],
            "endpoints": [{ "addresses": [address], "conditions": {}, "hostname": null, "node": null,
                "zone": null, "for_zones": [] }],
        }] }})
    };
    assert!(up(&slice("web-1", 80, "10.1.0.1")).is_ok(), "{:?}", up(&slice("web-1", 80, "10.1.0.1")));
    for bad in [
        slice("../secrets", 80, "10.1.0.1"),
        slice("web-1", 0, "10.1.0.1"),
        slice("web-1", 65_536, "10.1.0.1"),
        slice("web-1", 80, "10.1.0.1/8"),
        json!({ "kind": "Holds", "body": { "namespace": "Shop", "name": "web" } }),
        json!({ "kind": "Change", "body": { "Nodes": { "addresses": [], "pods": ["10.0.0.0/33"] } } }),
        json!({ "kind": "Copy", "body": { "state": "Gone", "key": { "apiVersion": "v1", "kind": "Secret", "namespace": "a/b", "name": "x" } } }),
    ] {
        assert!(matches!(up(&bad), Err(BadFrame::Unreadable(_))), "{bad}");
    }
    let order = |version: &str, kind: &str, name: &str| {
        let key = json!({ "apiVersion": version, "kind": kind, "namespace": "shop", "name": name });
        json!({ "kind": "Order", "body": { "key": key, "order": "Drop" } })
    };
    assert!(down(&order("apps/v1", "Deployment", "system:web")).is_ok());
    for bad in [
        order("apps/v1", "Deployment", "../../nodes"),
        order("apps/v1", "Deployment", ".."),
        order("apps/v1", "Deployment", "a%2fb"),
        order("apps/v1", "Deploy/ment", "web"),
        order("/v1", "Deployment", "web"),
        order("apps/v1/x", "Deployment", "web"),
        json!({ "kind": "Start", "body": { "cluster": "paris", "hub": "a,b=c", "clusterset": "atolls" } }),
        json!({ "kind": "Start", "body": { "cluster": "paris", "hub": "", "clusterset": "atolls" } }),
        json!({ "kind": "Start", "body": { "cluster": "paris", "hub": "h", "clusterset": "A b" } }),
        json!({ "kind": "Lease", "body": { "Held": { "secs": u64::MAX, "nanos": 4_000_000_000_u64 } } }),
    ] {
        assert!(matches!(down(&bad), Err(BadFrame::Unreadable(_))), "{bad}");
    }
}

#[test]
fn what_is_no_frame_or_too_long_is_refused() {
    for bytes in [&b""[..], b"{}", b"null", b"\xff", br#"{"number":1,"heard":0}"#] {
        assert!(matches!(frame::decode::<Up>(bytes), Err(BadFrame::Unreadable(_))), "{bytes:?}");
    }
    let deep = "[".repeat(100_000);
    assert!(matches!(frame::decode::<Up>(deep.as_bytes()), Err(BadFrame::Unreadable(_))));
    let long = vec![b' '; LONGEST + 1];
    assert!(matches!(frame::decode::<Up>(&long), Err(BadFrame::TooLong(_))));
}

#[test]
fn frames_are_read_in_order_and_skipped_ones_are_counted() {
    let frame = |number: u64, kind: &str| {
        json!({ "number": number, "heard": 0, "message": { "kind": kind } }).to_string().into_bytes()
    };
    let mut inbox = Inbox::default();
    let alive = Frame { number: 1, heard: 0, message: Up::Alive };
    assert_eq!(inbox.read(&frame(1, "Alive")).unwrap(), Some(alive));
    assert_eq!(inbox.read::<Up>(&frame(2, "Dreams")).unwrap(), None);
    assert_eq!((inbox.heard(), inbox.skipped()), (2, 1));
    for number in [2, 4] {
        let error = inbox.read::<Up>(&frame(number, "Alive")).unwrap_err();
        assert_eq!(error.to_string(), format!("message {number} came where message 3 was awaited"));
    }
    assert!(inbox.read::<Up>(&frame(3, "Stopped")).unwrap().is_some());
}
