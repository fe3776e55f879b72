use super::*;
use crate::membership::credentials::tests::{credentials, wanted};

fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}

fn cluster(uid: &str) -> Wanted {
    Wanted { uid: Some(uid.to_owned()), ..wanted() }
}

fn seen(wanted: Wanted) -> Event {
    Event::Cluster(id("paris"), Box::new(wanted))
}

fn secret(token: &str) -> Event {
    made_for("paris", token, None)
}

/// The Secret of a member, with its own name; `pin`: the uid in it.
fn made_for(name: &str, token: &str, pin: Option<&str>) -> Event {
    let made = credentials(name, &format!("https://{name}:6443"), pin);
    Event::Secret(name.to_owned(), Some(Box::new(Credentials { token: token.to_owned(), ..made })))
}

/// A `Cluster` as `join` makes it.
fn joined_as(name: &str, uid: Option<&str>, created: i64) -> Event {
    let wanted = Wanted {
        uid: uid.map(str::to_owned),
        endpoint: Some(format!("https://{name}:6443")),
        secret: Ok(name.to_owned()),
        created,
        ..cluster("")
    };
    Event::Cluster(id(name), Box::new(wanted))
}

/// The commands, by name: what they carry is the same everywhere here.
fn names(commands: &[Command]) -> Vec<&'static str> {
    let name = |command: &Command| match command {
        Command::Join(_) => "join",
        Command::Leave(_) => "leave",
        Command::Reset(_) => "reset",
        Command::Networks(..) => "networks",
        Command::ShowNetworks(..) => "show networks",
        Command::BindNetworks(_) => "bind networks",
        Command::Ask(..) => "ask",
        Command::Unask(_) => "unask",
        Command::Start(..) => "start",
        Command::Token(..) => "token",
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

/// The cluster behind the link answers, and was never a member.
fn answer(roster: &mut Roster, asked: &[Command], uid: &str) -> Vec<Command> {
    answer_as(roster, asked, uid, None)
}

/// It answers with the name that the hub once gave it.
fn answer_as(roster: &mut Roster, asked: &[Command], uid: &str, called: Option<&str>) -> Vec<Command> {
    let asked = asked.iter().find_map(|command| match command {
        Command::Ask(id, link, _) => Some((id.clone(), link.clone())),
        _ => None,
    });
    let (id, link) = asked.expect("something was asked");
    let answered = Answered { uid: Some(uid.to_owned()), called: called.map(self::id) };
    roster.step(Event::Identified(id, Box::new(link), answered))
}

#[test]
fn half_a_list_makes_no_member_leave() {
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
fn a_new_token_is_shown_to_a_running_member_and_nothing_stops() {
    let mut roster = running();
    for token in ["t2", "t3"] {
        let renewed = roster.step(secret(token));
        assert!(matches!(&renewed[..], [Command::Token(_, link)] if link.token == token), "{renewed:?}");
    }
    assert_eq!(roster.step(secret("t3")), []);
    // It was asked behind the same way in: it need not be asked again.
    assert_eq!(roster.step(seen(cluster("u1"))), []);
}

#[test]
fn another_way_in_restarts_the_member_and_no_member_leaves() {
    let mut roster = running();
    let moved = credentials("paris", "https://paris:7443", None);
    roster.step(Event::Secret("paris".to_owned(), Some(Box::new(moved))));
    let there = Wanted { endpoint: Some("https://paris:7443".to_owned()), ..cluster("u1") };
    assert_eq!(roster.step(seen(there)), [], "one stop is enough");
    let stopped = roster.step(Event::Stopped(id("paris")));
    assert_eq!(names(&stopped), ["ask"]);
    assert_eq!(names(&answer(&mut roster, &stopped, "u1")), ["reset", "start"]);
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

/// A second `Cluster` for the cluster of paris, made by hand, with credentials of its own.
fn twin(deleted: bool) -> Event {
    let Event::Cluster(id, mut wanted) = joined_as("lyon", None, 5) else { unreachable!() };
    wanted.deleted = deleted;
    Event::Cluster(id, wanted)
}

#[test]
fn a_second_cluster_object_for_one_cluster_is_refused_and_its_deletion_cleans_nothing() {
    let mut roster = running();
    roster.step(made_for("lyon", "t", None));
    // It says nothing of a uid: the cluster itself has to.
    let asked = roster.step(twin(false));
    assert_eq!(names(&asked), ["join", "networks", "ask", "record"]);
    let refused = answer_as(&mut roster, &asked, "u1", Some("paris"));
    assert_eq!(names(&refused), ["leave", "blocked", "ask", "record"]);
    assert!(refused.contains(&Command::Blocked(id("lyon"), NoLink::Twin(id("paris")))), "{refused:?}");
    assert_eq!(roster.step(twin(false)), [], "said once");
    assert_eq!(roster.step(twin(true)), [Command::Unask(id("lyon")), Command::Release(id("lyon"))]);
    assert_eq!(roster.step(Event::Cleaned(id("lyon"))), []);
    assert_eq!(roster.step(seen(cluster("u1"))), [], "the member runs on");
}

#[test]
fn of_two_objects_for_a_cluster_that_was_never_a_member_the_older_counts_however_they_come() {
    for first in ["lyon", "paris"] {
        let mut roster = Roster::default();
        roster.step(Event::Listed);
        let mut asked = BTreeMap::new();
        let names = if first == "lyon" { ["lyon", "paris"] } else { ["paris", "lyon"] };
        for name in names {
            roster.step(made_for(name, "t", Some("u1")));
            let created = if name == "lyon" { 5 } else { 0 };
            asked.insert(name, roster.step(joined_as(name, Some("u1"), created)));
        }
        for name in names {
            let answered = answer(&mut roster, &asked[name], "u1");
            let refused = answered.contains(&Command::Blocked(id(name), NoLink::Twin(id("paris"))));
            assert_eq!(refused, name == "lyon", "{first}: {answered:?}");
        }
    }
}

#[test]
fn a_refused_twin_takes_over_when_the_member_has_gone_and_not_before() {
    let mut roster = running();
    roster.step(made_for("lyon", "t", None));
    let asked = roster.step(twin(false));
    let refused = answer_as(&mut roster, &asked, "u1", Some("paris"));
    assert_eq!(names(&answer_as(&mut roster, &refused, "u1", Some("paris"))), ["ask"], "asked for ever");
    roster.step(seen(Wanted { deleted: true, ..cluster("u1") }));
    assert_eq!(names(&roster.step(Event::Stopped(id("paris")))), ["clean"]);
    roster.step(Event::Cleaned(id("paris")));
    // The next answer no longer has the name: the cluster was cleaned.
    let later = Command::Ask(id("lyon"), link_of(&refused), When::Later);
    let started = answer_as(&mut roster, &[later], "u1", None);
    assert_eq!(names(&started), ["join", "networks", "reset", "start", "record"]);
}

fn link_of(asked: &[Command]) -> Link {
    let link = asked.iter().find_map(|command| match command {
        Command::Ask(_, link, _) => Some(link.clone()),
        _ => None,
    });
    link.expect("something was asked")
}

#[test]
fn a_twin_deleted_while_no_hub_ran_is_told_from_the_member_before_anything_is_cleaned() {
    let mut roster = Roster::default();
    roster.step(secret("t"));
    roster.step(made_for("lyon", "t", None));
    roster.step(seen(cluster("u1")));
    roster.step(twin(true));
    let asked = roster.step(Event::Listed);
    assert_eq!(names(&asked), ["ask", "join", "networks", "ask", "record"]);
    assert_eq!(names(&answer_as(&mut roster, &asked, "u1", Some("paris"))), ["release"]);
}

#[test]
fn credentials_mended_while_a_member_is_cleaned_are_used() {
    let mut roster = running();
    roster.step(seen(Wanted { deleted: true, ..cluster("u1") }));
    roster.step(Event::Stopped(id("paris")));
    let again = roster.step(secret("t2"));
    assert!(matches!(&again[..], [Command::Clean(_, link)] if link.token == "t2"), "{again:?}");
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

/// An honest member and a liar that has, or answers, its uid.
fn both(liar_pin: &str, honest_is_older: bool) -> [Event; 4] {
    let (honest, liar) = if honest_is_older { (0, 5) } else { (5, 0) };
    [
        made_for("paris", "t", Some("u1")),
        made_for("liar", "t", Some(liar_pin)),
        joined_as("paris", Some("u1"), honest),
        joined_as("liar", Some(liar_pin), liar),
    ]
}

#[test]
fn a_member_that_answers_an_honest_members_uid_blocks_itself_in_whatever_order_and_after_restarts() {
    // Its pin is its own, or it lied at its join already; it claims a name, or none.
    for (pin, called) in
        [("u6", None), ("u6", Some("paris")), ("u6", Some("liar")), ("u1", None), ("u1", Some("paris"))]
    {
        for (older, liar_first, restarted) in [
            (true, true, false),
            (true, false, false),
            (false, true, false),
            (false, false, false),
            (false, true, true),
        ] {
            let story = format!("{pin} {called:?} {older} {liar_first} {restarted}");
            let recorded = [(id("paris"), Some("u1".to_owned())), (id("liar"), Some(pin.to_owned()))];
            let mut roster = match restarted {
                true => Roster::remembering(recorded.into(), []),
                false => Roster::default(),
            };
            let mut events = both(pin, older);
            if liar_first {
                events.reverse();
            }
            for event in events {
                assert_eq!(roster.step(event), []);
            }
            let asked = roster.step(Event::Listed);
            let question = |name: &str| {
                let of = |command: &&Command| matches!(command, Command::Ask(of, ..) if *of == id(name));
                asked.iter().filter(of).map(clone).collect::<Vec<_>>()
            };
            let mut all = Vec::new();
            let honest = |roster: &mut Roster| answer_as(roster, &question("paris"), "u1", Some("paris"));
            if !liar_first {
                all.extend(honest(&mut roster));
            }
            all.extend(answer_as(&mut roster, &question("liar"), "u1", called));
            if liar_first {
                all.extend(honest(&mut roster));
            }
            assert!(
                all.iter().any(|c| matches!(c, Command::Start(of, _) if *of == id("paris"))),
                "{story}: {all:?}"
            );
            for command in &all {
                let hurt = match command {
                    Command::Leave(of) | Command::Stop(of) | Command::Blocked(of, _) => *of == id("paris"),
                    _ => false,
                };
                assert!(!hurt, "{story}: {command:?}");
            }
            let started = all.iter().any(|c| matches!(c, Command::Start(of, _) if *of == id("liar")));
            // One that lied at its join already may run as itself: that hurts no other member.
            assert!(!started || (pin == "u1" && called.is_none()), "{story}: {all:?}");
        }
    }
}

fn clone(command: &Command) -> Command {
    match command {
        Command::Ask(id, link, when) => Command::Ask(id.clone(), link.clone(), *when),
        other => unreachable!("{other:?}"),
    }
}

#[test]
fn a_member_that_answers_rightly_again_comes_back_by_itself() {
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    roster.step(made_for("paris", "t", Some("u1")));
    let asked = roster.step(joined_as("paris", Some("u1"), 0));
    let refused = answer(&mut roster, &asked, "u9");
    assert_eq!(names(&refused), ["blocked", "ask"], "it stays a member");
    assert!(matches!(&refused[1], Command::Ask(_, _, When::Later)), "{refused:?}");
    let again = answer(&mut roster, &refused, "u9");
    assert_eq!(names(&again), ["ask"], "said once, asked for ever");
    assert_eq!(names(&answer(&mut roster, &again, "u1")), ["reset", "start"]);
}

#[test]
fn a_cluster_that_says_nothing_of_its_uid_is_the_one_that_answered_first_after_a_restart_too() {
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    roster.step(made_for("paris", "t", None));
    let asked = roster.step(joined_as("paris", None, 0));
    let started = answer(&mut roster, &asked, "u1");
    let recorded = BTreeMap::from([(id("paris"), Some("u1".to_owned()))]);
    assert!(started.contains(&Command::Record(recorded.clone())), "{started:?}");
    let mut roster = Roster::remembering(recorded, []);
    roster.step(made_for("paris", "t", None));
    roster.step(joined_as("paris", None, 0));
    let asked = roster.step(Event::Listed);
    assert_eq!(names(&answer(&mut roster, &asked, "u2")), ["blocked", "ask"]);
}

#[test]
fn a_forged_cluster_object_is_no_member_asks_no_cluster_and_goes_without_a_trace() {
    let mut roster = running();
    // Whoever may write clusters points one at the Secret of paris, and calls it the hub's own cluster.
    let forged = |deleted| {
        let wanted = Wanted { created: 5, deleted, uid: Some("hub".to_owned()), ..cluster("") };
        Event::Cluster(id("evil"), Box::new(wanted))
    };
    let refused = roster.step(forged(false));
    assert!(
        matches!(&refused[..], [Command::Blocked(of, NoLink::NotItsOwn { .. })] if *of == id("evil")),
        "{refused:?}"
    );
    assert!(!roster.has("hub") && roster.has("u1"));
    assert_eq!(names(&roster.step(forged(true))), ["release"]);
    assert_eq!(roster.step(seen(cluster("u1"))), [], "the member runs on");
}

#[test]
fn a_member_whose_endpoint_a_user_changes_is_stopped_stays_a_member_and_comes_back() {
    let mut roster = running();
    let moved = || seen(Wanted { endpoint: Some("https://evil:6443".to_owned()), ..cluster("u1") });
    assert_eq!(names(&roster.step(moved())), ["stop", "blocked"]);
    assert_eq!(roster.step(Event::Stopped(id("paris"))), []);
    let back = roster.step(seen(cluster("u1")));
    assert_eq!(names(&back), ["reset", "start"], "behind that way in it was asked");
}

#[test]
fn an_identity_edited_in_the_cluster_object_takes_nothing_from_the_member() {
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    roster.step(made_for("paris", "t", Some("u1")));
    let asked = roster.step(joined_as("paris", Some("u1"), 0));
    answer(&mut roster, &asked, "u1");
    let edited = roster.step(joined_as("paris", Some("u9"), 0));
    assert_eq!(names(&edited), ["stop", "blocked"], "no member leaves");
}

#[test]
fn a_cluster_made_anew_with_a_former_members_name_inherits_nothing_of_it() {
    // The hub was away while paris was forced out and another cluster took the name.
    let recorded = [(id("paris"), Some("u1".to_owned()))].into();
    let mut roster = Roster::remembering(recorded, [id("paris")]);
    roster.step(made_for("paris", "t", Some("u6")));
    roster.step(joined_as("paris", None, 9));
    let listed = roster.step(Event::Listed);
    assert_eq!(names(&listed), ["leave", "join", "networks", "ask", "record"]);
}

#[test]
fn what_a_cluster_says_of_networks_counts_only_until_its_secret_does() {
    let ranges = |text: &str| {
        let pods = vec![text.parse().unwrap()];
        let declared = atoll_engine::network::Ranges { pods, ..Default::default() };
        Networks { declared, ..Networks::default() }
    };
    let of_secret = |text: &str| {
        let made = credentials("paris", "https://paris:6443", None);
        let networks = Some(Ok(ranges(text)));
        Event::Secret("paris".to_owned(), Some(Box::new(Credentials { networks, ..made })))
    };
    let of_cluster = |text: &str| seen(Wanted { networks: ranges(text), ..cluster("u1") });
    let declared = |commands: &[Command]| -> Vec<String> {
        let networks = commands.iter().filter_map(|command| match command {
            Command::Networks(_, networks) => Some(networks.declared.pods[0].to_string()),
            _ => None,
        });
        networks.collect()
    };
    // A Secret of an earlier join says nothing: what the Cluster says is copied there.
    let mut roster = Roster::default();
    roster.step(Event::Listed);
    let unmarked = credentials("paris", "https://paris:6443", None);
    let unmarked = Credentials { networks: None, ..unmarked };
    roster.step(Event::Secret("paris".to_owned(), Some(Box::new(unmarked))));
    let first = roster.step(of_cluster("10.1.0.0/16"));
    assert!(first.contains(&Command::BindNetworks(id("paris"))), "{first:?}");
    assert_eq!(declared(&first), ["10.1.0.0/16"]);
    assert_eq!(roster.step(of_secret("10.1.0.0/16")), [], "it is the same");
    // From here on only the Secret counts.
    let lie = roster.step(of_cluster("10.9.0.0/16"));
    assert!(matches!(&lie[..], [Command::ShowNetworks(..)]), "{lie:?}");
    assert_eq!(declared(&roster.step(of_secret("10.2.0.0/16"))), ["10.2.0.0/16"]);
    // Neither does a lie count while the Secret is away, or is another's.
    assert_eq!(declared(&roster.step(Event::Secret("paris".to_owned(), None))), Vec::<String>::new());
    assert_eq!(declared(&roster.step(of_cluster("10.8.0.0/16"))), Vec::<String>::new());
    let another = credentials("tokyo", "https://paris:6443", None);
    let another = Credentials { networks: Some(Ok(ranges("10.7.0.0/16"))), ..another };
    roster.step(Event::Secret("paris".to_owned(), Some(Box::new(another))));
    assert_eq!(declared(&roster.step(of_cluster("10.6.0.0/16"))), Vec::<String>::new());
}
