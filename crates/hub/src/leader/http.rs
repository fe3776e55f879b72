//! What the hub says of itself: `/healthz`, `/readyz`, `/metrics`.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::leader::metrics::Metrics;

/// How far the hub has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    Starting,
    /// The lease can be neither read nor taken: who leads is not known.
    Blind,
    /// Another replica leads: ready to take over.
    Standby,
    /// Leading, but who is a member has not been listed.
    Leading,
    Ready,
    Stopping,
}

/// What the pages show.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) metrics: Metrics,
    stage: AtomicU8,
}

impl Pages {
    /// With what an audit log counts.
    pub(crate) fn auditing(audit: Option<&atoll_audit::Log>) -> Self {
        Self { metrics: Metrics::new(audit), ..Self::default() }
    }

    pub(crate) fn enter(&self, stage: Stage) {
        self.metrics.leads(matches!(stage, Stage::Leading | Stage::Ready));
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    fn stage(&self) -> Stage {
        let stages =
            [Stage::Starting, Stage::Blind, Stage::Standby, Stage::Leading, Stage::Ready, Stage::Stopping];
        stages[usize::from(self.stage.load(Ordering::Relaxed))]
    }
}

impl atoll_monitoring::Pages for Pages {
    fn ready(&self) -> Result<String, String> {
        match self.stage() {
            Stage::Ready => Ok("ok: leading".to_owned()),
            Stage::Standby => Ok("ok: standby".to_owned()),
            Stage::Starting => Err("starting".to_owned()),
            Stage::Blind => Err("cannot read or acquire the lease".to_owned()),
            Stage::Leading => Err("listing the members".to_owned()),
            Stage::Stopping => Err("stopping".to_owned()),
        }
    }

    fn metrics(&self) -> String {
        self.metrics.page()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_monitoring::Pages as _;

    #[test]
    fn a_hub_is_ready_when_it_leads_with_all_members_listed_or_stands_by() {
        let pages = Pages::default();
        for (stage, want) in [
            (Stage::Starting, false),
            (Stage::Blind, false),
            (Stage::Standby, true),
            (Stage::Leading, false),
            (Stage::Ready, true),
            (Stage::Stopping, false),
        ] {
            pages.enter(stage);
            assert_eq!(pages.ready().is_ok(), want, "{stage:?}");
        }
    }

    #[test]
    fn times_are_counted_in_milliseconds_from_one_up() {
        let pages = Pages::default();
        let cluster = |name| atoll_engine::names::ClusterId::parse(name).unwrap();
        pages.metrics.propagated(&crate::services::brain::Propagation {
            source: cluster("paris"),
            target: cluster("tokyo"),
            took: std::time::Duration::from_micros(1500),
        });
        let page = atoll_monitoring::Pages::metrics(&pages);
        for (bound, count) in [("1.0", 0), ("2.0", 1)] {
            let labels = format!(r#"le="{bound}",source="paris",target="tokyo""#);
            let line = format!("atoll_propagation_milliseconds_bucket{{{labels}}} {count}");
            assert!(page.contains(&line), "{line} in {page}");
        }
    }
}
