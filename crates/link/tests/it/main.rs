//! The link as a peer sees it: bytes.
#![allow(missing_docs, clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

#[path = "../../../engine/src/fixture.rs"]
mod fixture;

mod border;
mod encoding;
mod examples;
mod golden;
mod leases;
mod properties;
mod versions;

use atoll_link::frame::{self, Frame, Incoming, Message};

/// There and back.
fn through<M: Message>(message: M) -> M {
    let bytes = frame::encode(&Frame { number: 7, heard: 3, message }).unwrap();
    match frame::decode(&bytes).unwrap() {
        Incoming::Known(Frame { number: 7, heard: 3, message }) => message,
        Incoming::Known(_) | Incoming::Unknown(_) => panic!("{}", String::from_utf8_lossy(&bytes)),
    }
}

/// A frame around the words of a peer.
fn said(message: &serde_json::Value) -> Vec<u8> {
    serde_json::json!({ "number": 7, "heard": 3, "message": message }).to_string().into_bytes()
}
