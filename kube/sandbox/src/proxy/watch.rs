//! Keeps the table as the API has it.

use super::{Proxy, facts};
use atoll_watch::{Change, Config, Known, watch};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, ResourceExt};
use std::pin::pin;

pub(super) async fn services(proxy: Proxy, client: Client) {
    let mut events = pin!(watch(Api::<Service>::all(client), Config::default()));
    let mut known = Known::default();
    while let Some(event) = events.next().await {
        for change in known.take(event, |service| Some(facts::service_name(service))) {
            match change {
                Change::Seen(name, service) => {
                    proxy.change(|table| table.put_service(&name, Some(facts::service(&service))));
                }
                Change::Gone(name) => proxy.change(|table| table.put_service(&name, None)),
                Change::Listed => {}
                Change::Failed(failure) => tracing::debug!(%failure, "a watch of Services failed"),
            }
        }
    }
}

pub(super) async fn slices(proxy: Proxy, client: Client) {
    let mut events = pin!(watch(Api::<EndpointSlice>::all(client), Config::default()));
    let mut known = Known::default();
    while let Some(event) = events.next().await {
        for change in
            known.take(event, |slice| Some((slice.namespace().unwrap_or_default(), slice.name_any())))
        {
            match change {
                Change::Seen((namespace, name), slice) => {
                    proxy.change(|table| table.put_slice(&namespace, &name, facts::slice(&slice)));
                }
                Change::Gone((namespace, name)) => {
                    proxy.change(|table| table.put_slice(&namespace, &name, None));
                }
                Change::Listed => {}
                Change::Failed(failure) => tracing::debug!(%failure, "a watch of EndpointSlices failed"),
            }
        }
    }
}
