//! The status of a clusterset as text. Pure.

use std::fmt::Write;

use atoll_api::explain::{ClusterSetStatus, Member, Remark, Totals, worst};
use atoll_api::names::code::Severity;

use crate::output;
use crate::paint::Paint;

/// How many services with trouble a screen has room for.
const TROUBLES: usize = 10;

pub(super) fn text(status: &ClusterSetStatus, hub: &str, paint: Paint) -> String {
    let mut out = String::new();
    let verdict = &status.verdict;
    let name = paint.strong(&status.clusterset);
    let _ = writeln!(out, "{} clusterset {name}: {}", paint.mark(verdict.severity), words(verdict));
    next(&mut out, verdict, "    ");
    for (label, value) in facts(status, hub) {
        let _ = writeln!(out, "  {label:<9}{value}");
    }
    out.push('\n');
    if status.members.is_empty() {
        out.push_str("  no members; join one with `atoll join NAME --cluster-kubeconfig FILE`\n");
    }
    members(&mut out, &status.members, paint);
    troubles(&mut out, status, paint);
    out
}

fn facts(status: &ClusterSetStatus, hub: &str) -> Vec<(&'static str, String)> {
    let Totals {
        services,
        exports,
        invalid_exports,
        conflicts,
        imports,
        stale,
        refused,
        multi_cluster_services,
        balancers,
        planning,
        unwritten,
        uncounted,
    } = status.totals;
    let mut facts = vec![
        ("hub", hub.to_owned()),
        ("leader", format!("{}, version {}, at {}", status.leader, status.version, status.at)),
        (
            "services",
            format!(
                "{services} exported, with {exports} exports; {imports} imports; {multi_cluster_services} MultiClusterServices; {balancers} load balancers"
            ),
        ),
    ];
    let wrong = [
        (invalid_exports, "exports are not valid"),
        (conflicts, "services have conflicts"),
        (stale, "services are stale"),
        (refused, "services have refused endpoints"),
    ];
    let waiting = [
        (planning, "services wait for a plan"),
        (unwritten, "services wait for the hub's API"),
        (uncounted, "services are not counted yet"),
    ];
    for (label, counts) in [("wrong", &wrong[..]), ("waiting", &waiting)] {
        let counts: Vec<String> = counts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, words)| format!("{number} {words}"))
            .collect();
        if !counts.is_empty() {
            facts.push((label, counts.join(", ")));
        }
    }
    facts
}

fn members(out: &mut String, members: &[Member], paint: Paint) {
    if members.is_empty() {
        return;
    }
    let header = ["CLUSTER", "STATE", "MODE", "VERSION", "EXPORTS", "IMPORTS", "ENDPOINTS", "LAG", "SINCE"];
    let rows: Vec<Vec<String>> = members
        .iter()
        .map(|one| {
            let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
            vec![
                one.cluster.clone(),
                one.remark.code.as_str().to_owned(),
                one.mode.clone(),
                or_none(one.version.clone()),
                one.exports.to_string(),
                one.imports.to_string(),
                one.endpoints.to_string(),
                or_none(one.lag_milliseconds.map(|lag| format!("{lag:.1} ms"))),
                or_none(one.remark.since.clone()),
            ]
        })
        .collect();
    let table = output::table(&header, &rows);
    let mut lines = table.lines();
    if let Some(header) = lines.next() {
        let _ = writeln!(out, "  {header}");
    }
    for (line, member) in lines.zip(members) {
        let all = std::iter::once(&member.remark).chain(&member.problems);
        let severity = worst(all.clone()).map_or(Severity::Info, |worst| worst.severity);
        let _ = writeln!(out, "{} {line}", paint.mark(severity));
        for remark in all.filter(|remark| remark.severity > Severity::Info) {
            let _ = writeln!(out, "    {}", paint.severe(remark.severity, &words(remark)));
            next(out, remark, "    ");
        }
    }
}

fn troubles(out: &mut String, status: &ClusterSetStatus, paint: Paint) {
    for trouble in status.troubles.iter().take(TROUBLES) {
        let remark = &trouble.remark;
        if std::ptr::eq(trouble, &raw const status.troubles[0]) {
            out.push('\n');
        }
        let _ = writeln!(
            out,
            "{} {}: {}",
            paint.mark(remark.severity),
            paint.strong(&trouble.service),
            words(remark)
        );
        next(out, remark, "    ");
    }
    let left = status.troubles.len().saturating_sub(TROUBLES);
    if left > 0 || status.more_troubles {
        let number = if status.more_troubles { "more".to_owned() } else { format!("{left} more") };
        let _ = writeln!(
            out,
            "  … and {number} services with troubles; `atoll status -o json` lists more of them"
        );
    }
    if let Some(first) = status.troubles.first() {
        let _ = writeln!(out, "\nAll of one service: `{} explain {}`", crate::plugin::name(), first.service);
    }
}

fn words(remark: &Remark) -> String {
    format!("{}: {}", remark.code.as_str(), remark.message.trim_end())
}

fn next(out: &mut String, remark: &Remark, indent: &str) {
    if let Some(next) = remark.next.as_ref().filter(|_| remark.severity > Severity::Info) {
        let _ = writeln!(out, "{indent}next: {next}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_api::explain::{Header, Trouble};
    use atoll_api::names::code::Code;

    fn member(cluster: &str, remark: Remark) -> Member {
        Member {
            cluster: cluster.to_owned(),
            mode: "Push".to_owned(),
            version: Some("v1.36.0".to_owned()),
            remark,
            exports: 2,
            imports: 3,
            endpoints: 40,
            lag_milliseconds: Some(3.25),
            problems: Vec::new(),
        }
    }

    fn sample() -> ClusterSetStatus {
        let lost = Remark::of(Code::MemberLost).since("2026-11-18T10:00:00Z");
        ClusterSetStatus {
            header: Header::new("ClusterSetStatus", None, "this"),
            at: "2026-11-18T10:02:00Z".to_owned(),
            clusterset: "prod".to_owned(),
            leader: "hub-1".to_owned(),
            version: "0.1.0".to_owned(),
            verdict: lost.clone(),
            totals: Totals {
                services: 4,
                exports: 5,
                invalid_exports: 1,
                imports: 8,
                planning: 2,
                ..Totals::default()
            },
            members: vec![
                member("paris", Remark::of(Code::MemberReady)),
                Member {
                    lag_milliseconds: None,
                    version: None,
                    problems: vec![Remark::of(Code::KindMissing)],
                    ..member("tokyo", lost)
                },
            ],
            troubles: vec![Trouble {
                service: "shop/web".to_owned(),
                remark: Remark::of(Code::NoReadyEndpoints),
            }],
            more_troubles: false,
        }
    }

    #[test]
    fn a_screen_has_the_verdict_the_hub_the_members_and_what_is_wrong() {
        let want = "\
✗ clusterset prod: MemberLost: The member is lost: no contact for the duration of a lease.
    next: Check that the hub can reach the API of the cluster: `atoll check --cluster NAME`.
  hub      https://10.0.0.1:6443
  leader   hub-1, version 0.1.0, at 2026-11-18T10:02:00Z
  services 4 exported, with 5 exports; 8 imports; 0 MultiClusterServices; 0 load balancers
  wrong    1 exports are not valid
  waiting  2 services wait for a plan

  CLUSTER   STATE         MODE   VERSION   EXPORTS   IMPORTS   ENDPOINTS   LAG      SINCE
✓ paris     MemberReady   Push   v1.36.0   2         3         40          3.2 ms   -
✗ tokyo     MemberLost    Push   -         2         3         40          -        2026-11-18T10:00:00Z
    MemberLost: The member is lost: no contact for the duration of a lease.
    next: Check that the hub can reach the API of the cluster: `atoll check --cluster NAME`.
    KindMissing: The API of the member does not serve a kind that Atoll needs.
    next: Install the CRDs: `atoll crds | kubectl --context NAME apply -f -`.

! shop/web: NoReadyEndpoints: The exported Service has endpoints, and none of them is ready.
    next: Check the readiness probes of its pods.

All of one service: `atoll explain shop/web`
";
        assert_eq!(text(&sample(), "https://10.0.0.1:6443", Paint::default()), want);
    }

    #[test]
    fn a_clusterset_that_is_well_asks_for_nothing() {
        let mut well = sample();
        well.verdict = Remark::of(Code::Healthy);
        well.members.truncate(1);
        well.troubles.clear();
        well.totals = Totals::default();
        let got = text(&well, "here", Paint::default());
        assert!(got.starts_with("✓ clusterset prod: Healthy: Nothing is wrong.\n  hub"), "{got}");
        assert!(!got.contains("next:") && !got.contains("wrong    "), "{got}");
    }

    #[test]
    fn many_troubles_are_counted() {
        let mut many = sample();
        many.troubles = vec![many.troubles[0].clone(); 25];
        let got = text(&many, "here", Paint::default());
        assert_eq!(got.matches("! shop/web").count(), TROUBLES);
        assert!(got.contains("… and 15 more services"), "{got}");
    }
}
