//! How long tests took: all of it in a file, the slowest on the screen.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many tests the table on the screen has.
const SHOWN: usize = 15;

/// The times of one run's tests.
#[derive(Debug, Default)]
pub struct Times(Mutex<Vec<(String, Duration)>>);

impl Times {
    /// Runs `test` and keeps how long it took, also if it panics.
    pub fn of<T>(&self, name: &str, test: impl FnOnce() -> T) -> T {
        let _running = Running { times: self, name, since: Instant::now() };
        test()
    }

    /// Writes all times to `folder/<title>.tsv` and prints the slowest. A run that took no time says nothing.
    pub fn report(&self, title: &str, folder: &Path) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        slowest_first(&mut all);
        if all.is_empty() {
            return;
        }
        println!("{}", table(title, &all));
        let file = folder.join(format!("{title}.tsv"));
        let kept = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, lines(&all)));
        if let Err(error) = kept {
            println!("{title}: could not write {}: {error}", file.display());
        }
    }
}

struct Running<'a> {
    times: &'a Times,
    name: &'a str,
    since: Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let took = (self.name.to_owned(), self.since.elapsed());
        self.times.0.lock().unwrap_or_else(PoisonError::into_inner).push(took);
    }
}

fn slowest_first(all: &mut [(String, Duration)]) {
    all.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
}

fn table(title: &str, all: &[(String, Duration)]) -> String {
    let together: Duration = all.iter().map(|(_, took)| took).sum();
    let mut text =
        format!("{title}: the slowest of {} tests, {:.0} s together", all.len(), together.as_secs_f64());
    for (name, took) in all.iter().take(SHOWN) {
        let _ = write!(text, "\n{:>8.1} s  {name}", took.as_secs_f64());
    }
    text
}

fn lines(all: &[(String, Duration)]) -> String {
    all.iter().map(|(name, took)| format!("{:.3}\t{name}\n", took.as_secs_f64())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(name: &str, milliseconds: u64) -> (String, Duration) {
        (name.to_owned(), Duration::from_millis(milliseconds))
    }

    #[test]
    fn the_slowest_stand_first() {
        let mut all = vec![took("quick", 20), took("slow", 61_500), took("also_slow", 61_500)];
        slowest_first(&mut all);
        let want = "lab: the slowest of 3 tests, 123 s together\n    61.5 s  also_slow\n    61.5 s  slow\n     0.0 s  quick";
        assert_eq!(table("lab", &all), want);
        assert_eq!(lines(&all), "61.500\talso_slow\n61.500\tslow\n0.020\tquick\n");
    }

    #[test]
    fn the_table_is_short() {
        let all: Vec<_> = (0..100).map(|number| took(&number.to_string(), number)).collect();
        assert_eq!(table("lab", &all).lines().count(), 1 + SHOWN);
    }

    #[test]
    fn a_test_that_panics_has_a_time_too() {
        let times = Times::default();
        let panics = std::panic::AssertUnwindSafe(|| times.of("breaks", || panic!("on purpose")));
        assert!(std::panic::catch_unwind(panics).is_err());
        assert_eq!(times.0.lock().unwrap().len(), 1);
    }
}
