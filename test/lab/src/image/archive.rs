//! Writes images in the form that `docker save` uses and containerd imports.

use super::digest;
use crate::error::{Doing, Result};
use serde_json::json;
use std::path::Path;

/// One image of the archive.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) tag: &'static str,
    pub(super) entry: &'static [&'static str],
    pub(super) command: &'static [&'static str],
}

/// Writes `images`, all of the one `layer`, to `path`.
pub(super) fn write(path: &Path, images: &[Image], layer: &[u8]) -> Result<()> {
    let doing = || format!("write {}", path.display());
    let file = std::fs::File::create(path).doing(doing)?;
    let mut tar = tar::Builder::new(std::io::BufWriter::new(file));
    let layer_digest = digest(layer);
    let layer_name = format!("{layer_digest}/layer.tar");
    let mut manifest = Vec::new();
    for image in images {
        let config = config(image, &layer_digest).to_string();
        let name = format!("{}.json", digest(config.as_bytes()));
        append(&mut tar, &name, config.as_bytes()).doing(doing)?;
        manifest.push(json!({
            "Config": name, "RepoTags": [canonical(image.tag)], "Layers": [layer_name],
        }));
    }
    append(&mut tar, &layer_name, layer).doing(doing)?;
    append(&mut tar, "manifest.json", json!(manifest).to_string().as_bytes()).doing(doing)?;
    tar.into_inner().and_then(|mut writer| std::io::Write::flush(&mut writer)).doing(doing)
}

fn config(image: &Image, layer: &str) -> serde_json::Value {
    let architecture = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    json!({
        "architecture": architecture,
        "os": "linux",
        "config": {
            "Entrypoint": image.entry,
            "Cmd": image.command,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            // Distinguishes images that would otherwise have the same configuration.
            "Labels": {"dev.atoll.lab.tag": image.tag},
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
    })
}

/// Container runtimes know `a/b:c` as `docker.io/a/b:c`.
fn canonical(tag: &str) -> String {
    let has_registry = tag.split('/').next().is_some_and(|first| first.contains('.'));
    if has_registry { tag.to_owned() } else { format!("docker.io/{tag}") }
}

fn append(tar: &mut tar::Builder<impl std::io::Write>, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_registry_that_runtimes_assume() {
        assert_eq!(canonical("alpine/socat:1"), "docker.io/alpine/socat:1");
        assert_eq!(canonical("atoll.dev/lab/pause:1"), "atoll.dev/lab/pause:1");
    }
}
