//! Servers that end watches, say nothing, or say what can't be read; the clock is the test's.

use std::convert::Infallible;
use std::time::Duration;

use atoll_watch::{Config, Event, Failure, LIFETIME, watch};
use futures_util::{Stream, StreamExt, stream};
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

/// An API without objects, whose every watch says these lines and then ends after a while, or says nothing more.
fn api(lines: &[Value], ends: Option<Duration>) -> impl Stream<Item = Event<ConfigMap>> + use<> {
    let lines: Vec<_> = lines.iter().map(|line| Bytes::from(format!("{line}\n"))).collect();
    let answer = move |request: Request<Body>| {
        let body: UnsyncBoxBody<Bytes, Infallible> = if request
            .uri()
            .query()
            .unwrap_or_default()
            .contains("watch=true")
        {
            let said = stream::iter(lines.clone()).map(|line| Ok(Frame::data(line)));
            let rest = stream::once(async move {
                match ends {
                    Some(after) => tokio::time::sleep(after).await,
                    None => std::future::pending().await,
                }
            });
            let rest = rest.filter_map(async |()| None);
            StreamBody::new(said.chain(rest)).boxed_unsync()
        } else {
            let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": []});
            Full::new(Bytes::from(list.to_string())).boxed_unsync()
        };
        async { Ok::<_, Infallible>(Response::new(body)) }
    };
    let client = kube::Client::new(tower::service_fn(answer), "default");
    watch(kube::Api::namespaced(client, "default"), Config::default())
}

fn map(verb: &str, name: &str, version: &str) -> Value {
    json!({"type": verb, "object": {"kind": "ConfigMap", "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "resourceVersion": version}}})
}

async fn says(events: impl Stream<Item = Event<ConfigMap>>, count: usize) -> Vec<String> {
    let said = events.take(count).map(|event| match event {
        Event::ListStarted => "list".to_owned(),
        Event::Seen(map) => format!("+{}", map.metadata.name.unwrap()),
        Event::Gone(map) => format!("-{}", map.metadata.name.unwrap()),
        Event::Listed => "listed".to_owned(),
        Event::Following => "following".to_owned(),
        Event::Failed(Failure::Silent) => "silent".to_owned(),
        Event::Failed(failure) => failure.to_string().split(':').next().unwrap().to_owned(),
    });
    said.collect().await
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_cut_silently_is_given_up_soon_after_the_server_would_have() {
    let begun = Instant::now();
    let said = says(api(&[], None), 5).await;
    assert_eq!(said, ["list", "listed", "following", "silent", "following"]);
    let least = Duration::from_secs(u64::from(LIFETIME));
    assert!((least..least + Duration::from_secs(10)).contains(&begun.elapsed()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_ends_is_begun_anew_without_a_pause() {
    let begun = Instant::now();
    let said = says(api(&[], Some(Duration::from_secs(50))), 5).await;
    assert_eq!(said, ["list", "listed", "following", "following", "following"]);
    assert_eq!(begun.elapsed(), Duration::from_secs(100));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_at_once_is_begun_anew_after_a_pause_that_grows() {
    let begun = Instant::now();
    let said = says(api(&[], Some(Duration::ZERO)), 5).await;
    assert_eq!(said, ["list", "listed", "following", "following", "following"]);
    assert_eq!(begun.elapsed(), Duration::from_millis(100 + 200));
}

#[tokio::test(start_paused = true)]
async fn one_change_that_cannot_be_read_does_not_hide_the_next() {
    let wrong = json!({"type": "ADDED", "object": {"metadata": "what?"}});
    let said = says(api(&[map("ADDED", "a", "8"), wrong, map("DELETED", "a", "9")], None), 6).await;
    assert_eq!(said, ["list", "listed", "following", "+a", "the watch broke", "-a"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_forgotten_is_listed_again() {
    let expired = json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": 410, "reason": "Expired", "message": "too old"}});
    let said = says(api(&[expired], None), 6).await;
    let reported = "the server reports an error in the watch";
    assert_eq!(said, ["list", "listed", "following", reported, "list", "listed"]);
}
