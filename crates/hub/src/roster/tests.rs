use super::*;

fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}

fn cluster(uid: &str) -> Wanted {
    Wanted {
        uid: Some(uid.to_owned()),
        endpoint: Some("https://paris:6443".to_owned()),
        insecure: false,
        proxy: None,
        secret: Ok("paris".to_owned()),
        networks: Networks::default(),
        deleted: false,
        finalizer: true,
    }
}

fn seen(wanted: Wanted) -> Event {
    Event::Cluster(id("paris"), Box::new(wanted))
}

fn secret(token: &str) -> Event {
    Event::Secret("paris".to_owned(), Some(Credentials { token: token.to_owned(), ca: Vec::new() }))
}

/// The commands, by name: what they carry is the same everywhere here.
fn names(commands: &[Command]) -> Vec<&'static str> {
    let name = |command: &Command| match command {
        Command::Join(_) => "join",
        Command::Leave(_) => "leave",
        Command::Reset(_) => "reset",
        Command::Networks(..) => "networks",
        Command::Start(..) => "start",
        Command::Stop(_) => "stop",
        Command::AddFinalizer(_) => "finalizer",
        Command::Clean(..) => "clean",
        Command::Blocked(..) => "blocked",
        Command::Record(_) => "record",
    };
    commands.iter().map(name).collect()
}

fn running() -> Roster {
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    roster.step(secret("t"));
    let started = roster.step(seen(cluster("u1")));
    assert_eq!(names(&started), ["join", "networks", "reset", "start", "record"]);
    roster
}

#[test]
fn half_a_list_makes_nobody_leave() {
    let mut roster = Roster::remembering(BTreeMap::new(), [id("paris"), id("tokyo")]);
    assert_eq!(roster.step(secret("t")), []);
    assert_eq!(roster.step(seen(cluster("u1"))), []);
    let listed = roster.step(Event::Listed);
    assert_eq!(names(&listed), ["networks", "reset", "start", "leave", "record"]);
    assert!(listed.contains(&Command::Leave(id("tokyo"))), "{listed:?}");
}

#[test]
fn the_same_again_changes_nothing() {
    let mut roster = running();
    assert_eq!(roster.step(seen(cluster("u1"))), []);
    assert_eq!(roster.step(secret("t")), []);
}

#[test]
fn new_credentials_restart_the_member_and_nobody_leaves() {
    let mut roster = running();
    assert_eq!(names(&roster.step(secret("t2"))), ["stop"]);
    assert_eq!(roster.step(secret("t3")), [], "one stop is enough");
    let restarted = roster.step(Event::Stopped(id("paris")));
    assert_eq!(names(&restarted), ["reset", "start"]);
    assert!(matches!(&restarted[1], Command::Start(_, link) if link.credentials.token == "t3"));
}

#[test]
fn another_cluster_under_the_name_comes_after_the_old_one_has_left() {
    let mut roster = running();
    assert_eq!(names(&roster.step(seen(cluster("u2")))), ["leave", "stop", "record"]);
    let after = roster.step(Event::Stopped(id("paris")));
    assert_eq!(names(&after), ["join", "networks", "reset", "start", "record"]);
}

#[test]
fn another_cluster_under_the_name_is_noticed_after_a_restart_too() {
    let recorded = [(id("paris"), Some("u1".to_owned()))].into();
    let mut roster = Roster::remembering(recorded, [id("paris")]);
    roster.step(secret("t"));
    roster.step(seen(cluster("u2")));
    let listed = roster.step(Event::Listed);
    assert_eq!(names(&listed), ["leave", "join", "networks", "reset", "start", "record"]);
}

#[test]
fn a_deleted_cluster_leaves_then_is_cleaned_once() {
    let mut roster = running();
    let deleted = || seen(Wanted { deleted: true, ..cluster("u1") });
    assert_eq!(names(&roster.step(deleted())), ["leave", "stop", "record"]);
    assert_eq!(roster.step(deleted()), []);
    assert_eq!(names(&roster.step(Event::Stopped(id("paris")))), ["clean"]);
    assert_eq!(roster.step(deleted()), []);
    assert_eq!(roster.step(Event::Cleaned(id("paris"))), []);
    assert_eq!(roster.step(Event::ClusterGone(id("paris"))), []);
}

#[test]
fn a_cluster_deleted_while_no_hub_ran_is_cleaned_by_the_next() {
    let mut roster = Roster::default();
    roster.step(secret("t"));
    roster.step(seen(Wanted { deleted: true, ..cluster("u1") }));
    assert_eq!(names(&roster.step(Event::Listed)), ["clean"]);
}

#[test]
fn a_cluster_forced_out_just_leaves() {
    let mut roster = running();
    assert_eq!(names(&roster.step(Event::ClusterGone(id("paris")))), ["leave", "stop", "record"]);
    assert_eq!(roster.step(Event::Stopped(id("paris"))), []);
}

#[test]
fn a_cluster_forced_out_while_it_was_cleaned_can_join_again() {
    let mut roster = running();
    roster.step(seen(Wanted { deleted: true, ..cluster("u1") }));
    assert_eq!(names(&roster.step(Event::Stopped(id("paris")))), ["clean"]);
    assert_eq!(roster.step(Event::ClusterGone(id("paris"))), []);
    assert_eq!(roster.step(seen(cluster("u2"))), [], "the cleaning has to end first");
    let after = roster.step(Event::Cleaned(id("paris")));
    assert_eq!(names(&after), ["join", "networks", "reset", "start", "record"]);
}

#[test]
fn a_member_without_credentials_stays_a_member_and_says_why() {
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    let blocked = roster.step(seen(cluster("u1")));
    assert_eq!(names(&blocked), ["join", "networks", "blocked", "record"]);
    assert!(blocked.contains(&Command::Blocked(id("paris"), NoLink::NoSecret("paris".to_owned()))));
    assert_eq!(roster.step(seen(cluster("u1"))), []);
    assert_eq!(names(&roster.step(secret("t"))), ["reset", "start"]);
}

#[test]
fn lost_credentials_stop_the_member_but_take_nothing_away() {
    let mut roster = running();
    assert_eq!(names(&roster.step(Event::Secret("paris".to_owned(), None))), ["stop", "blocked"]);
}
