//! What was measured: a value for programs, and a table of it for people.

use atoll_bench::stats::Summary;
use serde::Serialize;
use std::fmt;

/// What was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) options: Options,
    pub(super) goals: Goals,
    pub(super) inputs: Vec<Row>,
}

/// How it was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Options {
    pub(super) seconds: u64,
    pub(super) clients: usize,
    pub(super) stalled: usize,
}

/// What it should be at most.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Goals {
    /// The 99th percentile beside the attack, in times of that beside cheap requests.
    pub(super) ratio: f64,
    /// How much more memory the hub takes.
    pub(super) growth_mib: f64,
}

impl Default for Goals {
    fn default() -> Self {
        Self { ratio: 3.0, growth_mib: 50.0 }
    }
}

/// What one measurement found. Milliseconds throughout.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) healthz: Option<Summary>,
    pub(super) get: Option<Summary>,
    pub(super) update: Option<Summary>,
    pub(super) growth_mib: f64,
    pub(super) answers: Answers,
}

/// How hostile requests were answered.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answers {
    pub(super) done: usize,
    pub(super) refused: usize,
    /// With a 429.
    pub(super) held_off: usize,
    /// With a 500, or not at all.
    pub(super) broken: usize,
}

/// One kind of input.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    input: String,
    healthz: Compared,
    get: Compared,
    update: Compared,
    growth_mib: f64,
    cheap_answers: Answers,
    answers: Answers,
}

/// The same request beside cheap ones and beside the attack.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Compared {
    calm: Option<Summary>,
    attacked: Option<Summary>,
    ratio: Option<f64>,
}

impl Compared {
    fn new(calm: Option<Summary>, attacked: Option<Summary>) -> Self {
        let ratio = calm
            .zip(attacked)
            .filter(|(calm, _)| calm.p99 > 0.0)
            .map(|(calm, attacked)| attacked.p99 / calm.p99);
        Self { calm, attacked, ratio }
    }

    fn is_met(&self, goals: Goals) -> bool {
        self.ratio.is_some_and(|ratio| ratio <= goals.ratio)
    }
}

impl Row {
    pub(super) fn new(input: String, calm: &Measured, attacked: &Measured) -> Self {
        Self {
            input,
            healthz: Compared::new(calm.healthz, attacked.healthz),
            get: Compared::new(calm.get, attacked.get),
            update: Compared::new(calm.update, attacked.update),
            growth_mib: attacked.growth_mib,
            cheap_answers: calm.answers,
            answers: attacked.answers,
        }
    }

    fn is_met(&self, goals: Goals) -> bool {
        [self.healthz, self.get, self.update].iter().all(|one| one.is_met(goals))
            && self.growth_mib <= goals.growth_mib
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { seconds, clients, stalled } = self.options;
        writeln!(
            out,
            "p99 beside {clients} requests at a time and {stalled} stalled connections, in times of that beside as many cheap \
             ones; {seconds} s each"
        )?;
        let titles = ["healthz", "get", "update"];
        writeln!(
            out,
            "{:<16} {:>20} {:>20} {:>20} {:>11}  goals",
            "", titles[0], titles[1], titles[2], "memory"
        )?;
        for row in &self.inputs {
            write!(out, "{:<16}", row.input)?;
            for compared in [row.healthz, row.get, row.update] {
                match (compared.attacked, compared.ratio) {
                    (Some(attacked), Some(ratio)) => write!(out, " {:>10.2} ms {ratio:>5.1}×", attacked.p99)?,
                    _ => write!(out, " {:>20}", "-")?,
                }
            }
            let met = if row.is_met(self.goals) { "met" } else { "missed" };
            writeln!(out, " {:>+7.1} MiB  {met}", row.growth_mib)?;
        }
        let Goals { ratio, growth_mib } = self.goals;
        writeln!(out, "goals: at most {ratio:.0} times, and {growth_mib:.0} MiB more memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(milliseconds: f64, growth_mib: f64) -> Measured {
        let times = Summary::of(&[milliseconds]);
        let answers = Answers { done: 1, refused: 0, held_off: 0, broken: 0 };
        Measured { healthz: times, get: times, update: times, growth_mib, answers }
    }

    #[test]
    fn a_goal_is_met_or_missed() {
        let goals = Goals::default();
        let row = |attacked| Row::new("lists".to_owned(), &measured(2.0, 0.0), &attacked);
        assert!(row(measured(5.0, 10.0)).is_met(goals));
        assert!(!row(measured(7.0, 10.0)).is_met(goals));
        assert!(!row(measured(2.0, 60.0)).is_met(goals));
        let options = Options { seconds: 1, clients: 2, stalled: 3 };
        let report = Report { options, goals, inputs: vec![row(measured(5.0, 10.0))] };
        let text = report.to_string();
        assert!(text.contains("lists") && text.contains("2.5×") && text.contains("met"), "{text}");
        assert_eq!(serde_json::to_value(&report).unwrap()["inputs"][0]["healthz"]["ratio"], 2.5);
    }
}
