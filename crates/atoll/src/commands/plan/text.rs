//! A plan for people: `+ ~ -` lines by cluster, and a closing summary. Pure.

use atoll_api::explain::Remark;
use atoll_api::explain::plan::{
    Change, ClusterChanges, Condition, CopyChange, EndpointChange, FieldChange, ObjectChange,
    PlacementChange, PlanAnswer, ServiceChange, Summary,
};

/// So many addresses are shown of one source.
const SHOWN: usize = 8;

/// The whole plan.
pub(super) fn render(answer: &PlanAnswer) -> String {
    let mut out = String::new();
    for cluster in &answer.clusters {
        heading(&mut out, &cluster.cluster);
        self::cluster(&mut out, cluster);
    }
    if !answer.hub.is_empty() || !answer.placements.is_empty() {
        heading(&mut out, "In the hub");
        answer.hub.iter().for_each(|one| service(&mut out, one));
        answer.placements.iter().for_each(|one| placement(&mut out, one));
    }
    if !answer.conflicts.is_empty() {
        heading(&mut out, "Conflicts");
        for one in &answer.conflicts {
            let (mark, code) = (one.change.mark(), one.remark.code.as_str());
            line(
                &mut out,
                &format!(
                    "  {mark} {} {code}: {} ({} has precedence)",
                    one.service, one.remark.message, one.winner
                ),
            );
            if one.change != Change::Remove {
                next(&mut out, &one.remark);
            }
        }
    }
    if !answer.ignored.is_empty() {
        heading(&mut out, "Not counted");
        for one in &answer.ignored {
            line(&mut out, &format!("  {}: {}", one.object, one.why));
        }
    }
    if !out.is_empty() {
        out.push('\n');
    }
    line(&mut out, &summary(&answer.summary));
    out
}

fn heading(out: &mut String, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    line(out, &format!("{text}:"));
}

/// Text from members ends up here: no control characters for the terminal.
fn line(out: &mut String, text: &str) {
    out.extend(text.trim_end().chars().map(|one| if one.is_control() { ' ' } else { one }));
    out.push('\n');
}

fn cluster(out: &mut String, cluster: &ClusterChanges) {
    for ObjectChange { change, kind, namespace, name, why, fields } in &cluster.objects {
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        line(out, &format!("  {} {kind} {namespace}/{name}{why}", change.mark()));
        self::fields(out, fields);
    }
    for one in &cluster.endpoints {
        endpoints(out, one);
    }
    for one in &cluster.conditions {
        let say = |condition: &Option<Condition>| {
            condition
                .as_ref()
                .map_or_else(|| "none".to_owned(), |one| format!("{} ({})", one.status, one.reason))
        };
        let (before, after) = (say(&one.before), say(&one.after));
        let changed =
            format!("{} {}/{} {}: {before} -> {after}", one.kind, one.namespace, one.name, one.condition);
        line(out, &format!("  ~ {changed}"));
        if let Some(after) = one.after.as_ref().filter(|after| !after.message.is_empty()) {
            line(out, &format!("      {}", after.message));
        }
    }
    for one in &cluster.problems {
        remark(out, &one.service, &one.remark);
    }
}

fn endpoints(out: &mut String, change: &EndpointChange) {
    let EndpointChange { service, source, added, changed, removed, awaited } = change;
    let of = format!("of {service} from {source}");
    for (change, list) in [(Change::Add, added), (Change::Change, changed), (Change::Remove, removed)] {
        if !list.is_empty() {
            line(out, &format!("  {} endpoints {of}: {}", change.mark(), some(list)));
        }
    }
    if *awaited {
        line(out, &format!("  + endpoints {of}: when its pods are ready"));
    }
}

fn some(list: &[String]) -> String {
    let shown = list.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match list.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn fields(out: &mut String, fields: &[FieldChange]) {
    for FieldChange { field, before, after } in fields {
        let said = |text: &String| if text.is_empty() { "none".to_owned() } else { text.clone() };
        line(out, &format!("      {field}: {} -> {}", said(before), said(after)));
    }
}

fn service(out: &mut String, change: &ServiceChange) {
    line(out, &format!("  ~ MultiClusterService {}", change.service));
    fields(out, &change.fields);
    for (mark, list) in [('+', &change.added), ('~', &change.changed), ('-', &change.removed)] {
        if !list.is_empty() {
            line(out, &format!("    {mark} backends: {}", some(list)));
        }
    }
    change.remarks.iter().for_each(|one| remark(out, &change.service, one));
}

fn placement(out: &mut String, change: &PlacementChange) {
    line(out, &format!("  ~ placement of {}", change.object));
    fields(out, &change.fields);
    for CopyChange { cluster, change, fields } in &change.clusters {
        line(out, &format!("    {} {cluster}", change.mark()));
        self::fields(out, fields);
    }
    change.remarks.iter().for_each(|one| remark(out, &change.object, one));
}

fn remark(out: &mut String, about: &str, remark: &Remark) {
    line(out, &format!("  ! {about} {}: {}", remark.code.as_str(), remark.message));
    next(out, remark);
}

fn next(out: &mut String, remark: &Remark) {
    if let Some(next) = &remark.next {
        line(out, &format!("      next: {next}"));
    }
}

fn summary(summary: &Summary) -> String {
    let problems = match summary.problems {
        0 => String::new(),
        1 => " 1 problem: see the line with `!`.".to_owned(),
        many => format!(" {many} problems: see the lines with `!`."),
    };
    if !summary.changes() {
        return format!("Nothing would change.{problems} Nothing was written.");
    }
    let Summary {
        made,
        changed,
        deleted,
        endpoints_added,
        endpoints_removed,
        conditions,
        conflicts,
        placements,
        ..
    } = summary;
    let mut more = String::new();
    for (count, what) in [(conditions, "conditions"), (conflicts, "conflicts"), (placements, "placements")] {
        if *count > 0 {
            more.push_str(&format!(", {what}: {count}"));
        }
    }
    format!(
        "Plan: {made} to create, {changed} to change, {deleted} to delete; endpoints: +{endpoints_added} -{endpoints_removed}{more}.{problems} \
         Nothing was written."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[allow(clippy::needless_pass_by_value)] // an answer is written where it is used
    fn read(answer: serde_json::Value) -> PlanAnswer {
        let mut whole = json!({"apiVersion": "explain.atoll.dev/v1alpha1", "kind": "Plan", "metadata": {"name": "plan"},
            "at": "2026-01-01T00:00:00.000Z", "summary": {"made": 0, "changed": 0, "deleted": 0, "endpointsAdded": 0,
            "endpointsRemoved": 0, "conditions": 0, "conflicts": 0, "placements": 0, "problems": 0}});
        for (key, value) in answer.as_object().unwrap() {
            if key == "summary" {
                whole[key].as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
            } else {
                whole[key] = value.clone();
            }
        }
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn nothing_is_one_line() {
        assert_eq!(render(&read(json!({}))), "Nothing would change. Nothing was written.\n");
    }

    #[test]
    fn changes_stand_by_cluster_with_marks_and_a_summary_at_the_end() {
        let addresses: Vec<String> = (1..=10).map(|number| format!("10.1.0.{number}")).collect();
        let conflict = Remark::of(atoll_api::names::code::Code::PortConflict);
        let missing = Remark::of(atoll_api::names::code::Code::NoNamespace);
        let answer = read(json!({
            "clusters": [
                {"cluster": "lima", "problems": [{"service": "shop/web", "remark": missing}]},
                {"cluster": "tokyo",
                 "objects": [
                    {"change": "Add", "kind": "Service", "namespace": "shop", "name": "derived-web", "why": "exported by paris"},
                    {"change": "Change", "kind": "EndpointSlice", "namespace": "shop", "name": "i-1", "fields": [
                        {"field": "ports", "before": "", "after": "80/TCP"}]},
                 ],
                 "endpoints": [
                    {"service": "shop/web", "source": "paris", "added": addresses, "removed": ["10.9.0.1"]},
                    {"service": "shop/api", "source": "paris", "awaited": true},
                 ],
                 "conditions": [{"kind": "ServiceExport", "namespace": "shop", "name": "web", "type": "Ready",
                    "after": {"status": "True", "reason": "Exported", "message": "it \u{1b}[31mis"}}]},
            ],
            "conflicts": [{"change": "Add", "service": "shop/web", "winner": "paris", "remark": conflict}],
            "hub": [{"service": "shop/web", "fields": [{"field": "providers", "before": "", "after": "paris"}], "added": ["10.1.0.1:80"]}],
            "ignored": [{"object": "ConfigMap shop/a", "cluster": "tokyo", "why": "Atoll does not read it"}],
            "summary": {"made": 1, "changed": 1, "endpointsAdded": 10, "endpointsRemoved": 1, "conditions": 1, "conflicts": 1, "problems": 1},
        }));
        let want = "\
lima:
  ! shop/web NoNamespace: The cluster does not have the namespace.
      next: Create the namespace in that cluster. Creating it in the hub creates it in every member (unless `--namespace-sync=false`).

tokyo:
  + Service shop/derived-web (exported by paris)
  ~ EndpointSlice shop/i-1
      ports: none -> 80/TCP
  + endpoints of shop/web from paris: 10.1.0.1, 10.1.0.2, 10.1.0.3, 10.1.0.4, 10.1.0.5, 10.1.0.6, 10.1.0.7, 10.1.0.8 and 2 more
  - endpoints of shop/web from paris: 10.9.0.1
  + endpoints of shop/api from paris: when its pods are ready
  ~ ServiceExport shop/web Ready: none -> True (Exported)
      it  [31mis

In the hub:
  ~ MultiClusterService shop/web
      providers: none -> paris
    + backends: 10.1.0.1:80

Conflicts:
  + shop/web PortConflict: The exports have different ports. The union is used; where ports clash, the export with precedence wins. (paris has precedence)
      next: Make spec.ports the same in all exporting clusters.

Not counted:
  ConfigMap shop/a: Atoll does not read it

Plan: 1 to create, 1 to change, 0 to delete; endpoints: +10 -1, conditions: 1, conflicts: 1. 1 problem: see the line with `!`. Nothing was written.
";
        assert_eq!(render(&answer), want);
    }
}
