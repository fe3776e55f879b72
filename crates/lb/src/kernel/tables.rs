//! The plan as nftables: a table per family, replaced whole in one transaction, or changed where only places move.

use std::net::{IpAddr, SocketAddr};

use nlink::netlink::nftables::{
    BaseChain, Chain, CmpOp, CtDirection, CtKey, Expr, Family, HashKind, LookupExpr, MetaKey, NatAddr,
    NatExpr, NatHook, NatStatement, PayloadBase, Priority, Register, Rule, Set, SetDataType, SetElement,
    SetKeyType, Transaction,
};
use nlink::netlink::{Connection, Nftables};

use super::plan::{Forward, Plan};
use crate::desired::{Protocol, Source};

const TABLE: &str = "atoll_lb";
/// Before rules of others that translate the same packets.
const BEFORE: i32 = -5;
/// An attribute of netlink holds 64 KiB.
const ELEMENTS_AT_ONCE: usize = 256;
/// A transaction is sent as one message, which has to fit into the socket's buffer: tables and rules, and an element of two maps per place.
const ROOM: usize = 256 * 1024;
const ROOM_OF_A_PLACE: usize = 256;
/// Where the place of a client is kept while its address and port are looked up. The last of all.
const PLACE: Register = Register::Reg32_15;

/// Whether there are tables of ours, or of another balancer.
pub(super) async fn exist() -> nlink::Result<bool> {
    Ok(Connection::<Nftables>::new()?.list_tables().await?.iter().any(|table| table.name == TABLE))
}

/// Makes the kernel's tables those of `plan`, or leaves them as they were.
pub(super) async fn replace(plan: &Plan) -> nlink::Result<()> {
    let connection = Connection::<Nftables>::new()?;
    let mut transaction = connection.transaction();
    for family in [Family::Ip, Family::Ip6] {
        // Only we make or delete it.
        if connection.list_tables_in(family).await?.iter().any(|table| table.name == TABLE) {
            transaction = transaction.del_table(TABLE, family);
        }
        if plan.forwards.iter().any(|forward| is_of(forward, family)) {
            transaction = table(transaction, family)?;
        }
    }
    for (maps, forward) in all(plan) {
        transaction = maps.add(transaction, forward);
        for chain in ["prerouting", "output"] {
            transaction = transaction.add_rule(to_backend(chain, forward, &maps));
        }
        if let Some(rule) = from_us(maps.family, forward) {
            transaction = transaction.add_rule(rule);
        }
    }
    commit(transaction, &connection, plan.forwards.iter().map(|forward| forward.places.len()).sum()).await
}

/// Makes the places of `told`, which the kernel holds, those of `plan`, which has the same rules; or leaves them as they were.
pub(super) async fn change(told: &Plan, plan: &Plan) -> nlink::Result<()> {
    let connection = Connection::<Nftables>::new()?;
    let (mut transaction, mut places) = (connection.transaction(), 0);
    for ((maps, was), (_, is)) in all(told).zip(all(plan)) {
        let moved: Vec<(usize, &SocketAddr)> = was.moved(is).collect();
        transaction = maps.take(transaction, &moved);
        transaction = maps.fill(transaction, &moved);
        places += 2 * moved.len();
    }
    if places == 0 {
        return Ok(());
    }
    commit(transaction, &connection, places).await
}

/// How many connections have come to each place since it became its backend's, in the order of [`in_order`].
pub(super) async fn counts(plan: &Plan) -> nlink::Result<Vec<Vec<u64>>> {
    let connection = Connection::<Nftables>::new()?;
    let mut counts = Vec::new();
    for (maps, forward) in all(plan) {
        let mut each = vec![0; forward.places.len()];
        for element in connection.list_set_elements(TABLE, maps.addresses.name(), maps.family).await? {
            let place = element.key().try_into().map(u32::from_ne_bytes).map(|place| place as usize);
            if let Some(count) = place.ok().and_then(|place| each.get_mut(place)) {
                *count = element.counter().map_or(0, |(packets, _)| packets);
            }
        }
        counts.push(each);
    }
    Ok(counts)
}

async fn commit(
    transaction: Transaction,
    connection: &Connection<Nftables>,
    places: usize,
) -> nlink::Result<()> {
    let room = ROOM + places * ROOM_OF_A_PLACE;
    rustix::net::sockopt::set_socket_send_buffer_size_force(connection.socket(), room)
        .map_err(std::io::Error::from)?;
    transaction.commit(connection).await
}

fn is_of(forward: &Forward, family: Family) -> bool {
    forward.listener.is_ipv4() == (family == Family::Ip)
}

/// The forwards that have places, in the order of [`counts`].
pub(super) fn in_order(plan: &Plan) -> impl Iterator<Item = &Forward> {
    all(plan).map(|(_, forward)| forward)
}

/// All forwards that have places, with their maps: one number each among those of their family.
fn all(plan: &Plan) -> impl Iterator<Item = (Maps, &Forward)> {
    [Family::Ip, Family::Ip6].into_iter().flat_map(move |family| {
        let forwards = plan.forwards.iter().filter(move |forward| is_of(forward, family)).enumerate();
        let full = forwards.filter(|(_, forward)| !forward.places.is_empty());
        full.map(move |(number, forward)| (Maps::new(family, number, forward), forward))
    })
}

fn table(mut transaction: Transaction, family: Family) -> nlink::Result<Transaction> {
    transaction = transaction.add_table(TABLE, family);
    for (name, hook, priority) in [
        ("prerouting", NatHook::Prerouting, Priority::DstNat.to_i32() + BEFORE),
        ("output", NatHook::Output, Priority::DstNat.to_i32() + BEFORE),
        ("postrouting", NatHook::Postrouting, Priority::SrcNat.to_i32() + BEFORE),
    ] {
        let base = BaseChain::nat(hook, Priority::Custom(priority));
        transaction = transaction.add_chain(Chain::new(TABLE, name)?.family(family).base(base));
    }
    Ok(transaction)
}

/// From a place to an address, and from a place to a port.
struct Maps {
    family: Family,
    /// Counts who comes by.
    addresses: Set,
    ports: Set,
}

impl Maps {
    fn new(family: Family, number: usize, forward: &Forward) -> Self {
        let kind = if forward.listener.is_ipv4() { SetKeyType::Ipv4Addr } else { SetKeyType::Ipv6Addr };
        let map = |name: String, value| {
            let size = u32::try_from(forward.places.len()).unwrap_or(u32::MAX);
            let set = Set::new(TABLE, &name).family(family).key_type(SetKeyType::Mark).size(size);
            set.map(SetDataType::Value(value))
        };
        Self {
            family,
            addresses: map(format!("addresses{number}"), kind).counter(),
            ports: map(format!("ports{number}"), SetKeyType::InetService),
        }
    }

    fn add(&self, transaction: Transaction, forward: &Forward) -> Transaction {
        let transaction = transaction.add_set(self.addresses.clone()).add_set(self.ports.clone());
        let all: Vec<(usize, &SocketAddr)> = forward.places.iter().enumerate().collect();
        self.fill(transaction, &all)
    }

    fn fill(&self, mut transaction: Transaction, places: &[(usize, &SocketAddr)]) -> Transaction {
        for some in places.chunks(ELEMENTS_AT_ONCE) {
            let to = |value: fn(&SocketAddr) -> Vec<u8>| -> Vec<SetElement> {
                let elements = some
                    .iter()
                    .map(|(number, backend)| place(*number).value(SetElement::new(value(backend))));
                elements.collect()
            };
            transaction = transaction
                .add_set_elements(&self.addresses, &to(|backend| bytes(backend.ip())))
                .add_set_elements(&self.ports, &to(|backend| backend.port().to_be_bytes().to_vec()));
        }
        transaction
    }

    fn take(&self, mut transaction: Transaction, places: &[(usize, &SocketAddr)]) -> Transaction {
        for some in places.chunks(ELEMENTS_AT_ONCE) {
            let keys: Vec<SetElement> = some.iter().map(|(number, _)| place(*number)).collect();
            transaction =
                transaction.del_set_elements(&self.addresses, &keys).del_set_elements(&self.ports, &keys);
        }
        transaction
    }
}

fn place(number: usize) -> SetElement {
    SetElement::new(u32::try_from(number).unwrap_or(0).to_ne_bytes().to_vec())
}

fn bytes(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

fn equals(sreg: Register, data: Vec<u8>) -> Expr {
    Expr::Cmp { sreg, op: CmpOp::Eq, data }
}

fn number_of(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Tcp => 6,
        Protocol::Udp => 17,
    }
}

/// Clients of the listener go to the backend at their place.
fn to_backend(chain: &str, forward: &Forward, maps: &Maps) -> Rule {
    let v4 = forward.listener.is_ipv4();
    let (source, destination, length) = if v4 { (12, 16, 4) } else { (8, 24, 16) };
    let load = |dreg, base, offset, len| Expr::Payload { dreg, base, offset, len };
    // Address and port side by side: an IPv4 address fills one word, an IPv6 address four.
    let port = if v4 { Register::Reg32_09 } else { Register::Reg32_12 };
    let mut all = vec![
        load(Register::R0, PayloadBase::Network, destination, length),
        equals(Register::R0, bytes(forward.listener.ip())),
        Expr::Meta { dreg: Register::R0, key: MetaKey::L4Proto },
        equals(Register::R0, vec![number_of(forward.protocol)]),
        load(Register::R0, PayloadBase::Transport, 2, 2),
        equals(Register::R0, forward.listener.port().to_be_bytes().to_vec()),
        load(Register::R2, PayloadBase::Network, source, length),
    ];
    if !forward.by_client {
        all.push(load(port, PayloadBase::Transport, 0, 2));
    }
    all.push(Expr::Hash {
        dreg: PLACE,
        kind: HashKind::Jenkins,
        sreg: Some(Register::R2),
        len: if forward.by_client { length } else { length + 4 },
        modulus: u32::try_from(forward.places.len()).unwrap_or(1),
        seed: Some(forward.seed),
        offset: 0,
    });
    all.push(LookupExpr::new(maps.addresses.name(), PLACE).dreg(Register::R0).into());
    all.push(LookupExpr::new(maps.ports.name(), PLACE).dreg(Register::R1).into());
    // The port that is given here only says that there is one: it is taken from the register.
    let mut nat = NatExpr::dnat(maps.family).port(forward.listener.port());
    nat.addr = NatAddr::Reg;
    all.push(Expr::Nat(nat));
    Rule::new(TABLE, chain).family(maps.family).expressions(all)
}

/// Backends answer to us, unless the client's address is kept.
fn from_us(family: Family, forward: &Forward) -> Option<Rule> {
    // All ports of all addresses, in no order: 28,000 connections to one backend are not many.
    let nat = match forward.source {
        Source::Keep => return None,
        Source::Masquerade => NatStatement::masquerade().ports(1024, 65_535).fully_random(),
        Source::Pool(first, last) => NatStatement::snat(first).to(last).ports(1024, 65_535).fully_random(),
    };
    let original = |dreg, key| Expr::CtDirectional { dreg, key, direction: CtDirection::Original };
    let address = if forward.listener.is_ipv4() { CtKey::DstIp } else { CtKey::DstIp6 };
    let rule = Rule::new(TABLE, "postrouting")
        .family(family)
        .expr(original(Register::R0, address))
        .expr(equals(Register::R0, bytes(forward.listener.ip())))
        .expr(Expr::Meta { dreg: Register::R0, key: MetaKey::L4Proto })
        .expr(equals(Register::R0, vec![number_of(forward.protocol)]))
        .expr(original(Register::R0, CtKey::ProtoDst))
        .expr(equals(Register::R0, forward.listener.port().to_be_bytes().to_vec()));
    Some(rule.nat(nat))
}
