use super::*;

fn plan(name: &str) -> Plan {
    Plan {
        name: name.to_owned(),
        image: "jeremyot/serve".to_owned(),
        init: false,
        sidecar: false,
        startup: None,
        readiness: None,
        liveness: None,
    }
}

fn init(name: &str) -> Plan {
    Plan { init: true, ..plan(name) }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn pod(restart: Restart, plans: &[Plan]) -> Lifecycle {
    let plans = plans.iter().map(|plan| (plan.clone(), Before::default())).collect();
    Lifecycle::new(restart, Backoff::default(), SignedDuration::from_secs(30), plans, at(0))
}

/// A pod whose containers run since second 0.
fn running(restart: Restart, plans: &[Plan]) -> Lifecycle {
    let mut pod = pod(restart, plans);
    for command in pod.step(Event::Tick, at(0)) {
        let Command::Start(slot) = command else { panic!("{command:?}") };
        pod.step(Event::Started(slot), at(0));
    }
    assert_eq!(pod.phase(), Phase::Running);
    pod
}

const TWICE: Thresholds = Thresholds { success: 1, failure: 2 };

#[test]
fn init_containers_run_one_after_the_other() {
    let mut pod = pod(Restart::Always, &[init("a"), init("b"), plan("web")]);
    assert_eq!(pod.step(Event::Tick, at(0)), [Command::Start(0)]);
    assert_eq!(pod.step(Event::Tick, at(0)), [], "it is on its way");
    assert_eq!(pod.step(Event::Started(0), at(1)), []);
    assert_eq!(pod.phase(), Phase::Pending);
    assert_eq!(pod.step(Event::Ended { slot: 0, code: 0 }, at(2)), [Command::Start(1)]);
    pod.step(Event::Started(1), at(2));
    assert_eq!(pod.step(Event::Ended { slot: 1, code: 1 }, at(3)), [Command::Start(1)], "once more, at once");
    pod.step(Event::Started(1), at(3));
    assert_eq!(pod.step(Event::Ended { slot: 1, code: 0 }, at(4)), [Command::Start(2)]);
    pod.step(Event::Started(2), at(4));
    assert_eq!((pod.phase(), pod.initialized()), (Phase::Running, true));
    assert_eq!(pod.containers()[1].restarts, 1);
}

#[test]
fn an_init_container_that_fails_for_good_fails_the_pod() {
    let mut pod = pod(Restart::Never, &[init("a"), plan("web")]);
    pod.step(Event::Tick, at(0));
    pod.step(Event::Started(0), at(0));
    assert_eq!(pod.step(Event::Ended { slot: 0, code: 3 }, at(1)), []);
    assert!(pod.over());
    assert_eq!(pod.phase(), Phase::Failed);
}

#[test]
fn what_ended_starts_again_as_the_policy_says() {
    for (policy, code, starts, phase) in [
        (Restart::Always, 0, true, Phase::Running),
        (Restart::Always, 1, true, Phase::Running),
        (Restart::OnFailure, 1, true, Phase::Running),
        (Restart::OnFailure, 0, false, Phase::Succeeded),
        (Restart::Never, 0, false, Phase::Succeeded),
        (Restart::Never, 1, false, Phase::Failed),
    ] {
        let mut pod = running(policy, &[plan("web")]);
        let todo = pod.step(Event::Ended { slot: 0, code }, at(5));
        assert_eq!(todo == [Command::Start(0)], starts, "{policy:?} {code}");
        assert_eq!(pod.phase(), phase, "{policy:?} {code}");
    }
}

#[test]
fn who_ends_again_and_again_waits_longer_each_time() {
    let mut pod = running(Restart::Always, &[plan("web")]);
    let mut now = 0;
    for wait in [0, 10, 20, 40, 80, 160, 300, 300] {
        let todo = pod.step(Event::Ended { slot: 0, code: 1 }, at(now));
        if wait > 0 {
            assert_eq!(todo, [], "after {wait}");
            assert_eq!(pod.wake(), Some(at(now + wait)));
            assert!(
                matches!(&pod.containers()[0].state, State::Waiting { reason, .. } if *reason == CRASHING)
            );
            now += wait;
            assert_eq!(pod.step(Event::Tick, at(now)), [Command::Start(0)]);
        }
        pod.step(Event::Started(0), at(now));
    }
    assert_eq!(pod.containers()[0].restarts, 8);
    now += 600;
    assert_eq!(
        pod.step(Event::Ended { slot: 0, code: 1 }, at(now)),
        [Command::Start(0)],
        "it was well for long"
    );
}

#[test]
fn probes_decide_by_their_thresholds() {
    let web = Plan { startup: Some(TWICE), readiness: Some(TWICE), liveness: Some(TWICE), ..plan("web") };
    let mut pod = running(Restart::Always, &[web]);
    let probe = |pod: &mut Lifecycle, kind, passed| {
        pod.step(Event::Probed { slot: 0, kind, passed }, at(1));
        pod.containers()[0].ready
    };
    assert!(!probe(&mut pod, ProbeKind::Readiness, true), "not before it has started up");
    assert!(!probe(&mut pod, ProbeKind::Startup, true));
    assert!(probe(&mut pod, ProbeKind::Readiness, true));
    assert!(probe(&mut pod, ProbeKind::Readiness, false), "once is not enough");
    assert!(!probe(&mut pod, ProbeKind::Readiness, false));
    assert!(probe(&mut pod, ProbeKind::Readiness, true));
    let dead = Event::Probed { slot: 0, kind: ProbeKind::Liveness, passed: false };
    assert_eq!(pod.step(dead.clone(), at(2)), []);
    assert_eq!(pod.step(dead, at(2)), [Command::Stop(0)]);
    assert_eq!(pod.wake(), Some(at(32)));
    assert_eq!(pod.step(Event::Tick, at(32)), [Command::Kill(0)]);
    assert_eq!(pod.step(Event::Ended { slot: 0, code: KILLED }, at(32)), [Command::Start(0)]);
}

#[test]
fn a_deleted_pod_has_its_time_and_then_is_killed() {
    let mut pod = running(Restart::Always, &[plan("a"), plan("b")]);
    assert_eq!(pod.step(Event::Deleted { by: at(30) }, at(1)), [Command::Stop(0), Command::Stop(1)]);
    assert_eq!(pod.step(Event::Deleted { by: at(30) }, at(1)), [], "it knows");
    assert_eq!(pod.step(Event::Ended { slot: 0, code: 0 }, at(2)), []);
    assert_eq!(pod.wake(), Some(at(30)));
    pod.step(Event::Deleted { by: at(10) }, at(3));
    assert_eq!(pod.step(Event::Tick, at(10)), [Command::Kill(1)], "the time was made shorter");
    assert_eq!(pod.step(Event::Ended { slot: 1, code: KILLED }, at(10)), [Command::Finish]);
    assert_eq!(pod.step(Event::Tick, at(11)), [], "once");
    assert_eq!(pod.phase(), Phase::Failed);
}

#[test]
fn a_pod_deleted_while_it_starts_is_asked_to_end_as_soon_as_it_runs() {
    let mut pod = pod(Restart::Always, &[plan("web")]);
    assert_eq!(pod.step(Event::Tick, at(0)), [Command::Start(0)]);
    assert_eq!(pod.step(Event::Deleted { by: at(30) }, at(0)), []);
    assert_eq!(pod.step(Event::Started(0), at(0)), [Command::Stop(0)]);
    assert_eq!(pod.step(Event::Ended { slot: 0, code: 0 }, at(1)), [Command::Finish]);
}

#[test]
fn what_cannot_start_waits_for_its_time_or_for_a_change() {
    let mut pod = pod(Restart::Always, &[plan("web")]);
    let cannot =
        |again| Event::CannotStart { slot: 0, reason: "ErrImagePull", message: String::new(), again };
    pod.step(Event::Tick, at(0));
    assert_eq!(pod.step(cannot(None), at(0)), []);
    assert_eq!((pod.wake(), pod.phase()), (None, Phase::Pending));
    assert_eq!(pod.step(Event::Changed, at(1)), [Command::Start(0)]);
    pod.step(cannot(Some(SignedDuration::from_secs(5))), at(1));
    assert_eq!(pod.wake(), Some(at(6)));
    assert_eq!(pod.step(Event::Tick, at(6)), [Command::Start(0)]);
    pod.step(cannot(None), at(6));
    assert_eq!(pod.step(Event::Deleted { by: at(36) }, at(7)), [Command::Finish], "nothing has to end");
}

#[test]
fn after_a_restart_what_ran_runs_again_and_what_ended_stays() {
    let ran = Before { restarts: 2, running: Some(at(-50)), ..Before::default() };
    let ended = Ended { code: 0, reason: "Completed", since: None, at: at(-9) };
    let done = Before { ended: Some(ended), ..Before::default() };
    let begin = |restart, before: &Before| {
        let plans = vec![(plan("web"), before.clone())];
        let mut pod = Lifecycle::new(restart, Backoff::default(), SignedDuration::ZERO, plans, at(0));
        let todo = pod.step(Event::Tick, at(0));
        if !todo.is_empty() {
            pod.step(Event::Started(0), at(0));
        }
        (pod.phase(), pod.containers()[0].restarts)
    };
    assert_eq!(begin(Restart::Always, &ran), (Phase::Running, 3));
    assert_eq!(begin(Restart::Never, &ran), (Phase::Failed, 2));
    assert_eq!(begin(Restart::OnFailure, &done), (Phase::Succeeded, 0));
}

#[test]
fn a_sidecar_stays_as_long_as_the_others() {
    let helper = Plan { sidecar: true, ..init("helper") };
    let mut pod = pod(Restart::Never, &[helper, plan("job")]);
    assert_eq!(pod.step(Event::Tick, at(0)), [Command::Start(0)]);
    assert_eq!(pod.step(Event::Started(0), at(0)), [Command::Start(1)]);
    pod.step(Event::Started(1), at(0));
    assert_eq!(
        pod.step(Event::Ended { slot: 0, code: 1 }, at(1)),
        [Command::Start(0)],
        "whatever the policy"
    );
    pod.step(Event::Started(0), at(1));
    assert_eq!(pod.step(Event::Ended { slot: 1, code: 0 }, at(2)), [Command::Stop(0)]);
    assert!(!pod.over());
    assert_eq!(pod.step(Event::Ended { slot: 0, code: 0 }, at(3)), []);
    assert!(pod.over());
    assert_eq!(pod.phase(), Phase::Succeeded);
    assert_eq!(pod.wake(), None);
    assert_eq!(pod.step(Event::Deleted { by: at(40) }, at(10)), [Command::Finish], "also after its end");
}
