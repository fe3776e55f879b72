//! Parsers of bytes that anybody may send, without a server: whatever comes, each answers. What it takes it can write down again.

use atoll_apimachinery::admission::Policy;
use atoll_apimachinery::table::JsonPath;
use atoll_apimachinery::{protobuf, schema, strict};
use atoll_dns::{Catalog, Endpoint, Event, Import, Kind, Name, Settings, Slice, Snapshot, Transport};
use atoll_kubeapi::authn::{TokenKey, User};
use atoll_kubeapi::encryption::Keys;
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::{backup, websocket};
use atoll_link::frame::{self, Incoming};
use atoll_link::{Down, Message, Up};
use bytes::BytesMut;
use serde_json::json;
use std::fmt::Debug;
use std::net::Ipv4Addr;

/// Whatever time it is.
const NOW: i64 = 1_800_000_000;

/// What aliases may make out of a few lines, escaped.
const MOST_GROWN: usize = 32 << 20;

/// What parsers need, made once.
pub(crate) struct World {
    names: Snapshot,
    tokens: TokenKey,
}

impl World {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let pki = Pki::ephemeral(&[], NOW)?;
        let key = pki
            .token_keys_der()
            .into_iter()
            .next()
            .ok_or_else(|| anyhow::anyhow!("there is no key for tokens"))?;
        Ok(Self { names: names(), tokens: TokenKey::from_pkcs8(key.secret_der())? })
    }
}

fn names() -> Snapshot {
    let mut catalog = Catalog::new(Settings::default(), 1);
    let ips = vec![Ipv4Addr::new(10, 111, 0, 7).into()];
    for (name, import) in
        [("web", Import { ips, ..Import::default() }), ("db", Import { headless: true, ..Import::default() })]
    {
        catalog.apply(Event::Import { namespace: "shop".to_owned(), name: name.to_owned(), import });
    }
    let endpoints =
        (1..=50).map(|host| Endpoint { address: Ipv4Addr::new(10, 11, 0, host).into(), hostname: None });
    let cluster = Name::label("paris").unwrap_or_default();
    let slice =
        Slice { service: "db".to_owned(), cluster, ports: Box::default(), endpoints: endpoints.collect() };
    catalog.apply(Event::Slice { namespace: "shop".to_owned(), name: "db-1".to_owned(), slice });
    catalog.apply(Event::Listed(Kind::Imports));
    catalog.apply(Event::Listed(Kind::Slices));
    catalog.publish();
    catalog.snapshot().clone()
}

/// Bodies as JSON.
pub(crate) fn json(input: &[u8]) -> Result<(), String> {
    let Ok((value, _)) = strict::parse(input) else { return Ok(()) };
    let written = value.to_string();
    match strict::parse(written.as_bytes()) {
        Ok((again, _)) if again == value => Ok(()),
        again => Err(format!("{written} is read as {again:?}")),
    }
}

/// Bodies as YAML.
pub(crate) fn yaml(input: &[u8]) -> Result<(), String> {
    match strict::parse_yaml(input) {
        Ok((value, _)) if value.to_string().len() > MOST_GROWN => {
            Err(format!("{} bytes grow to {}", input.len(), value.to_string().len()))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Bodies as protobuf.
pub(crate) fn proto(input: &[u8]) -> Result<(), String> {
    match protobuf::decode(input) {
        Ok(value) if value.to_string().len() > 64 * 1024 + input.len() * 64 => {
            Err(format!("{} bytes grow to {}", input.len(), value.to_string().len()))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Rules of CRDs and policies, compiled and run.
pub(crate) fn expression(input: &[u8]) -> Result<(), String> {
    let text = String::from_utf8_lossy(input);
    let document = json!({"type": "object", "x-kubernetes-validations": [{"rule": text, "message": "m"}]});
    let _ = schema::structural(&document, "schema");
    if let Ok(parsed) = schema::parse(&document) {
        let _ = schema::rules(&json!({"a": [1, 2], "b": "text"}), None, &parsed);
    }
    let _ = Policy::compile(&json!({"spec": {"validations": [{"expression": text}]}}));
    Ok(())
}

/// Paths of columns.
pub(crate) fn json_path(input: &[u8]) -> Result<(), String> {
    if let Ok(path) = JsonPath::parse(&String::from_utf8_lossy(input)) {
        let _ = path.find(&json!({"a": [{"b": 1}, {"b": "x"}], "c": {"d": null}}));
    }
    Ok(())
}

/// Packets of DNS.
pub(crate) fn packet(world: &World, input: &[u8]) -> Result<(), String> {
    for (transport, limit) in [(Transport::Udp, 1232), (Transport::Tcp, 65_535)] {
        let mut reply = Vec::new();
        let answered = atoll_dns::respond(&world.names, input, transport, 3, &mut reply).is_some();
        if reply.len() > limit || (answered && reply.get(..2) != input.get(..2)) {
            return Err(format!("{} bytes are answered with {reply:02x?}", input.len()));
        }
    }
    Ok(())
}

/// Frames of a link, in both directions.
pub(crate) fn link(input: &[u8]) -> Result<(), String> {
    one_way::<Up>(input)?;
    one_way::<Down>(input)
}

fn one_way<M: Message + Debug + PartialEq>(input: &[u8]) -> Result<(), String> {
    let Ok(Incoming::Known(frame)) = frame::decode::<M>(input) else { return Ok(()) };
    let written = frame::encode(&frame).map_err(|error| error.to_string())?;
    match frame::decode::<M>(&written) {
        Ok(Incoming::Known(again)) if again == frame => Ok(()),
        again => Err(format!("{frame:?} is read as {again:?}")),
    }
}

/// Frames of a WebSocket, from both ends.
pub(crate) fn frames(input: &[u8]) -> Result<(), String> {
    for mut decoder in [websocket::Decoder::of_client(), websocket::Decoder::of_server()] {
        let mut buffer = BytesMut::from(input);
        let mut left = buffer.len() + 1;
        while let Ok(Some(_)) = decoder.next(&mut buffer) {
            // Every event uses something up.
            if left == 0 {
                return Err("it never ends".to_owned());
            }
            left -= 1;
        }
    }
    Ok(())
}

/// Bearer tokens: nobody can make one without the key.
pub(crate) fn token(world: &World, input: &[u8]) -> Result<(), String> {
    match world.tokens.verify(&String::from_utf8_lossy(input), &[], NOW) {
        Ok(claims) => Err(format!("a forged token stands for {claims:?}")),
        Err(_) => Ok(()),
    }
}

/// Certificates of clients.
pub(crate) fn certificate(input: &[u8]) -> Result<(), String> {
    let _ = User::from_certificate(input);
    Ok(())
}

/// Backups.
pub(crate) fn backup(input: &[u8]) -> Result<(), String> {
    let _ = backup::check(input, &Keys::default());
    Ok(())
}

/// What providers of load balancers say and are told.
pub(crate) fn provider(input: &[u8]) -> Result<(), String> {
    atoll_lb::provider::readable(input);
    Ok(())
}

/// The balancer's file.
pub(crate) fn balancer(input: &[u8]) -> Result<(), String> {
    let _ = atoll_lb::config::parse(&String::from_utf8_lossy(input));
    Ok(())
}

/// Kubeconfigs.
pub(crate) fn kubeconfig(input: &[u8]) -> Result<(), String> {
    let _ = kube::config::Kubeconfig::from_yaml(&String::from_utf8_lossy(input));
    Ok(())
}
