//! Whose an address is, as text. Pure.

use std::fmt::Write;

use atoll_api::explain::AddressExplanation;
use atoll_api::names::code::Severity;

use crate::output;
use crate::paint::Paint;

pub(super) fn text(answer: &AddressExplanation, paint: Paint) -> String {
    let verdict = &answer.verdict;
    let mut out = String::new();
    let name = paint.strong(&answer.header.metadata.name);
    let _ = writeln!(
        out,
        "{} {name}: {}: {}",
        paint.mark(verdict.severity),
        verdict.code.as_str(),
        verdict.message
    );
    if let Some(next) = verdict.next.as_ref().filter(|_| verdict.severity > Severity::Info) {
        let _ = writeln!(out, "    next: {next}");
    }
    if !answer.ranges.is_empty() {
        let rows = answer.ranges.iter().map(|one| {
            let cluster = one.cluster.clone().unwrap_or_else(|| "-".to_owned());
            vec![one.range.clone(), cluster, one.used_for.clone(), one.known.clone()]
        });
        out.push_str(&indented(&output::table(
            &["RANGE", "CLUSTER", "USED FOR", "KNOWN"],
            &rows.collect::<Vec<_>>(),
        )));
    }
    if !answer.endpoints.is_empty() {
        let rows = answer.endpoints.iter().map(|one| {
            let ready = if one.ready { "yes" } else { "no" };
            vec![one.service.clone(), one.cluster.clone(), one.slice.clone(), ready.to_owned()]
        });
        let header = ["SERVICE", "CLUSTER", "ENDPOINTSLICE", "READY"];
        out.push_str(&indented(&output::table(&header, &rows.collect::<Vec<_>>())));
    }
    if answer.more {
        out.push_str("  … and more\n");
    }
    if let Some(first) = answer.endpoints.first() {
        let _ = writeln!(
            out,
            "  see also: {} explain {} --from {}",
            crate::plugin::name(),
            first.service,
            first.cluster
        );
    }
    out
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_api::explain::{EndpointOf, Header, RangeOf, Remark};
    use atoll_api::names::code::Code;

    #[test]
    fn an_address_is_told_with_its_ranges_and_endpoints() {
        let answer = AddressExplanation {
            header: Header::new("AddressExplanation", None, "10.12.0.7"),
            verdict: Remark::of(Code::EndpointAddress),
            ranges: vec![RangeOf {
                range: "10.12.0.0/16".to_owned(),
                cluster: Some("paris".to_owned()),
                used_for: "pods".to_owned(),
                known: "declared".to_owned(),
            }],
            endpoints: vec![EndpointOf {
                service: "shop/web".to_owned(),
                cluster: "paris".to_owned(),
                slice: "web-abc".to_owned(),
                ready: true,
            }],
            more: false,
        };
        let want = "\
✓ 10.12.0.7: EndpointAddress: The address is that of an endpoint.
  RANGE          CLUSTER   USED FOR   KNOWN
  10.12.0.0/16   paris     pods       declared
  SERVICE    CLUSTER   ENDPOINTSLICE   READY
  shop/web   paris     web-abc         yes
  see also: atoll explain shop/web --from paris
";
        assert_eq!(text(&answer, Paint::default()), want);
        let unknown = AddressExplanation {
            verdict: Remark::of(Code::NotKnown),
            ranges: Vec::new(),
            endpoints: Vec::new(),
            ..answer
        };
        let got = text(&unknown, Paint::default());
        assert!(got.starts_with("! 10.12.0.7: NotKnown: ") && got.contains("\n    next: "), "{got}");
    }
}
