//! Debian packages: what the clusters run on, and what goes into the images.

use crate::command::run;
use crate::error::{Doing, Error, Result};
use crate::progress::Progress;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What clusters need: a file that shows the package to be there, and the package.
pub(super) const NEEDED: [(&str, &str); 16] = [
    ("/usr/bin/etcd", "etcd-server"),
    ("/usr/bin/containerd", "containerd"),
    ("/usr/sbin/runc", "runc"),
    ("/usr/lib/cni/bridge", "containernetworking-plugins"),
    ("/usr/sbin/nft", "nftables"),
    ("/usr/sbin/iptables", "iptables"),
    ("/usr/sbin/conntrack", "conntrack"),
    ("/bin/ip", "iproute2"),
    ("/usr/bin/tini", "tini"),
    ("/bin/mount", "mount"),
    ("/bin/dash", "dash"),
    ("/bin/busybox", "busybox-static"),
    ("/usr/bin/socat", "socat"),
    ("/usr/bin/dig", "bind9-dnsutils"),
    ("/usr/bin/dnsperf", "dnsperf"),
    ("/bin/nc.openbsd", "netcat-openbsd"),
];

/// Installs those that are missing.
pub(super) fn install(needed: &[(&'static str, &'static str)], progress: &Progress) -> Result<()> {
    let missing = missing(needed, |path| Path::new(path).exists());
    if missing.is_empty() {
        return Ok(());
    }
    if !Path::new("/usr/bin/apt-get").exists() {
        return Err(Error::refused(
            format!("these are missing, and there is no apt-get to install them: {}", missing.join(" ")),
            "install them with this system's package manager",
        ));
    }
    let step = progress.step(format!("install {}", missing.join(" ")));
    let _quiet = NoServices::set()?;
    let apt = |arguments: &[&str]| {
        run(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").arg("-qq").args(arguments))
    };
    apt(&["update"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], &missing[..]].concat())?;
    step.done();
    Ok(())
}

/// While it lives, packages do not start their services: the lab runs its own etcd and containerd.
struct NoServices(Option<&'static Path>);

impl NoServices {
    fn set() -> Result<Self> {
        let policy = Path::new("/usr/sbin/policy-rc.d");
        if policy.exists() {
            return Ok(Self(None));
        }
        let doing = || format!("write {}", policy.display());
        std::fs::write(policy, "#!/bin/sh\nexit 101\n").doing(doing)?;
        std::fs::set_permissions(policy, std::fs::Permissions::from_mode(0o755)).doing(doing)?;
        Ok(Self(Some(policy)))
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = self.0 {
            let _ = std::fs::remove_file(policy);
        }
    }
}

fn missing(needed: &[(&'static str, &'static str)], exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    needed.iter().filter(|(file, _)| !exists(file)).map(|(_, package)| *package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        assert_eq!(missing(&NEEDED, |_| true), Vec::<&str>::new());
        assert_eq!(missing(&NEEDED, |path| path != "/usr/bin/etcd"), ["etcd-server"]);
    }
}
