//! The one layer of every image: programs of this host with the libraries they name.

use crate::command::stdout_of;
use crate::error::{Doing, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Changes whenever what follows changes what it makes; part of the cache's key.
pub(super) const RECIPE: &str = "1";

/// Programs of the host, and where they go. dash is the shell, because busybox's prefers its own applets
/// to the real `nc` and `nslookup`, which suites count on.
const PROGRAMS: [(&str, &str); 7] = [
    ("/bin/dash", "bin/sh"),
    ("/usr/bin/tini", "usr/bin/tini"),
    ("/usr/bin/socat", "usr/bin/socat"),
    ("/bin/nc.openbsd", "usr/bin/nc"),
    ("/usr/bin/dig", "usr/bin/dig"),
    ("/usr/bin/nslookup", "usr/bin/nslookup"),
    ("/sbin/ip", "sbin/ip"),
];

const TEXTS: [(&str, &str); 3] = [
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    ("etc/nsswitch.conf", "hosts: files dns\n"),
];

/// Size and time of each program that goes in: a changed one makes other images.
pub(super) fn fingerprint() -> Vec<(u64, Option<std::time::SystemTime>)> {
    let programs = PROGRAMS.iter().map(|(from, _)| *from).chain(["/bin/busybox"]);
    programs
        .filter_map(|path| std::fs::metadata(path).ok())
        .map(|file| (file.len(), file.modified().ok()))
        .collect()
}

/// The layer, as a tar archive.
pub(super) fn layer(workload: &[u8]) -> Result<Vec<u8>> {
    let doing = || "pack the images' files".to_owned();
    let mut layer = Layer(tar::Builder::new(Vec::new()));
    for folder in ["root", "tmp", "proc", "sys", "dev", "run", "var/run"] {
        layer.folder(folder).doing(doing)?;
    }
    for (name, text) in TEXTS {
        layer.file(name, text.as_bytes(), 0o644).doing(doing)?;
    }
    layer.file("bin/workload", workload, 0o755).doing(doing)?;
    layer.copy("/bin/busybox", "bin/busybox")?;
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut libraries = BTreeSet::new();
    for (from, to) in PROGRAMS {
        layer.copy(from, to)?;
        taken.extend(Path::new(to).file_name().map(|name| name.to_string_lossy().into_owned()));
        libraries.extend(libraries_of(from)?);
    }
    for library in libraries {
        layer.copy(&library, library.trim_start_matches('/'))?;
    }
    let applets = stdout_of(Command::new("/bin/busybox").arg("--list"))?;
    for applet in applets.lines().filter(|applet| !taken.contains(*applet) && *applet != "busybox") {
        layer.link(&format!("bin/{applet}"), "busybox").doing(doing)?;
    }
    layer.0.into_inner().doing(doing)
}

/// The shared libraries that `program` names, the loader included.
fn libraries_of(program: &str) -> Result<Vec<String>> {
    let listing = stdout_of(Command::new("ldd").arg(program))?;
    Ok(listing.lines().filter_map(library_path).map(str::to_owned).collect())
}

fn library_path(line: &str) -> Option<&str> {
    let target = line.split_once("=>").map_or(line, |(_, target)| target).trim();
    let path = target.split_whitespace().next()?;
    path.starts_with('/').then_some(path)
}

struct Layer(tar::Builder<Vec<u8>>);

impl Layer {
    fn folder(&mut self, name: &str) -> std::io::Result<()> {
        let mut header = header(tar::EntryType::Directory, if name == "tmp" { 0o1777 } else { 0o755 });
        self.0.append_data(&mut header, format!("{name}/"), std::io::empty())
    }

    fn file(&mut self, name: &str, bytes: &[u8], mode: u32) -> std::io::Result<()> {
        let mut header = header(tar::EntryType::Regular, mode);
        header.set_size(bytes.len() as u64);
        self.0.append_data(&mut header, name, bytes)
    }

    fn link(&mut self, name: &str, target: &str) -> std::io::Result<()> {
        let mut header = header(tar::EntryType::Symlink, 0o777);
        self.0.append_link(&mut header, name, target)
    }

    fn copy(&mut self, from: &str, to: &str) -> Result<()> {
        let doing = || format!("copy {from} into the images");
        let real: PathBuf = std::fs::canonicalize(from).doing(doing)?;
        let bytes = std::fs::read(real).doing(doing)?;
        self.file(to, &bytes, 0o755).doing(doing)
    }
}

fn header(kind: tar::EntryType, mode: u32) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_off_the_loaders_listing() {
        for (line, want) in [
            ("\tlinux-vdso.so.1 (0x00007ffe)", None),
            (
                "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)",
                Some("/lib/x86_64-linux-gnu/libc.so.6"),
            ),
            ("\t/lib64/ld-linux-x86-64.so.2 (0x00007f)", Some("/lib64/ld-linux-x86-64.so.2")),
            ("\tstatically linked", None),
        ] {
            assert_eq!(library_path(line), want, "{line}");
        }
    }
}
