//! The durable store on a medium that fails: power cuts, no room, failing syncs.

mod cost;
mod full;
mod medium;
mod power;
mod race;

use super::{Key, Object, Write};
use bytes::Bytes;

fn key(name: &str) -> Key {
    Key::new("", "configmaps", "shop", name)
}

fn body(text: &str) -> impl FnOnce(u64) -> Bytes + Send + 'static {
    let text = text.to_owned();
    move |revision| format!("{text}@{revision}").into()
}

fn create(text: &str) -> Write {
    Write::create(body(text))
}

fn update(object: &Object, text: &str) -> Write {
    Write::update(object.revision, body(text))
}
