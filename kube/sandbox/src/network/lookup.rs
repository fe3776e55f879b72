//! Names of a cluster, as a pod looks them up. The DNS server itself is given from outside.

use futures_util::future::BoxFuture;
use std::net::IpAddr;

/// A name with fewer dots is looked for along the search path first.
const DOTS: usize = 5;

/// Answers for names, as the cluster's DNS does.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of a complete name (without its last dot); none if there is no such name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Vec<IpAddr>>;

    /// The SRV records of a complete name.
    fn services<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Vec<ServiceRecord>> {
        let _ = name;
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// One SRV record.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are DNS's")]
pub struct ServiceRecord {
    pub priority: u16,
    pub weight: u16,
    pub port: u16,
    pub target: String,
}

/// A cluster without DNS.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoNames;

impl Resolve for NoNames {
    fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        Box::pin(std::future::ready(Vec::new()))
    }
}

/// The complete names that `name` may mean for a pod in `namespace`, in the order in which they are tried.
///
/// ```
/// let names = atoll_sandbox::network::candidates("web", "shop");
/// assert_eq!(names, ["web.shop.svc.cluster.local", "web.svc.cluster.local", "web.cluster.local", "web"]);
/// assert_eq!(atoll_sandbox::network::candidates("web.", "shop"), ["web"]);
/// ```
pub fn candidates(name: &str, namespace: &str) -> Vec<String> {
    if let Some(complete) = name.strip_suffix('.') {
        return vec![complete.to_owned()];
    }
    let mut names = vec![
        format!("{name}.{namespace}.svc.cluster.local"),
        format!("{name}.svc.cluster.local"),
        format!("{name}.cluster.local"),
    ];
    let at = if name.matches('.').count() < DOTS { names.len() } else { 0 };
    names.insert(at, name.to_owned());
    names
}
