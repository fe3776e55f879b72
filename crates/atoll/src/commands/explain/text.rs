//! An explanation as text: the verdict first, then a line per cluster. Pure.

mod full;

use std::collections::BTreeSet;
use std::fmt::Write;

use atoll_api::explain::{
    ClusterPart, CrossCluster, Endpoints, Export, Import, Remark, ServiceExplanation, Template,
};
use atoll_api::names::code::{Code, Severity};
use atoll_api::names::kind::networking::MULTI_CLUSTER_SERVICE;

use super::narrow::remarks;
use crate::output;
use crate::paint::Paint;

/// How many clusters a screen has room for.
const CLUSTERS: usize = 20;

/// How it is shown.
#[derive(Clone, Copy)]
pub(super) struct How<'a> {
    /// Each reason, and each endpoint.
    pub(super) full: bool,
    pub(super) paint: Paint,
    /// Which hub says so.
    pub(super) hub: &'a str,
}

/// The whole text.
pub(super) fn text(answer: &ServiceExplanation, how: How<'_>) -> String {
    let mut out = Text { text: String::new(), paint: how.paint, said: BTreeSet::new() };
    let metadata = &answer.header.metadata;
    let name = format!("{}/{}", metadata.namespace.as_deref().unwrap_or_default(), metadata.name);
    let verdict = &answer.verdict;
    let paint = how.paint;
    out.line(&format!("{} {}: {}", paint.mark(verdict.severity), paint.strong(&name), words(verdict)));
    out.next(verdict, "    ");
    out.said.insert((verdict.code, verdict.message.clone()));
    for pending in &answer.pending {
        out.remark(pending, "  ");
    }
    for conflict in &answer.conflicts {
        out.remark(conflict, "  ");
    }
    out.facts(answer, how.hub);
    if how.full {
        answer.clusters.iter().for_each(|part| out.cluster(part));
    } else {
        out.clusters(&answer.clusters);
    }
    if let Some(service) = &answer.multi_cluster_service {
        out.multi_cluster_service(service);
    }
    if let Some(template) = &answer.template {
        out.template(template, how.full);
    }
    out.text
}

/// A code and its words.
fn words(remark: &Remark) -> String {
    let since = remark.since.as_ref().map(|since| format!(" (since {since})")).unwrap_or_default();
    format!("{}: {}{since}", remark.code.as_str(), remark.message.trim_end())
}

struct Text {
    text: String,
    paint: Paint,
    /// What has been said with its next step: once is enough.
    said: BTreeSet<(Code, String)>,
}

impl Text {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "{}", line.trim_end());
    }

    /// What to do about a reason.
    fn next(&mut self, remark: &Remark, indent: &str) {
        let next = remark.next.as_deref().filter(|_| remark.severity > Severity::Info);
        if let Some(next) = next {
            self.line(&format!("{indent}next: {next}"));
        }
    }

    /// A reason with its mark and its next step; the next step only once.
    fn remark(&mut self, remark: &Remark, indent: &str) {
        let mark = self.paint.mark(remark.severity);
        self.line(&format!("{indent}{mark} {}", words(remark)));
        if self.said.insert((remark.code, remark.message.clone())) {
            self.next(remark, &format!("{indent}    "));
        }
    }

    fn facts(&mut self, answer: &ServiceExplanation, hub: &str) {
        let ports = answer.ports.iter().map(|port| {
            let name = if port.name.is_empty() { String::new() } else { format!("{} ", port.name) };
            format!("{name}{}/{}", port.port, port.protocol)
        });
        let ports = ports.collect::<Vec<_>>().join(", ");
        let kind = answer.kind.clone().unwrap_or_default();
        let is = [kind, ports].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let names = answer.names.join(", ");
        let set = format!("{} at {}, hub {hub}", answer.clusterset, answer.at);
        for (label, value) in [("service", is), ("names", names), ("clusterset", set)] {
            if !value.is_empty() {
                self.line(&self.paint.faint(&format!("  {label:<10}  {value}")));
            }
        }
    }

    /// A line per cluster, those with trouble first; and the trouble below it.
    fn clusters(&mut self, all: &[ClusterPart]) {
        let mut parts: Vec<(&ClusterPart, Severity)> =
            all.iter().map(|part| (part, severity(part))).collect();
        let all_fit = parts.len() <= CLUSTERS;
        if !all_fit {
            parts.sort_by_key(|(_, severity)| std::cmp::Reverse(*severity)); // stable: by name within
            parts.truncate(CLUSTERS);
        }
        let header = ["CLUSTER", "EXPORT", "IMPORT"].map(str::to_owned).to_vec();
        let rows = parts.iter().map(|(part, _)| {
            let dispatch =
                part.dispatch.as_ref().map(|one| format!("; MultiClusterService: {}", import(one)));
            let import = format!("{}{}", import(&part.import), dispatch.unwrap_or_default());
            vec![part.cluster.clone(), part.export.as_ref().map_or_else(|| "-".to_owned(), export), import]
        });
        let rows: Vec<Vec<String>> = std::iter::once(header).chain(rows).collect();
        let table = output::columns(&rows, &mut Vec::new());
        let mut lines = table.lines();
        if let Some(header) = lines.next() {
            self.line(&format!("  {header}"));
        }
        for (line, (part, severity)) in lines.zip(&parts) {
            self.line(&format!("{} {line}", self.paint.mark(*severity)));
            self.troubles(part);
        }
        if !all_fit {
            self.line(&format!("  … and {} more clusters; --all shows them", all.len() - parts.len()));
        }
    }

    /// What is wrong in a cluster; each reason once.
    fn troubles(&mut self, part: &ClusterPart) {
        let mut told = BTreeSet::new();
        let whole = remarks(part).map(|remark| (remark, String::new()));
        let endpoints = imports(part).flat_map(|import| &import.sources).flat_map(|source| {
            let of = format!(" (endpoint of {})", source.cluster);
            source
                .candidates
                .iter()
                .filter(|one| !one.used)
                .map(move |one| (&one.remark, format!(" {}{of}", one.address)))
        });
        for (remark, of) in whole.chain(endpoints) {
            if remark.severity == Severity::Info || !told.insert((remark.code, remark.message.clone())) {
                continue;
            }
            self.line(&format!("    {}{of}", words(remark)));
            if self.said.insert((remark.code, remark.message.clone())) {
                self.next(remark, "    ");
            }
        }
    }

    fn multi_cluster_service(&mut self, service: &CrossCluster) {
        let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        self.line(&self.paint.strong(MULTI_CLUSTER_SERVICE));
        self.line(&format!("  providers   {}", list(&service.providers)));
        self.line(&format!("  consumers   {}", list(&service.consumers)));
        for (address, cluster) in &service.backends {
            self.line(&format!("  backend     {address} in {cluster}"));
        }
        service.remarks.iter().for_each(|remark| self.remark(remark, "  "));
    }

    fn template(&mut self, template: &Template, full: bool) {
        self.line(&self.paint.strong(&template.object));
        template.remarks.iter().for_each(|remark| self.remark(remark, "  "));
        for policy in
            template.policies.iter().filter(|one| full || one.counts || one.remark.severity > Severity::Info)
        {
            let mark = self.paint.mark(policy.remark.severity);
            self.line(&format!("  {mark} {}: {}", policy.policy, words(&policy.remark)));
            self.next(&policy.remark, "      ");
        }
        for place in &template.placements {
            let worst = atoll_api::explain::worst(&place.remarks);
            let trouble = worst.is_some_and(|worst| worst.severity > Severity::Info);
            if !(full || place.chosen || trouble) {
                continue;
            }
            let replicas = place.replicas.map(|number| format!(", {number} replicas")).unwrap_or_default();
            let chosen = if place.chosen { "chosen" } else { "not chosen" };
            self.line(&format!("  {}: {chosen}{replicas}", place.cluster));
            for remark in place.remarks.iter().filter(|one| full || one.severity > Severity::Info) {
                self.remark(remark, "    ");
            }
        }
    }
}

/// How bad it is in a cluster.
fn severity(part: &ClusterPart) -> Severity {
    remarks(part).map(|remark| remark.severity).max().unwrap_or(Severity::Info)
}

fn imports(part: &ClusterPart) -> impl Iterator<Item = &Import> {
    std::iter::once(&part.import).chain(&part.dispatch)
}

fn export(export: &Export) -> String {
    let valid = if export.valid { "exported" } else { "not valid" };
    format!("{valid}, {}", endpoints(export.endpoints))
}

fn import(import: &Import) -> String {
    match (import.present, &import.service) {
        (false, _) => match import.remarks.first() {
            Some(remark) => format!("not imported ({})", remark.code.as_str()),
            None => "-".to_owned(),
        },
        (true, _) => endpoints(import.endpoints),
    }
}

fn endpoints(count: Endpoints) -> String {
    let Endpoints { ready, not_ready, refused } = count;
    let mut text = format!("{ready} ready");
    for (number, word) in [(not_ready, "not ready"), (refused, "refused")] {
        if number > 0 {
            let _ = write!(text, ", {number} {word}");
        }
    }
    text
}

#[cfg(test)]
pub(super) mod tests;
