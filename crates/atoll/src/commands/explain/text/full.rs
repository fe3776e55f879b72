//! All of a cluster: each reason, and each endpoint that could be used.

use atoll_api::explain::{ClusterPart, Import, Source};
use atoll_api::names::kind::networking::MULTI_CLUSTER_SERVICE;

use super::{Text, endpoints, severity, words};
use crate::output;

impl Text {
    pub(super) fn cluster(&mut self, part: &ClusterPart) {
        self.line(&format!("{} {}", self.paint.mark(severity(part)), self.paint.strong(&part.cluster)));
        part.member.iter().for_each(|remark| self.remark(remark, "  "));
        if let Some(export) = &part.export {
            let valid = if export.valid { "valid" } else { "not valid" };
            let place = export.precedence.map(|place| format!(", precedence {place}")).unwrap_or_default();
            self.line(&format!("  export: {valid}{place}, {}", endpoints(export.endpoints)));
            export.remarks.iter().for_each(|remark| self.remark(remark, "    "));
        }
        self.import("import", &part.import);
        if let Some(dispatch) = &part.dispatch {
            self.import(MULTI_CLUSTER_SERVICE, dispatch);
        }
    }

    fn import(&mut self, label: &str, import: &Import) {
        let present = if import.present { endpoints(import.endpoints) } else { "none".to_owned() };
        let service = import.service.as_ref().map(|name| format!(", Service {name}")).unwrap_or_default();
        self.line(&format!("  {label}: {present}{service}"));
        import.remarks.iter().for_each(|remark| self.remark(remark, "    "));
        import.sources.iter().for_each(|source| self.source(source));
    }

    fn source(&mut self, source: &Source) {
        let used = source.candidates.iter().filter(|one| one.used).count();
        let of = source.candidates.len();
        let counted = if of == 0 { String::new() } else { format!(": {used} of {of} used") };
        self.line(&format!("    from {}{counted}", source.cluster));
        source.remarks.iter().for_each(|remark| self.remark(remark, "      "));
        let rows: Vec<Vec<String>> = source
            .candidates
            .iter()
            .map(|one| {
                let detail = one.detail.as_ref().map(|detail| format!(" [{detail}]")).unwrap_or_default();
                let used = if one.used { "used" } else { "not used" };
                vec![
                    one.address.clone(),
                    one.slice.clone(),
                    used.to_owned(),
                    format!("{}{detail}", words(&one.remark)),
                ]
            })
            .collect();
        let table = output::columns(&rows, &mut Vec::new());
        for (line, one) in table.lines().zip(&source.candidates) {
            self.line(&format!("      {} {line}", self.paint.mark(one.remark.severity)));
            if !one.used && self.said.insert((one.remark.code, one.remark.message.clone())) {
                self.next(&one.remark, "        ");
            }
        }
    }
}
