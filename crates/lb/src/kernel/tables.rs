//! The plan as nftables: a table per family, replaced whole in one transaction.

use std::net::{IpAddr, SocketAddr};

use nlink::netlink::nftables::{
    BaseChain, Chain, CmpOp, CtDirection, CtKey, Expr, Family, HashKind, LookupExpr, MetaKey, NatAddr,
    NatExpr, NatHook, NatStatement, PayloadBase, Priority, Register, Rule, Set, SetDataType, SetElement,
    SetKeyType, Transaction,
};
use nlink::netlink::{Connection, Nftables};

use super::plan::{Forward, Plan};
use crate::wanted::{Protocol, Source};

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

/// Makes the kernel's tables those of `plan`, or leaves them as they were.
pub(super) async fn replace(plan: &Plan) -> nlink::Result<()> {
    let connection = Connection::<Nftables>::new()?;
    let mut transaction = connection.transaction();
    for family in [Family::Ip, Family::Ip6] {
        // Nobody but us makes or deletes it.
        if connection.list_tables_in(family).await?.iter().any(|table| table.name == TABLE) {
            transaction = transaction.del_table(TABLE, family);
        }
        let of_family = |forward: &&Forward| forward.listener.is_ipv4() == (family == Family::Ip);
        let forwards: Vec<&Forward> = plan.forwards.iter().filter(of_family).collect();
        if !forwards.is_empty() {
            transaction = table(transaction, family, &forwards)?;
        }
    }
    let places: usize = plan.forwards.iter().map(|forward| forward.places.len()).sum();
    let room = ROOM + places * ROOM_OF_A_PLACE;
    rustix::net::sockopt::set_socket_send_buffer_size_force(connection.socket(), room)
        .map_err(std::io::Error::from)?;
    transaction.commit(&connection).await
}

fn table(mut transaction: Transaction, family: Family, forwards: &[&Forward]) -> nlink::Result<Transaction> {
    transaction = transaction.add_table(TABLE, family);
    for (name, hook, priority) in [
        ("prerouting", NatHook::Prerouting, Priority::DstNat.to_i32() + BEFORE),
        ("output", NatHook::Output, Priority::DstNat.to_i32() + BEFORE),
        ("postrouting", NatHook::Postrouting, Priority::SrcNat.to_i32() + BEFORE),
    ] {
        let base = BaseChain::nat(hook, Priority::Custom(priority));
        transaction = transaction.add_chain(Chain::new(TABLE, name)?.family(family).base(base));
    }
    for (number, forward) in forwards.iter().enumerate().filter(|(_, forward)| !forward.places.is_empty()) {
        let maps = Maps::new(family, number, forward);
        transaction = maps.add(transaction, forward);
        for chain in ["prerouting", "output"] {
            transaction = transaction.add_rule(to_backend(family, chain, forward, &maps));
        }
        if let Some(rule) = from_us(family, forward) {
            transaction = transaction.add_rule(rule);
        }
    }
    Ok(transaction)
}

/// From a place to an address, and from a place to a port.
struct Maps {
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
            addresses: map(format!("addresses{number}"), kind),
            ports: map(format!("ports{number}"), SetKeyType::InetService),
        }
    }

    fn add(&self, transaction: Transaction, forward: &Forward) -> Transaction {
        let mut transaction = transaction.add_set(self.addresses.clone()).add_set(self.ports.clone());
        let place =
            |number: usize| SetElement::new(u32::try_from(number).unwrap_or(0).to_ne_bytes().to_vec());
        let all: Vec<(usize, &SocketAddr)> = forward.places.iter().enumerate().collect();
        for some in all.chunks(ELEMENTS_AT_ONCE) {
            let to = |value: fn(&SocketAddr) -> Vec<u8>| -> Vec<SetElement> {
                some.iter()
                    .map(|(number, backend)| place(*number).value(SetElement::new(value(backend))))
                    .collect()
            };
            transaction = transaction
                .add_set_elements(&self.addresses, &to(|backend| bytes(backend.ip())))
                .add_set_elements(&self.ports, &to(|backend| backend.port().to_be_bytes().to_vec()));
        }
        transaction
    }
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
fn to_backend(family: Family, chain: &str, forward: &Forward, maps: &Maps) -> Rule {
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
    let mut nat = NatExpr::dnat(family).port(forward.listener.port());
    nat.addr = NatAddr::Reg;
    all.push(Expr::Nat(nat));
    Rule::new(TABLE, chain).family(family).expressions(all)
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
