//! The decisions that could lose something.

use super::*;
use serde_json::json;

fn key(name: &str) -> ObjectKey {
    ObjectKey { kind: Kind::new("v1", "ConfigMap"), namespace: "shop".to_owned(), name: name.to_owned() }
}

fn live(ours: bool, adopted: bool) -> Live {
    let meta = json!({"uid": "u", "resourceVersion": "5",
        "labels": {"atoll.dev/propagated-by": if ours { "h" } else { "other" }},
        "annotations": {"atoll.dev/adopted": adopted.to_string()}});
    Live::read(&json!({ "metadata": meta }), "h")
}

fn ready() -> Core {
    let mut core = Core::new("paris");
    core.step(Event::Permitted(true), Instant::now());
    core
}

fn sent(commands: &[Command]) -> Vec<&'static str> {
    let requests = commands.iter().filter_map(|command| match command {
        Command::Send(_, request) => Some(request.access().as_str()),
        Command::Discover(_) | Command::Report(_) => None,
    });
    requests.collect()
}

fn hold() -> Order {
    Order::Hold { object: Arc::new(json!({"data": {}})), conflict: ConflictResolution::Abort }
}

#[test]
fn nothing_is_said_to_be_gone_before_all_copies_have_been_seen() {
    let (mut core, now) = (ready(), Instant::now());
    let kind = key("a").kind;
    assert_eq!(core.step(Event::Ordered(key("a"), Order::Drop), now), [Command::Discover(kind.clone())]);
    assert_eq!(core.step(Event::Kind(kind.clone(), Ok(true)), now), []);
    assert_eq!(core.step(Event::Seen(key("a"), Box::new(live(true, false))), now), []);
    let listed = core.step(Event::Listed(kind, BTreeSet::from([key("a")])), now);
    assert_eq!(sent(&listed), ["delete"]);
    let done = core.step(Event::Answered(key("a"), Ok(Answer::Absent)), now);
    assert_eq!(done, [Command::Report(CopyReport { key: key("a"), state: CopyState::Gone })]);
}

#[test]
fn a_kind_that_could_not_be_asked_for_says_nothing_of_its_copies() {
    let (mut core, now) = (ready(), Instant::now());
    core.step(Event::Ordered(key("a"), Order::Drop), now);
    let said = core.step(Event::Kind(key("a").kind, Err(Failure::Unreachable("no".to_owned()))), now);
    assert!(
        matches!(&said[..], [Command::Report(CopyReport { state: CopyState::NotApplied(_), .. })]),
        "{said:?}"
    );
    let said = core.step(Event::Kind(key("a").kind, Ok(false)), now);
    assert!(matches!(&said[..], [Command::Report(CopyReport { state: CopyState::Gone, .. })]), "{said:?}");
}

#[test]
fn what_was_there_before_us_is_released_and_not_deleted() {
    let (mut core, now) = (ready(), Instant::now());
    core.step(Event::Ordered(key("a"), Order::Drop), now);
    core.step(Event::Kind(key("a").kind, Ok(true)), now);
    core.step(Event::Seen(key("a"), Box::new(live(true, true))), now);
    let listed = core.step(Event::Listed(key("a").kind, BTreeSet::from([key("a")])), now);
    assert!(matches!(&listed[..], [Command::Send(_, Request::Release { .. })]), "{listed:?}");
}

#[test]
fn a_conflict_makes_us_look_before_anything_else() {
    let (mut core, now) = (ready(), Instant::now());
    core.step(Event::Ordered(key("a"), Order::Drop), now);
    core.step(Event::Kind(key("a").kind, Ok(true)), now);
    core.step(Event::Seen(key("a"), Box::new(live(true, false))), now);
    core.step(Event::Listed(key("a").kind, BTreeSet::from([key("a")])), now);
    let again = core.step(Event::Answered(key("a"), Err(Failure::Conflict)), now);
    assert_eq!(sent(&again), ["get"]);
    let foreign = core.step(Event::Answered(key("a"), Ok(Answer::There(Box::new(live(false, false))))), now);
    assert_eq!(sent(&foreign), [] as [&str; 0], "it has another owner by now");
}

#[test]
fn a_member_in_trouble_is_asked_once_at_a_time_and_ever_less_often() {
    let (mut core, mut now) = (ready(), Instant::now());
    for name in ["a", "b", "c"] {
        core.step(Event::Ordered(key(name), hold()), now);
    }
    core.step(Event::Kind(key("a").kind, Ok(true)), now);
    let first = core.step(Event::Listed(key("a").kind, BTreeSet::new()), now);
    assert_eq!(sent(&first).len(), 3);
    for name in ["a", "b", "c"] {
        let later = core.step(Event::Answered(key(name), Err(Failure::Unreachable("no".to_owned()))), now);
        assert_eq!(sent(&later), [] as [&str; 0]);
    }
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let wake = core.next_wake().unwrap();
        let (mut commands, mut at) = (Vec::new(), wake);
        while sent(&commands).is_empty() {
            commands = core.step(Event::Tick, at);
            at = core.next_wake().unwrap_or(at + Duration::from_secs(1)).max(at + Duration::from_millis(1));
        }
        assert_eq!(sent(&commands).len(), 1, "one at a time");
        let Some(Command::Send(key, _)) = commands.into_iter().find(|c| matches!(c, Command::Send(..)))
        else {
            unreachable!()
        };
        pauses.push(at.duration_since(now));
        now = at;
        core.step(Event::Answered(key, Err(Failure::Unreachable("no".to_owned()))), now);
    }
    assert!(pauses.last() > Some(&Duration::from_secs(2)), "{pauses:?}");
}

#[test]
fn an_older_state_that_comes_late_is_no_drift() {
    let (mut core, now) = (ready(), Instant::now());
    core.step(Event::Ordered(key("a"), hold()), now);
    core.step(Event::Kind(key("a").kind, Ok(true)), now);
    core.step(Event::Listed(key("a").kind, BTreeSet::new()), now);
    let new = Live { revision: "9".to_owned(), fields: 9, ..live(true, false) };
    core.step(Event::Answered(key("a"), Ok(Answer::There(Box::new(new)))), now);
    let old = core.step(Event::Seen(key("a"), Box::new(live(true, false))), now);
    assert_eq!(sent(&old), [] as [&str; 0]);
    let drift = Live { revision: "10".to_owned(), fields: 3, ..live(true, false) };
    let repaired = core.step(Event::Seen(key("a"), Box::new(drift)), now);
    assert_eq!(sent(&repaired), ["patch"]);
}
