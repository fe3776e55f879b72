//! The report as a table for people: no colour, the same in a pipe.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result};

use super::{Ending, Report, Restart};
use crate::options::{Path, Who};
use crate::stats::{Ratio, Summary};
use crate::usage::Usage;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let by = match self.path {
            Path::Export => "",
            Path::Mcs => " by MultiClusterService",
        };
        writeln!(f, "From {} to {}{by}, milliseconds", self.source, self.importers.join(", "))?;
        writeln!(f)?;
        writeln!(
            f,
            "{:<22} {:>17}   {:>17}   {:>17}   {:>19}",
            "", "ours", "floor", "copier", "ours / floor"
        )?;
        heads(f, Who::ALL.len())?;
        for row in &self.rows {
            times(f, &row.title(), &Who::ALL, &row.times, row.ratio)?;
        }
        restarts(&self.restarts, f)?;
        hub(f, self.rows.iter().map(|row| (row.title(), row.hub)))?;
        self.requests(f)?;
        self.asked(f)?;
        if let Some(why) = &self.unfinished {
            writeln!(f, "\nUNFINISHED: {why}")?;
        }
        Ok(())
    }
}

/// What stands over the times of `subjects`, and over their ratio.
pub(crate) fn heads(f: &mut Formatter<'_>, subjects: usize) -> Result {
    write!(f, "{:<22}", "scenario")?;
    for _ in 0..subjects {
        write!(f, " {:>8} {:>8}  ", "p50", "p99")?;
    }
    writeln!(f, " {:>6} {:>6} {:>6}", "p50", "p99", "paired")
}

/// One row of times.
pub(crate) fn times(
    f: &mut Formatter<'_>,
    title: &str,
    subjects: &[Who],
    times: &BTreeMap<Who, Summary>,
    ratio: Option<Ratio>,
) -> Result {
    write!(f, "{title:<22}")?;
    for who in subjects {
        match times.get(who) {
            Some(Summary { p50, p99, .. }) => write!(f, " {:>8} {:>8}  ", number(*p50), number(*p99))?,
            None => write!(f, " {:>8} {:>8}  ", "-", "-")?,
        }
    }
    match ratio {
        Some(ratio) => writeln!(f, " {:>6.2} {:>6.2} {:>6.2}", ratio.p50, ratio.p99, ratio.paired),
        None => writeln!(f, " {:>6} {:>6} {:>6}", "-", "-", "-"),
    }
}

/// The hub's memory and processor time, of rows that have them.
pub(crate) fn hub(f: &mut Formatter<'_>, rows: impl Iterator<Item = (String, Option<Usage>)>) -> Result {
    let rows: Vec<_> = rows.filter_map(|(title, hub)| Some((title, hub?))).collect();
    if !rows.is_empty() {
        let [rss, peak, cpu] = ["RSS MB", "peak MB", "CPU s"];
        writeln!(f, "\n{:<22} {rss:>8} {peak:>8} {cpu:>8}", "The hub, at the end of")?;
    }
    for (title, hub) in rows {
        writeln!(f, "{title:<22} {:>8.1} {:>8.1} {:>8.2}", hub.rss_mb, hub.peak_mb, hub.cpu_seconds)?;
    }
    Ok(())
}

/// Three digits that matter.
pub(crate) fn number(milliseconds: f64) -> String {
    if milliseconds.abs() < 100.0 { format!("{milliseconds:.2}") } else { format!("{milliseconds:.0}") }
}

fn restarts(restarts: &[Restart], f: &mut Formatter<'_>) -> Result {
    for ending in [Ending::Graceful, Ending::Kill] {
        let these: Vec<_> = restarts.iter().filter(|restart| restart.ending == ending).collect();
        let of = |part: fn(&Restart) -> f64| {
            Summary::of(&these.iter().map(|restart| part(restart)).collect::<Vec<_>>())
        };
        let (Some(start), Some(signal)) = (of(|r| r.from_start), of(|r| r.from_signal)) else { continue };
        let services = these.iter().map(|restart| restart.services).max().unwrap_or_default();
        let how = match ending {
            Ending::Graceful => "a graceful stop",
            Ending::Kill => "SIGKILL",
        };
        if ending == Ending::Graceful || restarts.iter().all(|restart| restart.ending == Ending::Kill) {
            writeln!(f, "\nFirst change after a restart with {services} services")?;
        }
        writeln!(
            f,
            "  after {how:<16} {} from the start of the new hub (longest {}), {} from the signal (longest {})",
            number(start.p50),
            number(start.max),
            number(signal.p50),
            number(signal.max),
        )?;
    }
    Ok(())
}

impl Report {
    fn asked(&self, f: &mut Formatter<'_>) -> Result {
        for row in &self.rows {
            let Some(asked) = &row.asked else { continue };
            let (p50, p99) = asked.times.map_or((0.0, 0.0), |times| (times.p50, times.p99));
            let (answered, missed, per_second) = (asked.answered, asked.missed, asked.per_second);
            let (p50, p99) = (number(p50), number(p99));
            writeln!(
                f,
                "\nAnswers during `{}`: {answered} ({per_second:.0} per second), {missed} missed; p50 {p50}, p99 {p99}",
                row.title()
            )?;
        }
        Ok(())
    }

    fn requests(&self, f: &mut Formatter<'_>) -> Result {
        if self.rows.iter().any(|row| !row.requests.is_empty()) {
            writeln!(f, "\n{:<22} {:<12} {:>10}  in all", "Requests", "cluster", "per change")?;
        }
        for row in &self.rows {
            for counted in &row.requests {
                let all: Vec<_> =
                    counted.about_services.iter().map(|(what, count)| format!("{count} {what}")).collect();
                let (title, cluster) = (row.title(), &counted.cluster);
                writeln!(f, "{title:<22} {cluster:<12} {:>10.2}  {}", counted.per_change, all.join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;
    use crate::options::Scenario;
    use crate::requests::Counted;

    fn report() -> Report {
        let series = |ours: &[f64], floor: &[f64], copier: &[f64]| {
            BTreeMap::from([
                (Who::Ours, ours.to_vec()),
                (Who::Floor, floor.to_vec()),
                (Who::Copier, copier.to_vec()),
            ])
        };
        let mut idle =
            Row::new(Scenario::Idle, 8, series(&[3.0, 4.5, 6.0], &[2.5, 3.0, 5.0], &[2.0, 2.1, 2.2]));
        idle.hub = Some(Usage { rss_mb: 31.25, peak_mb: 40.0, cpu_seconds: 1.5 });
        idle.requests = vec![Counted {
            cluster: "member2".to_owned(),
            per_change: 1.0,
            about_services: BTreeMap::from([("update endpointslices".to_owned(), 3)]),
            elsewhere: BTreeMap::new(),
        }];
        let floor_only = Row::new(Scenario::Burst, 200, BTreeMap::from([(Who::Floor, vec![412.0, 398.0])]));
        let restart = |ending, from_start| Restart {
            ending,
            services: 200,
            from_start,
            from_signal: from_start + 50.0,
        };
        Report {
            path: Path::Export,
            source: "member1".to_owned(),
            importers: vec!["member2".to_owned()],
            rows: vec![idle, floor_only],
            restarts: vec![
                restart(Ending::Graceful, 700.0),
                restart(Ending::Graceful, 900.0),
                restart(Ending::Kill, 800.0),
            ],
            unfinished: None,
        }
    }

    #[test]
    fn a_person_reads_a_table() {
        let want = "\
From member1 to member2, milliseconds

                                    ours               floor              copier          ours / floor
scenario                    p50      p99        p50      p99        p50      p99      p50    p99 paired
change, idle               4.50     6.00       3.00     5.00       2.10     2.20     1.50   1.20   1.20
burst of 200                  -        -        398      412          -        -        -      -      -

First change after a restart with 200 services
  after a graceful stop  700 from the start of the new hub (longest 900), 750 from the signal (longest 950)
  after SIGKILL          800 from the start of the new hub (longest 800), 850 from the signal (longest 850)

The hub, at the end of   RSS MB  peak MB    CPU s
change, idle               31.2     40.0     1.50

Requests               cluster      per change  in all
change, idle           member2            1.00  3 update endpointslices
";
        assert_eq!(report().to_string(), want);
    }

    #[test]
    fn the_heading_says_what_made_services_cross() {
        let text = Report { path: Path::Mcs, ..report() }.to_string();
        assert!(text.starts_with("From member1 to member2 by MultiClusterService, milliseconds\n"), "{text}");
    }

    #[test]
    fn a_run_that_broke_off_says_so_last() {
        let text = Report { unfinished: Some("the hub is gone".to_owned()), ..report() }.to_string();
        assert!(text.ends_with("\nUNFINISHED: the hub is gone\n"), "{text}");
    }

    #[test]
    fn a_program_reads_it_back() {
        let text = serde_json::to_string(&report()).unwrap();
        assert!(text.contains(r#""ours":[3.0,4.5,6.0]"#) && text.contains(r#""fromSignal":750.0"#), "{text}");
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report());
    }
}
