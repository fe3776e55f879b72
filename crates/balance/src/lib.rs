//! Which backend gets the next connection, and why.
//!
//! ```text
//!   backends, shares of clusters ──┐
//!   checks, connections that failed ─┴▶ pool ─▶ picture: who is picked from, on which level ─▶ pick, least
//! ```
//!
//! Pure: no socket, no randomness, and time is an argument. A [`Pool`] takes events and makes a [`Picture`] of those that may be picked
//! now; a picture never changes, so that threads share it without a lock. [`Level`] says how far down the ladder it had to go.
//!
//! ```
//! use atoll_balance::{Backend, Pool, Settings, flow};
//! use std::time::Duration;
//!
//! let mut pool = Pool::default();
//! let backend = |address: &str| Backend::new(address.parse().unwrap(), "paris");
//! pool.configure(Settings::default(), vec![backend("10.1.0.4:80"), backend("10.1.0.5:80")], Duration::ZERO);
//!
//! let picture = pool.picture();
//! let client = flow(0, "192.0.2.7:40000".parse().unwrap());
//! let picked = picture.pick(client, &[]).unwrap();
//! let other = picture.pick(client, &[picked]).unwrap();
//! assert_ne!(picked, other);
//! ```

mod affinity;
mod backend;
mod hash;
mod health;
mod maglev;
mod outlier;
mod picture;
mod pool;
mod shares;

pub use affinity::Affinity;
pub use backend::{Algorithm, Backend, ClusterShare, Settings};
pub use hash::{client, flow};
pub use health::{Checks, Verdict};
pub use maglev::Maglev;
pub use outlier::Ejection;
pub use picture::{Candidate, Level, Picture};
pub use pool::{Gone, Pool, Standing};

/// Time since some start that is the same for all events.
pub type Time = std::time::Duration;
