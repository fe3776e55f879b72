//! What has changed between two explanations: the story of a service and its endpoints. Pure.

use std::collections::BTreeMap;
use std::fmt::Write;

use atoll_api::explain::{ClusterPart, Endpoints, Import, Remark, ServiceExplanation};
use atoll_api::names::kind::networking::MULTI_CLUSTER_SERVICE;

/// A fact that is new, other than it was, or gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    what: String,
    before: Option<String>,
    after: Option<String>,
}

/// What differs, in the order of clusters.
pub(super) fn between(before: &ServiceExplanation, after: &ServiceExplanation) -> Vec<Change> {
    let (mut old, new) = (facts(before), facts(after));
    let mut changes: Vec<Change> = new
        .into_iter()
        .filter_map(|(what, after)| {
            let before = old.remove(&what);
            (before.as_ref() != Some(&after)).then_some(Change { what, before, after: Some(after) })
        })
        .collect();
    changes.extend(old.into_iter().map(|(what, before)| Change { what, before: Some(before), after: None }));
    changes.sort_by(|one, other| one.what.cmp(&other.what));
    changes
}

/// A line for each, with the time.
pub(super) fn shown(at: &str, changes: &[Change]) -> String {
    let time = clock(at);
    let mut text = String::new();
    for Change { what, before, after } in changes {
        let _ = match (before, after) {
            (Some(before), Some(after)) => writeln!(text, "{time}  {what}: {after} (was {before})"),
            (None, Some(after)) => writeln!(text, "{time}  {what}: {after} (new)"),
            (Some(before), None) => writeln!(text, "{time}  {what}: gone (was {before})"),
            (None, None) => Ok(()),
        };
    }
    text
}

/// The time of day of an RFC 3339 time, with milliseconds.
fn clock(at: &str) -> String {
    match at.parse::<jiff::Timestamp>() {
        Ok(time) => time.strftime("%H:%M:%S%.3f").to_string(),
        Err(_) => at.to_owned(),
    }
}

/// Everything that can change, by what it is about. Times are left out: only what they stand beside is a change.
fn facts(answer: &ServiceExplanation) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |what: String, is: String| {
        if !is.is_empty() {
            facts.insert(what, is);
        }
    };
    put("verdict".to_owned(), one(&answer.verdict));
    put("waiting for".to_owned(), codes(&answer.pending));
    put("conflicts".to_owned(), all(&answer.conflicts));
    put("names".to_owned(), answer.names.join(", "));
    put("type".to_owned(), answer.kind.clone().unwrap_or_default());
    let ports = answer.ports.iter().map(|port| format!("{} {}/{}", port.name, port.port, port.protocol));
    put("ports".to_owned(), ports.collect::<Vec<_>>().join(", "));
    for part in &answer.clusters {
        cluster(part, &mut put);
    }
    if let Some(service) = &answer.multi_cluster_service {
        put(MULTI_CLUSTER_SERVICE.to_owned(), codes(&service.remarks));
        put("MultiClusterService, providers".to_owned(), service.providers.join(", "));
        put("MultiClusterService, consumers".to_owned(), service.consumers.join(", "));
        for (address, cluster) in &service.backends {
            put(format!("backend {address}"), format!("in {cluster}"));
        }
    }
    if let Some(template) = &answer.template {
        put(template.object.clone(), codes(&template.remarks));
        for policy in &template.policies {
            put(policy.policy.clone(), one(&policy.remark));
        }
        for place in &template.placements {
            let replicas = place.replicas.map(|number| format!(", {number} replicas")).unwrap_or_default();
            put(
                format!("{}: {}", place.cluster, template.object),
                format!("{}{replicas}", codes(&place.remarks)),
            );
        }
    }
    facts
}

fn cluster(part: &ClusterPart, put: &mut impl FnMut(String, String)) {
    let name = &part.cluster;
    put(format!("{name}: member"), codes(&part.member));
    if let Some(export) = &part.export {
        put(format!("{name}: export"), format!("{}{}", counted(export.endpoints), suffix(&export.remarks)));
    }
    import(&format!("{name}: import"), name, &part.import, put);
    if let Some(dispatch) = &part.dispatch {
        import(&format!("{name}: MultiClusterService"), name, dispatch, put);
    }
}

fn import(what: &str, cluster: &str, import: &Import, put: &mut impl FnMut(String, String)) {
    let is = if import.present { counted(import.endpoints) } else { "none".to_owned() };
    put(what.to_owned(), format!("{is}{}", suffix(&import.remarks)));
    for source in &import.sources {
        put(format!("{what} from {}", source.cluster), codes(&source.remarks));
        for candidate in &source.candidates {
            let used = if candidate.used { "used" } else { "not used" };
            let why =
                if candidate.used { String::new() } else { format!(", {}", candidate.remark.code.as_str()) };
            put(
                format!("{cluster}: endpoint {} of {}", candidate.address, source.cluster),
                format!("{used}{why}"),
            );
        }
    }
}

fn counted(count: Endpoints) -> String {
    format!("{} ready, {} not ready, {} refused", count.ready, count.not_ready, count.refused)
}

fn suffix(remarks: &[Remark]) -> String {
    let codes = codes(remarks);
    if codes.is_empty() { codes } else { format!(", {codes}") }
}

fn codes(remarks: &[Remark]) -> String {
    remarks.iter().map(|remark| remark.code.as_str()).collect::<Vec<_>>().join(", ")
}

fn all(remarks: &[Remark]) -> String {
    remarks.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn one(remark: &Remark) -> String {
    format!("{}: {}", remark.code.as_str(), remark.message)
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::sample;
    use super::*;
    use atoll_api::names::code::Code;

    #[test]
    fn what_stays_is_no_change_and_later_times_are_none() {
        let before = sample();
        let mut after = before.clone();
        after.at = "2026-11-18T11:00:00Z".to_owned();
        assert_eq!(between(&before, &after), []);
    }

    #[test]
    fn an_endpoint_that_is_used_now_has_its_line_with_the_time() {
        let before = sample();
        let mut after = before.clone();
        after.at = "2026-11-18T10:02:01.120Z".to_owned();
        let tokyo = after.clusters.iter_mut().find(|part| part.cluster == "tokyo").unwrap();
        let candidate = &mut tokyo.import.sources[0].candidates[1];
        (candidate.used, candidate.remark) = (true, Remark::of(Code::Used));
        let berlin = after.clusters.iter_mut().find(|part| part.cluster == "berlin").unwrap();
        berlin.export = None;
        let want = "\
10:02:01.120  berlin: export: gone (was 0 ready, 2 not ready, 0 refused, NoReadyEndpoints)
10:02:01.120  tokyo: endpoint 10.12.0.8:80 of paris: used (was not used, NotReady)
";
        assert_eq!(shown(&after.at, &between(&before, &after)), want);
        let back = shown("later", &between(&after, &before));
        assert!(
            back.starts_with(
                "later  berlin: export: 0 ready, 2 not ready, 0 refused, NoReadyEndpoints (new)\n"
            ),
            "{back}"
        );
    }
}
