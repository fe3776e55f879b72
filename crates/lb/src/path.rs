//! Who carries connections: the kernel or this process.

/// Who carries connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataPath {
    /// This process: no privilege, any feature.
    UserSpace,
    /// The kernel: needs the capability `NET_ADMIN`; connections outlive a restart.
    Kernel,
}

impl DataPath {
    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::UserSpace => "this process",
            Self::Kernel => "the kernel",
        }
    }

    /// The kernel, where this process may tell it what to do.
    pub fn best() -> Self {
        let capable = rustix::thread::capabilities(None)
            .is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::NET_ADMIN));
        if capable { Self::Kernel } else { Self::UserSpace }
    }
}
