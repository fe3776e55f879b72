//! Every message goes through its encoding and comes back equal.

use std::collections::BTreeSet;

use atoll_link::frame::{self, Frame};
use atoll_link::{Down, Message, Up};

use crate::examples::{downs, kind_of_down, kind_of_up, ups};
use crate::through;

fn encoded_kind<M: Message + Clone>(message: &M) -> String {
    let bytes = frame::encode(&Frame { number: 1, heard: 0, message: message.clone() }).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    json["message"]["kind"].as_str().unwrap().to_owned()
}

#[test]
fn every_word_of_a_hub_arrives_as_it_was_sent() {
    let mut kinds = BTreeSet::new();
    for down in downs() {
        assert_eq!(encoded_kind(&down), kind_of_down(&down));
        kinds.insert(kind_of_down(&down));
        assert_eq!(through(down.clone()), down);
    }
    assert_eq!(
        kinds,
        Down::KINDS.iter().copied().collect(),
        "each kind has an example, and is known to be one"
    );
}

#[test]
fn every_word_of_a_member_arrives_as_it_was_sent() {
    let mut kinds = BTreeSet::new();
    for up in ups() {
        assert_eq!(encoded_kind(&up), kind_of_up(&up));
        kinds.insert(kind_of_up(&up));
        assert_eq!(through(up.clone()), up);
    }
    assert_eq!(
        kinds,
        Up::KINDS.iter().copied().collect(),
        "each kind has an example, and is known to be one"
    );
}
