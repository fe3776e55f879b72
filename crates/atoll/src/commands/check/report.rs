//! What was checked and what was found, and how that is printed. Pure.

use atoll_api::names::code::Code;
use serde::Serialize;

/// The headings of the report, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Group {
    /// The hub.
    Hub,
    /// The members.
    Members,
    /// DNS of the members.
    Dns,
    /// From pods of one cluster to pods of another.
    DataPath,
}

impl Group {
    const ALL: [Self; 4] = [Self::Hub, Self::Members, Self::Dns, Self::DataPath];

    fn title(self) -> &'static str {
        match self {
            Self::Hub => "Hub",
            Self::Members => "Members",
            Self::Dns => "DNS",
            Self::DataPath => "Data path",
        }
    }
}

/// How a check ended; the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Mark {
    Passed,
    Skipped,
    Warned,
    Failed,
}

/// Something that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Finding {
    pub(crate) mark: Mark,
    pub(crate) code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) next: &'static str,
}

impl Finding {
    pub(crate) fn new(mark: Mark, code: Code, message: impl Into<String>) -> Self {
        let next = code.next();
        Self { mark, code: code.as_str(), cluster: None, service: None, message: message.into(), next }
    }

    pub(crate) fn failed(code: Code, message: impl Into<String>) -> Self {
        Self::new(Mark::Failed, code, message)
    }

    pub(crate) fn warned(code: Code, message: impl Into<String>) -> Self {
        Self::new(Mark::Warned, code, message)
    }

    /// A check that was left out; `needs` is what it would need.
    pub(crate) fn skipped(needs: impl Into<String>) -> Self {
        Self::new(Mark::Skipped, Code::NotChecked, needs)
    }

    pub(crate) fn of(self, cluster: &str) -> Self {
        Self { cluster: Some(cluster.to_owned()), ..self }
    }

    pub(crate) fn about(self, service: &str) -> Self {
        Self { service: Some(service.to_owned()), ..self }
    }

    /// Whether it says that a check could not be made: nothing is proven by it.
    fn is_unproven(&self) -> bool {
        self.mark == Mark::Skipped || self.code == Code::ProbeFailed.as_str()
    }

    fn line(&self) -> String {
        let place = [self.service.as_deref(), self.cluster.as_deref()];
        let place: Vec<&str> = place.into_iter().flatten().collect();
        let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(" in ")) };
        match self.mark {
            Mark::Skipped => format!("{place}{}", self.message),
            Mark::Passed | Mark::Warned | Mark::Failed => format!("{place}{} ({})", self.message, self.code),
        }
    }
}

/// One check: a line of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Check {
    pub(crate) group: Group,
    /// Stable; also the anchor in `docs/check.md`.
    pub(crate) id: &'static str,
    pub(crate) title: String,
    pub(crate) mark: Mark,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) findings: Vec<Finding>,
}

impl Check {
    /// A check with what it found; nothing found is passed.
    pub(crate) fn new(
        group: Group,
        id: &'static str,
        title: impl Into<String>,
        findings: Vec<Finding>,
    ) -> Self {
        let mark = findings.iter().map(|one| one.mark).max().unwrap_or(Mark::Passed);
        Self { group, id, title: title.into(), mark, findings }
    }

    /// Whether this is a data path that was to be probed, and was not.
    fn is_unproven(&self) -> bool {
        self.group == Group::DataPath && self.findings.iter().any(Finding::is_unproven)
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    /// Whether nothing failed.
    pub(crate) ok: bool,
    /// What is wrong, the cause that comes first first.
    pub(crate) causes: Vec<Finding>,
    /// What this run created or read beyond the hub's own rights.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) needs: Vec<String>,
    pub(crate) checks: Vec<Check>,
    /// What the hub says is wrong in the clusterset, as `atoll status` does; its services are no part of the checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<String>,
}

impl Report {
    /// The report of these checks; `status` is what the hub says is wrong.
    ///
    /// The causes are the failures and then the warnings, in the order of the checks: what others depend on is checked first.
    pub(crate) fn of(checks: Vec<Check>, needs: Vec<String>, status: Option<String>) -> Self {
        let all = || checks.iter().flat_map(|check| &check.findings);
        let marked = |mark| all().filter(move |one| one.mark == mark);
        let mut causes: Vec<Finding> = Vec::new();
        for one in marked(Mark::Failed).chain(marked(Mark::Warned)) {
            if !causes.contains(one) {
                causes.push(one.clone());
            }
        }
        let ok = checks.iter().all(|check| check.mark != Mark::Failed && !check.is_unproven());
        Self { ok, causes, needs, checks, status }
    }

    /// As a person reads it.
    pub(crate) fn text(&self, style: Style) -> String {
        let mut out = String::new();
        for group in Group::ALL {
            let checks: Vec<&Check> = self.checks.iter().filter(|check| check.group == group).collect();
            if checks.is_empty() {
                continue;
            }
            out.push_str(&format!("{}\n{}\n", group.title(), "-".repeat(group.title().len())));
            for check in checks {
                out.push_str(&format!("{} {}\n", style.mark(check.mark), check.title));
                let mut hints: Vec<&str> = Vec::new();
                for one in check.findings.iter().filter(|one| one.mark != Mark::Passed) {
                    out.push_str(&format!("    {} {}\n", style.mark(one.mark), one.line()));
                    if !one.next.is_empty() && !hints.contains(&one.next) {
                        hints.push(one.next);
                    }
                }
                for hint in &hints {
                    out.push_str(&format!("    hint: {hint}\n"));
                }
                if check.mark > Mark::Skipped {
                    out.push_str(&format!("    see docs/check.md#{}\n", check.id));
                }
            }
            out.push('\n');
        }
        if !self.needs.is_empty() {
            out.push_str(&format!("needs: {}\n", self.needs.join("; ")));
        }
        out.push_str(&self.verdict());
        out
    }

    fn verdict(&self) -> String {
        let count = |mark| self.checks.iter().filter(|check| check.mark == mark).count();
        let (failed, warned) = (count(Mark::Failed), count(Mark::Warned));
        let left_out =
            self.checks.iter().filter(|check| check.findings.iter().any(|one| one.mark == Mark::Skipped));
        let left_out = match left_out.count() {
            0 => String::new(),
            some => format!(", {some} not complete"),
        };
        let passed = count(Mark::Passed);
        let totals = format!("{passed} passed{left_out}, {warned} with warnings, {failed} failed");
        let unproven = self.checks.iter().find(|check| check.is_unproven());
        let unproven = unproven.and_then(|check| check.findings.iter().find(|one| one.is_unproven()));
        let verdict = match (self.causes.first(), unproven) {
            (Some(first), _) if failed > 0 => format!("failed: {}", first.line()),
            (_, Some(unproven)) => format!("not proven: {}", unproven.line()),
            (Some(first), None) => format!("works, with warnings: {}", first.line()),
            (None, None) if self.status.is_some() => "no check failed, but something is wrong".to_owned(),
            (None, None) => "ok".to_owned(),
        };
        let status = self.status.as_ref().map(|status| format!("`atoll status` says: {status}\n"));
        format!("verdict: {verdict}\n{}{totals}\n", status.unwrap_or_default())
    }
}

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) color: bool,
    pub(crate) unicode: bool,
}

impl Style {
    fn mark(self, mark: Mark) -> String {
        let (unicode, ascii, color) = match mark {
            Mark::Passed => ("√", "ok  ", 32),
            Mark::Skipped => ("-", "-   ", 2),
            Mark::Warned => ("‼", "warn", 33),
            Mark::Failed => ("×", "FAIL", 31),
        };
        let text = if self.unicode { unicode } else { ascii };
        if self.color { format!("\x1b[{color}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { color: false, unicode: true };

    fn check(id: &'static str, group: Group, findings: Vec<Finding>) -> Check {
        Check::new(group, id, format!("{id} is fine"), findings)
    }

    #[test]
    fn failures_come_first_and_the_verdict_names_the_first() {
        let report = Report::of(
            vec![
                check("a", Group::Hub, Vec::new()),
                check("b", Group::Members, vec![Finding::warned(Code::ClockSkew, "9 s behind").of("paris")]),
                check(
                    "c",
                    Group::Dns,
                    vec![
                        Finding::failed(Code::DnsNotLed, "the Corefile was overwritten").of("paris"),
                        Finding::failed(Code::DnsNotLed, "the Corefile was overwritten").of("tokyo"),
                        Finding::skipped("needs: get configmaps").of("oslo"),
                    ],
                ),
            ],
            vec!["create jobs in `shop` of paris".to_owned()],
            None,
        );
        let want = "\
Hub
---
√ a is fine

Members
-------
‼ b is fine
    ‼ paris: 9 s behind (ClockSkew)
    hint: Synchronize the clock of the host that is named, with NTP.
    see docs/check.md#b

DNS
---
× c is fine
    × paris: the Corefile was overwritten (DnsNotLed)
    × tokyo: the Corefile was overwritten (DnsNotLed)
    - oslo: needs: get configmaps
    hint: Run `atoll dns setup --apply` against the cluster.
    see docs/check.md#c

needs: create jobs in `shop` of paris
verdict: failed: paris: the Corefile was overwritten (DnsNotLed)
1 passed, 1 not complete, 1 with warnings, 1 failed
";
        assert_eq!(report.text(PLAIN), want);
        assert!(!report.ok && report.causes.len() == 3, "{report:?}");
    }

    #[test]
    fn what_is_fine_says_nothing_wrong() {
        let report = Report::of(vec![check("a", Group::Hub, Vec::new())], Vec::new(), None);
        assert_eq!(
            report.text(PLAIN),
            "Hub\n---\n√ a is fine\n\nverdict: ok\n1 passed, 0 with warnings, 0 failed\n"
        );
        let ascii = Style { color: false, unicode: false };
        assert!(report.text(ascii).contains("ok   a is fine\n") && report.text(ascii).is_ascii());
        let color = Style { color: true, unicode: false };
        assert!(report.text(color).contains("\x1b[32mok  \x1b[0m a is fine"));
    }

    #[test]
    fn a_path_that_was_not_probed_is_not_said_to_work() {
        for finding in [Finding::warned(Code::ProbeFailed, "no pod"), Finding::skipped("needs: create jobs")]
        {
            let report =
                Report::of(vec![check("data-path", Group::DataPath, vec![finding])], Vec::new(), None);
            assert!(!report.ok && report.text(PLAIN).contains("\nverdict: not proven: "), "{report:?}");
        }
        let report =
            Report::of(vec![check("a", Group::Dns, vec![Finding::skipped("not set up")])], Vec::new(), None);
        assert!(report.ok, "a choice is no failure: {report:?}");
        assert!(
            report
                .text(PLAIN)
                .ends_with("verdict: ok\n0 passed, 1 not complete, 0 with warnings, 0 failed\n")
        );
    }

    #[test]
    fn what_the_status_says_is_wrong_is_said_beside_the_verdict() {
        let wrong = Some("PortConflict: 1 service has conflicts".to_owned());
        let report = Report::of(vec![check("a", Group::Hub, Vec::new())], Vec::new(), wrong);
        assert!(report.ok);
        assert!(report.text(PLAIN).ends_with(
            "verdict: no check failed, but something is wrong\n`atoll status` says: PortConflict: 1 service has conflicts\n1 passed, 0 with warnings, 0 failed\n"
        ));
    }
}
