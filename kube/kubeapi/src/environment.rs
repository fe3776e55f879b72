//! The two things that the server takes from outside: the time and randomness. A test brings its own.

use jiff::Timestamp;
use std::sync::Arc;

/// A clock and a source of randomness.
pub trait Environment: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Timestamp;
    /// Sixty-four bits that can't be foreseen.
    fn random(&self) -> u64;
}

/// The machine's clock and its randomness.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEnvironment;

impl Environment for SystemEnvironment {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        if aws_lc_rs::rand::fill(&mut bytes).is_err() {
            // Names and uids would repeat: there is no way to go on.
            std::process::abort();
        }
        u64::from_le_bytes(bytes)
    }
}

/// What is made out of an environment.
#[derive(Clone)]
pub(crate) struct SharedEnvironment(Arc<dyn Environment>);

/// The letters of generated names: no vowels, nothing that looks like something else.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl SharedEnvironment {
    pub(crate) fn new(environment: impl Environment) -> Self {
        Self(Arc::new(environment))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.0.now()
    }

    /// The time in whole seconds, as objects carry it.
    pub(crate) fn stamp(&self) -> String {
        seconds(self.0.now())
    }

    /// A random (version 4) UUID.
    pub(crate) fn uid(&self) -> String {
        let random = (u128::from(self.0.random()) << 64) | u128::from(self.0.random());
        uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid().to_string()
    }

    /// Five letters for the end of a generated name.
    pub(crate) fn suffix(&self) -> String {
        let mut random = self.0.random();
        let mut letter = || {
            let index = random % LETTERS.len() as u64;
            random /= LETTERS.len() as u64;
            char::from(LETTERS.get(usize::try_from(index).unwrap_or(0)).copied().unwrap_or(b'x'))
        };
        (0..5).map(|_| letter()).collect()
    }

    /// A number below `bound`.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.0.random() % bound.max(1)
    }
}

/// A time in whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    let whole = Timestamp::from_second(time.as_second()).unwrap_or(time);
    format!("{whole:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;
    impl Environment for Fixed {
        fn now(&self) -> Timestamp {
            "2026-01-02T03:04:05.678Z".parse().unwrap()
        }
        fn random(&self) -> u64 {
            0xffff_ffff_ffff_ffff
        }
    }

    #[test]
    fn times_have_no_fractions_and_uids_have_their_version() {
        let shared = SharedEnvironment::new(Fixed);
        assert_eq!(shared.stamp(), "2026-01-02T03:04:05Z");
        assert_eq!(shared.uid(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert_eq!(shared.suffix().len(), 5);
    }
}
