//! Whether the addresses that a Service had can be asked for again.
//!
//! An API server tells of a deleted Service first, and then deletes the records of its addresses one by one. Who asks for
//! two of them in between gets the first, is refused the second, and the server does not take the first one back: no Service
//! can have it until its repair loop comes by, a minute later. So the records are looked at before.

use std::net::IpAddr;

use k8s_openapi::api::networking::v1::IPAddress;
use kube::{Api, Client};

use super::failure;
use crate::core::event::Failure;

/// Refuses while one of `ips` is recorded as taken. A server that keeps no records, or shows us none, is taken at our word.
pub(super) async fn check(client: &Client, ips: &[IpAddr]) -> Result<(), Failure> {
    let records: Api<IPAddress> = Api::all(client.clone());
    for ip in ips {
        match records.get_metadata_opt(&ip.to_string()).await {
            Ok(None) => {}
            Ok(Some(_)) => return Err(Failure::Invalid(format!("the address {ip} is still in use"))),
            Err(kube::Error::Api(status)) if status.code == 403 => return Ok(()),
            Err(error) => return Err(failure::of(&error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::{Context, Poll};

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;

    /// A server that answers by the last part of the path.
    #[derive(Clone)]
    struct Records(&'static [(&'static str, u16)]);

    impl tower_service::Service<Request<Body>> for Records {
        type Response = Response<Body>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            let path = request.uri().path();
            let name = path.strip_prefix("/apis/networking.k8s.io/v1/ipaddresses/").expect("a record");
            let code = self.0.iter().find(|(known, _)| *known == name).map_or(404, |(_, code)| *code);
            let body = match code {
                200 => serde_json::json!({
                    "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": name},
                }),
                _ => serde_json::json!({
                    "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "message": "m",
                    "reason": if code == 404 { "NotFound" } else { "Forbidden" },
                }),
            };
            let body = Body::from(body.to_string().into_bytes());
            std::future::ready(Ok(Response::builder().status(code).body(body).expect("an answer")))
        }
    }

    #[tokio::test]
    async fn addresses_are_asked_for_when_no_record_is_left() {
        let ips = ["10.0.0.7".parse().unwrap(), "fd00::7".parse().unwrap()];
        let cases: [(&'static [(&str, u16)], bool); 5] = [
            (&[], true),
            (&[("10.0.0.7", 200), ("fd00::7", 200)], false),
            (&[("10.0.0.7", 200)], false),
            (&[("fd00::7", 200)], false),
            (&[("10.0.0.7", 403), ("fd00::7", 403)], true),
        ];
        for (records, free) in cases {
            let client = Client::new(Records(records), "default");
            assert_eq!(check(&client, &ips).await.is_ok(), free, "{records:?}");
        }
    }
}
