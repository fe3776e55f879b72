//! Numbers of the protocol, by name.

/// Record types.
pub mod rtype {
    /// An IPv4 address.
    pub const A: u16 = 1;
    /// The zone's servers.
    pub const NS: u16 = 2;
    /// The zone's own record.
    pub const SOA: u16 = 6;
    /// A name for an address.
    pub const PTR: u16 = 12;
    /// Answers `ANY` with one small record (RFC 8482).
    pub const HINFO: u16 = 13;
    /// Text.
    pub const TXT: u16 = 16;
    /// An IPv6 address.
    pub const AAAA: u16 = 28;
    /// A host and a port.
    pub const SRV: u16 = 33;
    /// EDNS: not a record at all.
    pub const OPT: u16 = 41;
    /// Changes of a zone.
    pub const IXFR: u16 = 251;
    /// A whole zone.
    pub const AXFR: u16 = 252;
    /// Whatever there is.
    pub const ANY: u16 = 255;
}

/// Response codes, the extended one included.
pub mod rcode {
    /// Answered, perhaps with nothing.
    pub const NO_ERROR: u16 = 0;
    /// The packet could not be read.
    pub const FORMAT_ERROR: u16 = 1;
    /// We can't answer now.
    pub const SERVER_FAILURE: u16 = 2;
    /// No such name.
    pub const NX_DOMAIN: u16 = 3;
    /// Not a kind of request that we know.
    pub const NOT_IMPLEMENTED: u16 = 4;
    /// We don't want to answer this.
    pub const REFUSED: u16 = 5;
    /// EDNS of a version that we don't know.
    pub const BAD_VERSION: u16 = 16;
}

/// The class of the Internet.
pub const IN: u16 = 1;

/// Header, of every packet.
pub const HEADER: usize = 12;

/// Bits of the header's second word.
pub(crate) mod flag {
    pub(crate) const RESPONSE: u16 = 1 << 15;
    pub(crate) const OPCODE: u16 = 0xf << 11;
    pub(crate) const AUTHORITATIVE: u16 = 1 << 10;
    pub(crate) const TRUNCATED: u16 = 1 << 9;
    pub(crate) const RECURSION_DESIRED: u16 = 1 << 8;
    pub(crate) const CHECKING_DISABLED: u16 = 1 << 4;
}
