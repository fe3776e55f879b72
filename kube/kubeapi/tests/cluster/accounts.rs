//! Service accounts and their tokens.

use serde_json::{Value, json};

use crate::fixtures::{account, core};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    an_account_is_made_and_has_a_token,
    a_token_says_when_it_ends,
    a_token_may_not_be_too_short,
    a_token_is_of_an_account,
    a_token_of_a_deleted_account_is_no_good,
    a_token_for_others_is_no_good_here,
    a_token_is_bound_to_an_object,
    a_token_is_reviewed,
    a_bad_token_is_reviewed,
    a_review_can_be_for_an_audience,
    a_broken_signature_is_no_good,
    accounts_keep_their_secrets,
    the_issuer_tells_its_keys,
}

fn request(spec: Value) -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
}

async fn joe(api: &Target) -> (String, String) {
    let ns = api.namespace().await;
    let path = core(&ns, "serviceaccounts");
    api.post(&path, json!({"metadata": {"name": "joe"}})).await.created();
    (ns, format!("{path}/joe/token"))
}

/// The claims of a JWT, not verified.
fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("a token has three parts");
    let mut bits = 0_u32;
    let (mut held, mut bytes) = (0, Vec::new());
    for c in part.bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'-' => 62,
            _ => 63,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held & 0xff) as u8);
        }
    }
    serde_json::from_slice(&bytes).expect("claims are JSON")
}

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

async fn an_account_is_made_and_has_a_token(api: Target) {
    let (ns, path) = joe(&api).await;
    let answer = api.post(&path, request(json!({}))).await;
    answer.created();
    answer.has("/kind", "TokenRequest").has("/metadata/name", "joe").has("/metadata/namespace", ns.as_str());
    let token = answer.at("/status/token").as_str().unwrap_or_default().to_owned();
    let claims = claims(&token);
    assert_eq!(claims["sub"], format!("system:serviceaccount:{ns}:joe"));
    assert_eq!(claims["kubernetes.io"]["namespace"], ns.as_str());
    assert_eq!(claims["kubernetes.io"]["serviceaccount"]["name"], "joe");
    assert_eq!(claims["aud"], answer.at("/spec/audiences"));
    api.send(Call::post(WHO, &json!({})).bearer(&token))
        .await
        .has("/status/userInfo/username", format!("system:serviceaccount:{ns}:joe"));
}

async fn a_token_says_when_it_ends(api: Target) {
    let (_, path) = joe(&api).await;
    let answer = api.post(&path, request(json!({"expirationSeconds": 1200}))).await;
    answer.created();
    answer.has("/spec/expirationSeconds", 1200);
    assert!(answer.at("/status/expirationTimestamp").is_string());
    let claims = claims(answer.at("/status/token").as_str().unwrap_or_default());
    let number = |key: &str| claims[key].as_i64().unwrap_or_default();
    assert_eq!(number("exp") - number("iat"), 1200);
    api.post(&path, request(json!({}))).await.has("/spec/expirationSeconds", 3600);
}

async fn a_token_may_not_be_too_short(api: Target) {
    let (_, path) = joe(&api).await;
    let answer = api.post(&path, request(json!({"expirationSeconds": 5}))).await;
    answer.refused_with(
        422,
        "Invalid",
        "spec.expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
    );
}

async fn a_token_is_of_an_account(api: Target) {
    let ns = api.namespace().await;
    let answer =
        api.post(&format!("{}/nobody/token", core(&ns, "serviceaccounts")), request(json!({}))).await;
    answer.refused(404, "NotFound", "serviceaccounts \"nobody\" not found");
}

async fn a_token_of_a_deleted_account_is_no_good(api: Target) {
    let ns = api.namespace().await;
    let token = account(&api, &ns, "joe").await;
    api.send(Call::post(WHO, &json!({})).bearer(&token)).await.created();
    api.delete(&format!("{}/joe", core(&ns, "serviceaccounts"))).await.ok();
    let who = Call::post(WHO, &json!({})).bearer(&token);
    api.until_answered(&who, |answer| answer.code == 401).await;
}

async fn a_token_for_others_is_no_good_here(api: Target) {
    let (_, path) = joe(&api).await;
    let answer = api.post(&path, request(json!({"audiences": ["somebody-else"]}))).await;
    answer.created();
    answer.has("/spec/audiences", json!(["somebody-else"]));
    let token = answer.at("/status/token").as_str().unwrap_or_default().to_owned();
    api.send(Call::post(WHO, &json!({})).bearer(&token)).await.is(401);
}

async fn a_token_is_bound_to_an_object(api: Target) {
    let (ns, path) = joe(&api).await;
    let secret = api.post(&core(&ns, "secrets"), json!({"metadata": {"name": "s"}})).await;
    let bound =
        |name: &str| request(json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": name}}));
    let answer = api.post(&path, bound("s")).await;
    answer.created();
    let token = answer.at("/status/token").as_str().unwrap_or_default().to_owned();
    assert_eq!(
        claims(&token)["kubernetes.io"]["secret"],
        json!({"name": "s", "uid": secret.at("/metadata/uid")})
    );
    api.post(&path, bound("nothing")).await.is(404);
    let answer = api
        .post(
            &path,
            request(json!({"boundObjectRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}})),
        )
        .await;
    answer.refused(400, "BadRequest", "cannot bind token to object of type /v1, Kind=ConfigMap");
    api.send(Call::post(WHO, &json!({})).bearer(&token)).await.created();
    api.delete(&format!("{}/s", core(&ns, "secrets"))).await.ok();
    let who = Call::post(WHO, &json!({})).bearer(&token);
    api.until_answered(&who, |answer| answer.code == 401).await;
}

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

fn review(token: &str, audiences: Value) -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": audiences}})
}

async fn a_token_is_reviewed(api: Target) {
    let ns = api.namespace().await;
    let token = account(&api, &ns, "joe").await;
    let answer = api.post(REVIEWS, review(&token, json!(null))).await;
    answer.created();
    answer
        .has("/status/authenticated", true)
        .has("/status/user/username", format!("system:serviceaccount:{ns}:joe"));
    answer.has(
        "/status/user/groups",
        json!(["system:serviceaccounts", format!("system:serviceaccounts:{ns}"), "system:authenticated"]),
    );
}

async fn a_bad_token_is_reviewed(api: Target) {
    let answer = api.post(REVIEWS, review("nonsense", json!(null))).await;
    answer.created();
    assert_ne!(answer.at("/status/authenticated"), json!(true));
    assert!(answer.at("/status/error").is_string(), "{answer}");
    let answer = api.post(REVIEWS, review("", json!(null))).await;
    answer.refused_with(400, "BadRequest", "token is required for TokenReview in authentication");
}

async fn a_review_can_be_for_an_audience(api: Target) {
    let (_, path) = joe(&api).await;
    let answer = api.post(&path, request(json!({"audiences": ["vault"]}))).await;
    let token = answer.at("/status/token").as_str().unwrap_or_default().to_owned();
    let answer = api.post(REVIEWS, review(&token, json!(["vault", "other"]))).await;
    answer.has("/status/authenticated", true).has("/status/audiences", json!(["vault"]));
    let answer = api.post(REVIEWS, review(&token, json!(["other"]))).await;
    assert_ne!(answer.at("/status/authenticated"), json!(true));
}

async fn a_broken_signature_is_no_good(api: Target) {
    let ns = api.namespace().await;
    let token = account(&api, &ns, "joe").await;
    let (head, signature) = token.rsplit_once('.').expect("a token has three parts");
    let turned: String = signature.chars().rev().collect();
    api.send(Call::post(WHO, &json!({})).bearer(&format!("{head}.{turned}"))).await.is(401);
    // Unsigned, whatever its head says.
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", token.split('.').nth(1).unwrap_or_default());
    api.send(Call::post(WHO, &json!({})).bearer(&unsigned)).await.is(401);
}

async fn accounts_keep_their_secrets(api: Target) {
    let ns = api.namespace().await;
    let body = json!({"metadata": {"name": "joe"}, "automountServiceAccountToken": false, "secrets": [{"name": "s"}], "imagePullSecrets": [{"name": "p"}]});
    let answer = api.post(&core(&ns, "serviceaccounts"), body).await;
    answer.created();
    answer
        .has("/automountServiceAccountToken", false)
        .has("/secrets", json!([{"name": "s"}]))
        .has("/imagePullSecrets", json!([{"name": "p"}]));
}

async fn the_issuer_tells_its_keys(api: Target) {
    let document = api.get("/.well-known/openid-configuration").await;
    document.ok();
    assert!(document.at("/issuer").is_string() && document.at("/jwks_uri").is_string(), "{document}");
    let keys = api.get("/openid/v1/jwks").await;
    keys.ok();
    assert!(keys.at("/keys/0/kid").is_string() && keys.at("/keys/0/kty").is_string(), "{keys}");
}
