//! Keeps the table as the API has it.

use super::table::ServiceName;
use super::{Proxy, facts};
use crate::follow::{Change, follow};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, Client, ResourceExt};
use std::collections::HashSet;

pub(super) async fn services(proxy: Proxy, client: Client) {
    let mut listed: HashSet<ServiceName> = HashSet::new();
    follow(Api::<Service>::all(client), |change| match change {
        Change::ListStarted => listed.clear(),
        Change::Seen(service) => {
            let name = facts::service_name(&service);
            proxy.change(|table| table.put_service(&name, Some(facts::service(&service))));
            listed.insert(name);
        }
        Change::Gone(service) => {
            let name = facts::service_name(&service);
            proxy.change(|table| table.put_service(&name, None));
        }
        Change::Listed => proxy.change(|table| {
            let lost: Vec<_> = table.services().into_iter().filter(|name| !listed.contains(name)).collect();
            let changed: Vec<bool> = lost.iter().map(|name| table.put_service(name, None)).collect();
            changed.contains(&true)
        }),
    })
    .await;
}

pub(super) async fn slices(proxy: Proxy, client: Client) {
    let mut listed: HashSet<(String, String)> = HashSet::new();
    follow(Api::<EndpointSlice>::all(client), |change| match change {
        Change::ListStarted => listed.clear(),
        Change::Seen(slice) => {
            let (namespace, name) = (slice.namespace().unwrap_or_default(), slice.name_any());
            proxy.change(|table| table.put_slice(&namespace, &name, facts::slice(&slice)));
            listed.insert((namespace, name));
        }
        Change::Gone(slice) => {
            let (namespace, name) = (slice.namespace().unwrap_or_default(), slice.name_any());
            proxy.change(|table| table.put_slice(&namespace, &name, None));
        }
        Change::Listed => proxy.change(|table| {
            let lost: Vec<_> = table.slices().into_iter().filter(|key| !listed.contains(key)).collect();
            let changed: Vec<bool> =
                lost.iter().map(|(namespace, name)| table.put_slice(namespace, name, None)).collect();
            changed.contains(&true)
        }),
    })
    .await;
}
