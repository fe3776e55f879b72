//! The ways in which each is loaded.

use clap::ValueEnum;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Case {
    /// A new connection for every request.
    Connections,
    /// Requests on connections that stay.
    Requests,
    /// One stream of bytes.
    Stream,
    /// Many streams at once.
    Streams,
    /// How long a request on a connection that stays takes, at a fixed rate.
    RequestLatency,
    /// How long a whole connection takes, at a fixed rate.
    ConnectionLatency,
}

impl Case {
    pub(super) const ALL: [Self; 6] = [
        Self::Connections,
        Self::Requests,
        Self::Stream,
        Self::Streams,
        Self::RequestLatency,
        Self::ConnectionLatency,
    ];

    pub(super) fn is_paced(self) -> bool {
        matches!(self, Self::RequestLatency | Self::ConnectionLatency)
    }

    /// How many clients at once, of the number that was asked for.
    pub(super) fn clients(self, many: usize) -> usize {
        match self {
            Self::Stream => 1,
            _ => many,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Requests => "requests",
            Self::Stream => "stream",
            Self::Streams => "streams",
            Self::RequestLatency => "request-latency",
            Self::ConnectionLatency => "connection-latency",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_called_what_the_command_line_calls_it() {
        for case in Case::ALL {
            assert_eq!(Case::from_str(case.name(), false), Ok(case));
        }
    }
}
