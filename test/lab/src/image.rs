//! The pods' images, made without a registry: one layer of Debian's own programs, under every name that
//! suites and documents use, in one archive that containerd imports.

mod archive;
mod files;

use crate::command::run;
use crate::error::{Doing, Result};
use crate::layout::{make_dir, write_private};
use crate::progress::Progress;
use archive::Image;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The image of the container that holds a pod's network.
pub const PAUSE: &str = "atoll.dev/lab/pause:1";
/// A shell, `dig`, `nc`, `socat` and busybox.
pub const TOOLS: &str = "nicolaka/netshoot:v0.15";
/// Answers HTTP; see the workload's own documentation.
pub const SERVE: &str = "jeremyot/serve:0a40de8";
/// Asks over HTTP.
pub const REQUEST: &str = "jeremyot/request:0a40de8";
/// socat as the entry point.
pub const SOCAT: &str = "alpine/socat:1.7.4.4";

const WORKLOAD: &str = include_str!("../workload/main.rs");

/// Every image: its name and what it runs. A first process that ignores SIGTERM would hold up its pod's end
/// for the whole grace period, hence tini.
const IMAGES: [Image; 5] = [
    Image { tag: PAUSE, entry: &["/bin/workload", "pause"], command: &[] },
    Image { tag: TOOLS, entry: &[], command: &["/bin/sh"] },
    Image { tag: SERVE, entry: &["/usr/bin/tini", "--", "/bin/workload", "serve"], command: &[] },
    Image { tag: REQUEST, entry: &["/usr/bin/tini", "--", "/bin/workload", "request"], command: &[] },
    Image { tag: SOCAT, entry: &["/usr/bin/socat"], command: &[] },
];

/// Where the archive is kept: what goes into it is decided by our text and by the host's own programs.
pub(crate) fn kept(cache: &Path) -> PathBuf {
    let recipe = format!("{WORKLOAD}{IMAGES:?}{}{:?}", files::RECIPE, files::fingerprint());
    cache.join(format!("images-{}.tar", &digest(recipe.as_bytes())[..12]))
}

/// The archive with all images, made if it is not in the cache yet.
pub(crate) fn build(cache: &Path, progress: &Progress) -> Result<PathBuf> {
    let kept = kept(cache);
    if kept.exists() {
        return Ok(kept);
    }
    let step = progress.step("make the pods' images".to_owned());
    make_dir(cache)?;
    let workload = compile_workload(cache)?;
    let layer = files::layer(&workload)?;
    let unfinished = cache.join(format!("images-{}.building", std::process::id()));
    archive::write(&unfinished, &IMAGES, &layer)?;
    forget_others(cache);
    std::fs::rename(&unfinished, &kept).doing(|| format!("keep {}", kept.display()))?;
    step.done();
    Ok(kept)
}

/// Removes archives of earlier recipes.
fn forget_others(cache: &Path) {
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("images-") && name.ends_with(".tar") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Compiles the workload by itself and statically, so that it runs in an image with nothing else.
fn compile_workload(cache: &Path) -> Result<Vec<u8>> {
    let work = cache.join(format!("workload-{}", std::process::id()));
    let (source, program) = (work.join("main.rs"), work.join("workload"));
    write_private(&source, WORKLOAD)?;
    run(Command::new("rustc")
        .args(["--edition=2024", "-O", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "-o"])
        .arg(&program)
        .arg(&source))?;
    let bytes = std::fs::read(&program).doing(|| format!("read {}", program.display()))?;
    std::fs::remove_dir_all(&work).doing(|| format!("remove {}", work.display()))?;
    Ok(bytes)
}

/// The SHA-256 of `bytes`, in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
