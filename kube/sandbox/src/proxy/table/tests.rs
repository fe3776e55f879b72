use super::*;

const NODE: &str = "member1-node";
const ZONE: &str = "member1";

fn web() -> ServiceName {
    ServiceName { namespace: "shop".to_owned(), name: "web".to_owned() }
}

fn port(name: &str, port: u16, protocol: Protocol) -> ServicePort {
    ServicePort { name: name.to_owned(), port, protocol }
}

fn service() -> ServiceFact {
    ServiceFact {
        cluster_ips: vec!["127.1.128.5".parse().unwrap()],
        ports: vec![port("http", 80, Protocol::Tcp), port("dns", 53, Protocol::Udp)],
        ..ServiceFact::default()
    }
}

fn endpoint(address: &str) -> EndpointFact {
    EndpointFact {
        address: address.parse().unwrap(),
        ready: true,
        serving: true,
        terminating: false,
        node: None,
        for_zones: Vec::new(),
        for_nodes: Vec::new(),
    }
}

fn slice(endpoints: Vec<EndpointFact>) -> SliceFact {
    SliceFact {
        service: web(),
        ports: vec![port("http", 8080, Protocol::Tcp), port("dns", 5353, Protocol::Udp)],
        endpoints,
    }
}

fn table(service: ServiceFact, endpoints: Vec<EndpointFact>) -> Table {
    let mut table = Table::new(NodeTopology { node: NODE.to_owned(), zone: ZONE.to_owned() });
    assert!(table.put_service(&web(), Some(service)));
    table.put_slice("shop", "web-1", Some(slice(endpoints)));
    table
}

fn behind(table: &Table, dialled: &str, protocol: Protocol) -> Vec<String> {
    match table.find(dialled.parse().unwrap(), protocol) {
        Found::Backend(backend) => backend.endpoints.iter().map(ToString::to_string).collect(),
        Found::NoService => vec!["no service".to_owned()],
        Found::Refused(_, why) => vec![format!("{why:?}")],
    }
}

#[test]
fn a_port_leads_to_the_port_of_its_name_and_protocol() {
    let table = table(service(), vec![endpoint("127.1.1.2"), endpoint("127.1.1.1")]);
    assert_eq!(behind(&table, "127.1.128.5:80", Protocol::Tcp), ["127.1.1.1:8080", "127.1.1.2:8080"]);
    assert_eq!(behind(&table, "127.1.128.5:53", Protocol::Udp), ["127.1.1.1:5353", "127.1.1.2:5353"]);
    assert_eq!(behind(&table, "127.1.128.5:53", Protocol::Tcp), ["NoSuchPort"]);
    assert_eq!(behind(&table, "127.1.128.6:80", Protocol::Tcp), ["no service"]);
}

#[test]
fn who_is_used_depends_on_conditions_policy_and_hints() {
    let not_ready = |address| EndpointFact { ready: false, serving: false, ..endpoint(address) };
    let ending = |address| EndpointFact { ready: false, terminating: true, ..endpoint(address) };
    let on = |node: &str, address| EndpointFact { node: Some(node.to_owned()), ..endpoint(address) };
    let hinted = |zone: &str, address| EndpointFact { for_zones: vec![zone.to_owned()], ..endpoint(address) };
    let local = ServiceFact { local_only: true, ..service() };
    for (what, service, endpoints, want) in [
        ("ready ones alone", service(), vec![endpoint("127.1.1.1"), ending("127.1.1.2")], vec!["127.1.1.1"]),
        (
            "ending ones if none is ready",
            service(),
            vec![ending("127.1.1.2"), not_ready("127.1.1.3")],
            vec!["127.1.1.2"],
        ),
        ("none", service(), vec![not_ready("127.1.1.3")], vec![]),
        ("local", local.clone(), vec![on(NODE, "127.1.1.1"), on("other", "127.2.1.1")], vec!["127.1.1.1"]),
        ("local, none here", local, vec![on("other", "127.2.1.1")], vec![]),
        (
            "our zone",
            service(),
            vec![hinted(ZONE, "127.1.1.1"), hinted("z2", "127.2.1.1")],
            vec!["127.1.1.1"],
        ),
        (
            "a hint missing",
            service(),
            vec![hinted(ZONE, "127.1.1.1"), endpoint("127.2.1.1")],
            vec!["127.1.1.1", "127.2.1.1"],
        ),
        ("no endpoint in our zone", service(), vec![hinted("z2", "127.2.1.1")], vec!["127.2.1.1"]),
    ] {
        let found = behind(&table(service, endpoints), "127.1.128.5:80", Protocol::Tcp);
        let want: Vec<_> = match want.as_slice() {
            [] => vec!["NoEndpoints".to_owned()],
            some => some.iter().map(|address| format!("{address}:8080")).collect(),
        };
        assert_eq!(found, want, "{what}");
    }
}

#[test]
fn slices_of_any_writer_add_up_and_go() {
    let mut table = table(service(), vec![endpoint("127.1.1.1")]);
    assert!(table.put_slice("shop", "imported", Some(slice(vec![endpoint("127.2.1.1")]))));
    assert_eq!(behind(&table, "127.1.128.5:80", Protocol::Tcp), ["127.1.1.1:8080", "127.2.1.1:8080"]);
    assert!(!table.put_slice("shop", "imported", Some(slice(vec![endpoint("127.2.1.1")]))), "nothing is new");
    assert!(table.put_slice("shop", "web-1", None));
    assert_eq!(behind(&table, "127.1.128.5:80", Protocol::Tcp), ["127.2.1.1:8080"]);
    let mut moved = slice(vec![endpoint("127.2.1.1")]);
    moved.service.name = "other".to_owned();
    assert!(table.put_slice("shop", "imported", Some(moved)));
    assert_eq!(behind(&table, "127.1.128.5:80", Protocol::Tcp), ["NoEndpoints"]);
    assert!(table.put_service(&web(), None));
    assert_eq!(behind(&table, "127.1.128.5:80", Protocol::Tcp), ["no service"]);
}
