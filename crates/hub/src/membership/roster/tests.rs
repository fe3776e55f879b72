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
        cleaned: false,
        created: 0,
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
        Command::Ask(..) => "ask",
        Command::Unask(_) => "unask",
        Command::Start(..) => "start",
        Command::Stop(_) => "stop",
        Command::AddFinalizer(_) => "finalizer",
        Command::Clean(..) => "clean",
        Command::Release(_) => "release",
        Command::Blocked(..) => "blocked",
        Command::Record(_) => "record",
    };
    commands.iter().map(name).collect()
}

fn running() -> Roster {
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    roster.step(secret("t"));
    let asked = roster.step(seen(cluster("u1")));
    assert_eq!(names(&asked), ["join", "networks", "ask", "record"]);
    assert_eq!(names(&answer(&mut roster, &asked, "u1")), ["reset", "start"]);
    roster
}

/// The cluster behind the link answers.
fn answer(roster: &mut Roster, asked: &[Command], uid: &str) -> Vec<Command> {
    let asked = asked.iter().find_map(|command| match command {
        Command::Ask(id, link) => Some((id.clone(), link.clone())),
        _ => None,
    });
    let (id, link) = asked.expect("something was asked");
    roster.step(Event::Identified(id, Box::new(link), Some(uid.to_owned())))
}

#[test]
fn half_a_list_makes_nobody_leave() {
    let mut roster = Roster::remembering(BTreeMap::new(), [id("paris"), id("tokyo")]);
    assert_eq!(roster.step(secret("t")), []);
    assert_eq!(roster.step(seen(cluster("u1"))), []);
    let listed = roster.step(Event::Listed);
    assert_eq!(names(&listed), ["networks", "ask", "leave", "record"]);
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
    let stopped = roster.step(Event::Stopped(id("paris")));
    assert_eq!(names(&stopped), ["ask"]);
    let restarted = answer(&mut roster, &stopped, "u1");
    assert_eq!(names(&restarted), ["reset", "start"]);
    assert!(matches!(&restarted[1], Command::Start(_, link) if link.credentials.token == "t3"));
}

#[test]
fn another_cluster_under_the_name_comes_after_the_old_one_has_left() {
    let mut roster = running();
    assert_eq!(names(&roster.step(seen(cluster("u2")))), ["leave", "stop", "record"]);
    let after = roster.step(Event::Stopped(id("paris")));
    assert_eq!(names(&after), ["join", "networks", "ask", "record"]);
}

#[test]
fn another_cluster_under_the_name_is_noticed_after_a_restart_too() {
    let recorded = [(id("paris"), Some("u1".to_owned()))].into();
    let mut roster = Roster::remembering(recorded, [id("paris")]);
    roster.step(secret("t"));
    roster.step(seen(cluster("u2")));
    let listed = roster.step(Event::Listed);
    assert_eq!(names(&listed), ["leave", "join", "networks", "ask", "record"]);
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
    let asked = roster.step(Event::Listed);
    assert_eq!(names(&asked), ["ask"]);
    assert_eq!(names(&answer(&mut roster, &asked, "u1")), ["clean"]);
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
    assert_eq!(names(&after), ["join", "networks", "ask", "record"]);
}

#[test]
fn a_member_without_credentials_stays_a_member_and_says_why() {
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    let blocked = roster.step(seen(cluster("u1")));
    assert_eq!(names(&blocked), ["join", "networks", "blocked", "record"]);
    assert!(blocked.contains(&Command::Blocked(id("paris"), NoLink::NoSecret("paris".to_owned()))));
    assert_eq!(roster.step(seen(cluster("u1"))), []);
    assert_eq!(names(&roster.step(secret("t"))), ["ask"]);
}

#[test]
fn lost_credentials_stop_the_member_but_take_nothing_away() {
    let mut roster = running();
    assert_eq!(names(&roster.step(Event::Secret("paris".to_owned(), None))), ["stop", "blocked"]);
}

#[test]
fn a_second_cluster_object_for_one_cluster_is_refused_and_its_deletion_cleans_nothing() {
    let mut roster = running();
    // It says nothing of a uid: the cluster itself has to.
    let twin = || Wanted { uid: None, created: 5, ..cluster("") };
    let asked = roster.step(Event::Cluster(id("lyon"), Box::new(twin())));
    assert_eq!(names(&asked), ["join", "networks", "ask", "record"]);
    let refused = answer(&mut roster, &asked, "u1");
    assert_eq!(names(&refused), ["leave", "blocked", "record"]);
    assert!(refused.contains(&Command::Blocked(id("lyon"), NoLink::Twin(id("paris")))), "{refused:?}");
    assert_eq!(roster.step(Event::Cluster(id("lyon"), Box::new(twin()))), [], "said once");
    let deleted = roster.step(Event::Cluster(id("lyon"), Box::new(Wanted { deleted: true, ..twin() })));
    assert_eq!(deleted, [Command::Release(id("lyon"))]);
    assert_eq!(roster.step(Event::Cleaned(id("lyon"))), []);
    assert_eq!(roster.step(seen(cluster("u1"))), [], "the member runs on");
}

#[test]
fn of_two_objects_for_one_cluster_the_older_counts_however_they_come() {
    let younger = || Wanted { created: 5, ..cluster("u1") };
    for first in ["lyon", "paris"] {
        let mut roster = Roster::default();
        roster.step(Event::Listed);
        roster.step(secret("t"));
        let mut all = Vec::new();
        let both = [("lyon", younger()), ("paris", cluster("u1"))];
        let (now, later): (Vec<_>, Vec<_>) = both.into_iter().partition(|(name, _)| *name == first);
        for (name, wanted) in now.into_iter().chain(later) {
            all.extend(roster.step(Event::Cluster(id(name), Box::new(wanted))));
        }
        assert!(all.contains(&Command::Blocked(id("lyon"), NoLink::Twin(id("paris")))), "{first}: {all:?}");
        assert_eq!(names(&answer_last(&mut roster, &all)), ["reset", "start"], "{first}");
    }
}

fn answer_last(roster: &mut Roster, asked: &[Command]) -> Vec<Command> {
    let last = asked.iter().rposition(|command| matches!(command, Command::Ask(..))).unwrap();
    answer(roster, &asked[last..], "u1")
}

#[test]
fn a_refused_twin_takes_over_when_the_member_has_gone_and_not_before() {
    let mut roster = running();
    roster.step(Event::Cluster(id("lyon"), Box::new(Wanted { created: 5, ..cluster("u1") })));
    roster.step(seen(Wanted { deleted: true, ..cluster("u1") }));
    assert_eq!(names(&roster.step(Event::Stopped(id("paris")))), ["clean"]);
    assert_eq!(names(&roster.step(Event::Cleaned(id("paris")))), ["join", "networks", "ask", "record"]);
}

#[test]
fn a_twin_deleted_while_no_hub_ran_is_told_from_the_member_before_anything_is_cleaned() {
    let mut roster = Roster::default();
    roster.step(secret("t"));
    roster.step(seen(cluster("u1")));
    let twin = Wanted { uid: None, created: 5, deleted: true, ..cluster("") };
    roster.step(Event::Cluster(id("lyon"), Box::new(twin)));
    let asked = roster.step(Event::Listed);
    assert_eq!(names(&asked), ["ask", "join", "networks", "ask", "record"]);
    assert_eq!(names(&answer(&mut roster, &asked, "u1")), ["release"]);
}

#[test]
fn credentials_mended_while_a_member_is_cleaned_are_used() {
    let mut roster = running();
    roster.step(seen(Wanted { deleted: true, ..cluster("u1") }));
    roster.step(Event::Stopped(id("paris")));
    let again = roster.step(secret("t2"));
    assert!(matches!(&again[..], [Command::Clean(_, link)] if link.credentials.token == "t2"), "{again:?}");
    assert_eq!(roster.step(Event::Secret("paris".to_owned(), None)), [], "none are no better");
}

#[test]
fn what_is_clean_already_is_let_go_without_credentials() {
    let mut roster = Roster::default();
    roster.step(seen(Wanted { deleted: true, cleaned: true, ..cluster("u1") }));
    assert_eq!(names(&roster.step(Event::Listed)), ["release"]);
}

#[test]
fn a_cluster_deleted_before_it_answered_is_asked_anew_as_one_that_leaves() {
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    roster.step(secret("t"));
    roster.step(seen(cluster("u1")));
    let deleted = roster.step(seen(Wanted { deleted: true, ..cluster("u1") }));
    assert_eq!(names(&deleted), ["leave", "ask", "record"]);
    assert!(roster.is_leaving(&id("paris")));
    assert_eq!(names(&answer(&mut roster, &deleted, "u1")), ["clean"]);
}
