//! Debian packages: what the clusters run on, and what goes into the images.

use crate::command::run;
use crate::error::{Error, Result};
use crate::progress::Progress;
use std::path::Path;
use std::process::Command;

/// A file that shows the package to be there, and the package.
const NEEDED: [(&str, &str); 15] = [
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
    ("/bin/nc.openbsd", "netcat-openbsd"),
];

/// Installs the packages that are missing.
pub(super) fn install(progress: &Progress) -> Result<()> {
    let missing = missing(|path| Path::new(path).exists());
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
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        // The packages' own services must not start: the lab runs its own.
        command.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1").arg("-qq").args(arguments);
        run(&mut command)
    };
    apt(&["update"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], &missing[..]].concat())?;
    step.done();
    Ok(())
}

fn missing(exists: impl Fn(&str) -> bool) -> Vec<&'static str> {
    NEEDED.into_iter().filter(|(file, _)| !exists(file)).map(|(_, package)| package).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_missing_is_installed() {
        assert_eq!(missing(|_| true), Vec::<&str>::new());
        assert_eq!(missing(|path| path != "/usr/bin/etcd"), ["etcd-server"]);
    }
}
