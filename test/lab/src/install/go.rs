//! Programs that exist only as Go modules, built once per version.
//!
//! Each part is a tiny module of ours whose `go.sum` pins everything it needs.

use crate::error::{Doing, Error, Result};
use crate::image::digest;
use crate::layout::{make_dir, try_lock, write_private};
use crate::progress::Progress;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Something to build from Go modules.
#[derive(Debug)]
pub(super) struct GoPart {
    name: &'static str,
    version: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    packages: &'static [&'static str],
    /// Variables that the linker sets, as `-X` takes them.
    variables: &'static [&'static str],
}

/// The cluster's own programs, and kubectl.
pub(super) const KUBERNETES: GoPart = GoPart {
    name: "kubernetes",
    version: "1.36.4",
    go_mod: include_str!("../../go/kubernetes/go.mod"),
    go_sum: include_str!("../../go/kubernetes/go.sum"),
    packages: &[
        "k8s.io/kubernetes/cmd/kube-apiserver",
        "k8s.io/kubernetes/cmd/kube-controller-manager",
        "k8s.io/kubernetes/cmd/kube-scheduler",
        "k8s.io/kubernetes/cmd/kube-proxy",
        "k8s.io/kubernetes/cmd/kubelet",
        "k8s.io/kubernetes/cmd/kubectl",
    ],
    // Without them the API server refuses to start, or calls itself v0.0.0.
    variables: &[
        "k8s.io/component-base/version.gitVersion=v1.36.4",
        "k8s.io/component-base/version.gitMajor=1",
        "k8s.io/component-base/version.gitMinor=36",
    ],
};

/// The API server of the oldest Kubernetes that is supported. No nodes run it, so nothing else of it is built.
pub(super) const OLDEST_KUBERNETES: GoPart = GoPart {
    name: "kubernetes-oldest",
    version: "1.33.13",
    go_mod: include_str!("../../go/kubernetes-oldest/go.mod"),
    go_sum: include_str!("../../go/kubernetes-oldest/go.sum"),
    packages: &["k8s.io/kubernetes/cmd/kube-apiserver"],
    variables: &[
        "k8s.io/component-base/version.gitVersion=v1.33.13",
        "k8s.io/component-base/version.gitMajor=1",
        "k8s.io/component-base/version.gitMinor=33",
    ],
};

/// The cluster's DNS.
pub(super) const COREDNS: GoPart = GoPart {
    name: "coredns",
    version: "1.15.0",
    go_mod: include_str!("../../go/coredns/go.mod"),
    go_sum: include_str!("../../go/coredns/go.sum"),
    packages: &["github.com/coredns/coredns"],
    variables: &[],
};

impl GoPart {
    /// The cache folder's name: the version for people, the digest for changed pins or flags.
    pub(super) fn key(&self) -> String {
        let everything = [self.go_mod, self.go_sum, &self.packages.join(" "), &self.variables.join(" ")];
        format!("{}-{}-{}", self.name, self.version, &digest(everything.concat().as_bytes())[..12])
    }

    /// Its `go.mod` and `go.sum`.
    pub(super) fn pins(&self) -> (&'static str, &'static str) {
        (self.go_mod, self.go_sum)
    }
}

/// The folder with the programs of `part`, built if it is not in the cache yet.
pub(super) fn build(part: &GoPart, cache: &Path, progress: &Progress) -> Result<PathBuf> {
    let kept = cache.join(part.key());
    if kept.exists() {
        return Ok(kept);
    }
    let _lock = wait_for_lock(&cache.join("build.lock"), progress)?;
    if kept.exists() {
        return Ok(kept);
    }
    // Built beside and moved into place whole: an interrupted build leaves nothing that looks finished.
    let work = cache.join(format!("{}.building", part.key()));
    if work.exists() {
        std::fs::remove_dir_all(&work).doing(|| format!("remove {}", work.display()))?;
    }
    let (source, out) = (work.join("source"), work.join("out"));
    make_dir(&out)?;
    write_private(&source.join("go.mod"), part.go_mod)?;
    write_private(&source.join("go.sum"), part.go_sum)?;
    compile(part, &source, &out, progress)?;
    std::fs::rename(&out, &kept).doing(|| format!("move the built programs to {}", kept.display()))?;
    std::fs::remove_dir_all(&work).doing(|| format!("remove {}", work.display()))?;
    Ok(kept)
}

fn compile(part: &GoPart, source: &Path, out: &Path, progress: &Progress) -> Result<()> {
    let step = progress.step(format!("build {} {} from Go modules, once", part.name, part.version));
    let variables: String = part.variables.iter().map(|variable| format!(" -X {variable}")).collect();
    let mut command = Command::new("go");
    command
        .args(["build", "-v", "-trimpath", "-mod=readonly", "-ldflags"])
        .arg(format!("-s -w{variables}"))
        .arg("-o")
        .arg(format!("{}/", out.display()))
        .args(part.packages)
        .current_dir(source)
        .env("CGO_ENABLED", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let line = crate::command::render(&command);
    let mut child = command.spawn().doing(|| format!("run `{line}`"))?;
    // With -v the compiler names each package that it has finished.
    let mut said = Vec::new();
    for text in BufReader::new(child.stderr.take().expect("stderr was piped"))
        .lines()
        .map_while(std::result::Result::ok)
    {
        said.push(text);
        step.says(&format!("{} packages", said.len()));
    }
    let status = child.wait().doing(|| format!("run `{line}`"))?;
    if !status.success() {
        let output = crate::command::last_lines(said.join("\n").as_bytes(), 20);
        return Err(Error::Command { command: line, status: status.to_string(), output });
    }
    step.done();
    Ok(())
}

fn wait_for_lock(path: &Path, progress: &Progress) -> Result<std::fs::File> {
    if let Some(lock) = try_lock(path)? {
        return Ok(lock);
    }
    let step =
        progress.step(format!("wait for another process that is building, and holds {}", path.display()));
    let lock = crate::layout::lock(path)?;
    step.done();
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_key_names_the_version_and_follows_the_pins() {
        let changed = GoPart { go_sum: "other pins", ..COREDNS };
        assert!(COREDNS.key().starts_with("coredns-1.15.0-"), "{}", COREDNS.key());
        assert_ne!(COREDNS.key(), changed.key());
    }

    #[test]
    fn the_pins_are_of_the_version_that_is_claimed() {
        for (part, module) in [
            (&KUBERNETES, "k8s.io/kubernetes v"),
            (&OLDEST_KUBERNETES, "k8s.io/kubernetes v"),
            (&COREDNS, "github.com/coredns/coredns v"),
        ] {
            assert!(part.go_mod.contains(&format!("{module}{}", part.version)), "{}", part.name);
        }
    }
}
