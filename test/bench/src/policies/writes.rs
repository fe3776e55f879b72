//! What product and floor wrote about templates, counted in the audit logs.

use std::collections::BTreeMap;

use super::report::Writes;
use crate::environment::{Environment, Recording, Request};
use crate::error::Error;
use crate::options::Who;
use crate::requests::{Own, spelled};

/// The audit logs from some moment on.
pub(super) struct Recorded(Vec<(String, Box<dyn Recording>)>);

impl Recorded {
    pub(super) fn start(environment: &Environment) -> Result<Self, Error> {
        let start = |audit: &std::sync::Arc<dyn crate::environment::Audit>| {
            Ok((audit.cluster().to_owned(), audit.record().map_err(unreadable)?))
        };
        Ok(Self(environment.audits.iter().map(start).collect::<Result<_, Error>>()?))
    }

    /// Adds what `who` has written since.
    pub(super) async fn add_to(
        &self,
        writes: &mut BTreeMap<String, Writes>,
        own: &BTreeMap<String, Own>,
        who: Who,
    ) -> Result<(), Error> {
        for (cluster, recording) in &self.0 {
            let requests = recording.requests().await.map_err(unreadable)?;
            let bench = own.get(cluster).cloned().unwrap_or_default();
            let into = writes
                .entry(cluster.clone())
                .or_insert_with(|| Writes { cluster: cluster.clone(), ..Writes::default() });
            let into = into.by.entry(who).or_default();
            for request in requests.iter().filter(|request| is_write(request, &bench, who)) {
                *into.entry(spelled(request)).or_default() += 1;
            }
        }
        Ok(())
    }
}

fn unreadable(why: String) -> Error {
    Error::Hook { action: "read the audit log", why }
}

/// Whether a request is a write of `who`, and not of the benchmark, which makes and changes templates and policies in the hub and takes
/// things away in members.
fn is_write(request: &Request, bench: &Own, who: Who) -> bool {
    let writes = ["create", "update", "patch"].contains(&request.verb.as_str());
    if !writes || Who::of(&request.namespace) != Some(who) {
        return false;
    }
    let of_stage = match (bench.hub, who) {
        // A template's status is not the benchmark's.
        (true, _) => {
            request.subresource.is_empty()
                && ["configmaps", "propagationpolicies"].contains(&request.resource.as_str())
        }
        (false, Who::Ours) => request.user == bench.user,
        (false, Who::Floor | Who::Copier) => false,
    };
    !of_stage
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_told_from_what_the_benchmark_does_itself() {
        let (hub, member) =
            (Own { user: "admin".to_owned(), hub: true }, Own { user: "admin".to_owned(), hub: false });
        let (ours, floor) = (Who::Ours.namespace(), Who::Floor.namespace());
        for (own, user, verb, resource, namespace, who, want) in [
            (&hub, "admin", "create", "configmaps", ours, Who::Ours, false),
            (&hub, "admin", "create", "propagationpolicies", ours, Who::Ours, false),
            (&hub, "admin", "patch", "resourcebindings", ours, Who::Ours, true),
            (&hub, "admin", "delete", "resourcebindings", ours, Who::Ours, false),
            (&hub, "admin", "create", "resourcebindings", floor, Who::Floor, true),
            (&hub, "admin", "create", "resourcebindings", floor, Who::Ours, false),
            (&member, "hub", "create", "configmaps", ours, Who::Ours, true),
            (&member, "hub", "watch", "configmaps", "", Who::Ours, false),
            (&member, "admin", "update", "configmaps", floor, Who::Floor, true),
            (&member, "admin", "deletecollection", "configmaps", floor, Who::Floor, false),
        ] {
            let [verb, resource, namespace, user] = [verb, resource, namespace, user].map(str::to_owned);
            let request = Request { verb, resource, namespace, user, ..Request::default() };
            assert_eq!(is_write(&request, own, who), want, "{request:?}");
        }
    }
}
