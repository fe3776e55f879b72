//! List, follow, break, list again.

use std::pin::Pin;
use std::time::{Duration, Instant};

use atoll_watch::{Change, Config, Event, Failure, Known, watch};
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use crate::gate::{Gate, Verb};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

struct Watched {
    events: Pin<Box<dyn Stream<Item = Event<ConfigMap>> + Send>>,
    known: Known<String>,
}

impl Watched {
    fn begin(gate: &Gate) -> Self {
        let config = Config::default().page(2);
        Self { events: Box::pin(watch(gate.maps(), config)), known: Known::default() }
    }

    async fn next(&mut self) -> Event<ConfigMap> {
        tokio::time::timeout(PATIENCE, self.events.next()).await.expect("an event").unwrap()
    }

    /// The next events; `ConfigMaps` of the cluster's own are left out.
    async fn says(&mut self, count: usize) -> Vec<String> {
        let mut said = Vec::new();
        while said.len() < count {
            let event = self.next().await;
            said.extend(match event {
                Event::ListStarted => Some("list".to_owned()),
                Event::Seen(map) => ours(&map).map(|name| format!("+{name}")),
                Event::Gone(map) => ours(&map).map(|name| format!("-{name}")),
                Event::Listed => Some("listed".to_owned()),
                Event::Following => Some("following".to_owned()),
                Event::Failed(failure) => Some(failed(&failure)),
            });
        }
        said
    }

    /// The next changes, up to the one that is `last`.
    async fn tells(&mut self, last: &str) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        while told.last().is_none_or(|told| told != last) {
            let event = self.next().await;
            told.extend(self.known.take(event, ours).map(|change| match change {
                Change::Seen(name, _) => format!("+{name}"),
                Change::Gone(name) => format!("-{name}"),
                Change::Listed => "listed".to_owned(),
                Change::Failed(failure) => failed(&failure),
            }));
        }
        told
    }
}

fn ours(map: &ConfigMap) -> Option<String> {
    Some(map.name_any()).filter(|name| name.len() == 1)
}

fn failed(failure: &Failure) -> String {
    failure.status().map_or_else(|| "failed".to_owned(), |status| format!("failed {}", status.code))
}

#[tokio::test]
async fn a_kind_is_listed_page_by_page_and_then_followed() {
    let gate = Gate::start().await;
    for name in ["a", "b", "c"] {
        gate.put(name).await;
    }
    let mut watched = Watched::begin(&gate);
    assert_eq!(watched.says(6).await, ["list", "+a", "+b", "+c", "listed", "following"]);
    let asked = gate.asked();
    assert_eq!(asked.first(), Some(&Verb::List));
    assert_eq!(asked.last(), Some(&Verb::Watch));
    assert!(asked[1..asked.len() - 1].iter().all(|verb| *verb == Verb::Page) && asked.len() > 2, "{asked:?}");
    gate.put("d").await;
    gate.delete("a").await;
    assert_eq!(watched.says(2).await, ["+d", "-a"]);
}

#[tokio::test]
async fn a_broken_watch_goes_on_where_it_was() {
    let gate = Gate::start().await;
    gate.put("a").await;
    let mut watched = Watched::begin(&gate);
    watched.tells("listed").await;
    assert_eq!(watched.says(1).await, ["following"]);
    gate.asked();
    gate.cut();
    gate.put("b").await;
    assert_eq!(watched.says(3).await, ["failed", "following", "+b"]);
    assert_eq!(gate.asked(), [Verb::Watch], "nothing is listed again");
}

#[tokio::test]
async fn what_a_new_list_no_longer_has_is_told_as_gone() {
    let gate = Gate::start().await;
    for name in ["a", "b"] {
        gate.put(name).await;
    }
    let mut watched = Watched::begin(&gate);
    assert_eq!(watched.tells("listed").await, ["+a", "+b", "listed"]);
    assert_eq!(watched.says(1).await, ["following"]);
    // The server is away, and comes back with another memory than ours.
    gate.refuse(Verb::Watch, 410);
    gate.cut();
    gate.delete("a").await;
    gate.put("c").await;
    assert_eq!(watched.tells("failed 410").await, ["failed", "failed 410"]);
    gate.allow(Verb::Watch);
    assert_eq!(watched.tells("listed").await, ["+b", "+c", "-a", "listed"]);
    assert_eq!(watched.says(1).await, ["following"]);
}

#[tokio::test]
async fn a_list_that_breaks_off_begins_anew_and_deletes_nothing() {
    let gate = Gate::start().await;
    for name in ["a", "b", "c", "d"] {
        gate.put(name).await;
    }
    let mut watched = Watched::begin(&gate);
    gate.refuse(Verb::Page, 503);
    let told = watched.tells("failed 503").await;
    assert!(told.iter().all(|told| !told.starts_with('-') && told != "listed"), "{told:?}");
    // It was told, and is gone before a list is complete.
    gate.delete("a").await;
    gate.allow(Verb::Page);
    let told = watched.tells("listed").await;
    assert!(told.contains(&"-a".to_owned()) && told.contains(&"+d".to_owned()), "{told:?}");
}

#[tokio::test]
async fn an_api_that_refuses_is_asked_less_and_less_often() {
    let gate = Gate::start().await;
    gate.refuse(Verb::List, 503);
    let mut watched = Watched::begin(&gate);
    let mut at = Vec::new();
    for _ in 0..4 {
        assert_eq!(watched.says(2).await, ["list", "failed 503"]);
        at.push(Instant::now());
    }
    let pauses: Vec<_> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, least) in pauses.iter().zip([100, 200, 400]) {
        assert!(*pause >= Duration::from_millis(least), "{pauses:?}");
    }
    gate.allow(Verb::List);
    assert_eq!(watched.says(3).await, ["list", "listed", "following"]);
}

#[tokio::test]
async fn a_kind_that_is_not_served_and_one_that_is_forbidden_are_told_apart() {
    let gate = Gate::start().await;
    for code in [401, 403, 404] {
        gate.refuse(Verb::List, code);
        let mut watched = Watched::begin(&gate);
        assert!(matches!(watched.next().await, Event::ListStarted));
        let Event::Failed(failure) = watched.next().await else { panic!("it was refused") };
        assert_eq!((failure.is_refused(), failure.is_absent()), (code != 404, code == 404), "{failure}");
    }
}
