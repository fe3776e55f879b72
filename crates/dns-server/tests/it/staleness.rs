//! The API goes, answers stay.

use crate::api::{FakeApi, import};
use crate::server::{Server, code, query};

const WEB: &str = "web.shop.svc.clusterset.local";
const AGE: &str = "atoll_dns_snapshot_age_seconds";

#[tokio::test]
async fn nothing_is_answered_before_everything_was_listed() {
    let api = FakeApi::default();
    api.put("serviceimports", &import("web", "ClusterSetIP", &["10.111.0.7"]));
    api.go();
    let server = Server::start(&api).await;
    assert_eq!(code(&server.udp(&query(WEB, 1)).await), 2, "not NXDOMAIN, which would be believed");
    server.page_says("/readyz", |page| page.starts_with("waiting for the first list")).await;
    api.come_back();
    server.a_becomes(WEB, &[[10, 111, 0, 7]]).await;
    server.page_says("/readyz", |page| page == "ok\n").await;
}

#[tokio::test]
async fn answers_go_on_without_the_api_and_say_how_old_they_are() {
    let api = FakeApi::default();
    api.put("serviceimports", &import("web", "ClusterSetIP", &["10.111.0.7"]));
    api.put("serviceimports", &import("old", "ClusterSetIP", &["10.111.0.6"]));
    let server = Server::ready(&api).await;
    server.page_says("/readyz", |page| page == "ok\n").await;
    assert!(server.metric(AGE).await.abs() < f64::EPSILON);

    api.go();
    server.page_says("/readyz", |page| page.starts_with("ok: no contact with the API")).await;
    assert!(server.metric(AGE).await > 0.0);
    assert_eq!(server.a(WEB).await, [[10, 111, 0, 7]]);

    // It comes back changed, and remembers nothing that we could go on from.
    api.put("serviceimports", &import("web", "ClusterSetIP", &["10.111.0.8"]));
    api.delete("serviceimports", "old");
    api.come_back();
    server.a_becomes(WEB, &[[10, 111, 0, 8]]).await;
    server.a_becomes("old.shop.svc.clusterset.local", &[]).await;
    server.page_says("/readyz", |page| page == "ok\n").await;
    assert!(server.metric(AGE).await.abs() < f64::EPSILON);
}

#[tokio::test]
async fn a_watch_that_is_back_goes_on_where_it_broke() {
    let api = FakeApi::default();
    api.put("serviceimports", &import("web", "ClusterSetIP", &["10.111.0.7"]));
    let server = Server::ready(&api).await;
    api.go();
    server.page_says("/readyz", |page| page.starts_with("ok: no contact with the API")).await;
    api.come_back();
    server.page_says("/readyz", |page| page == "ok\n").await;
    api.put("serviceimports", &import("web", "ClusterSetIP", &["10.111.0.9"]));
    server.a_becomes(WEB, &[[10, 111, 0, 9]]).await;
}
