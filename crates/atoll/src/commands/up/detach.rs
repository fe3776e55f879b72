//! A sandbox in the background: this program again, watched until it is ready.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use anyhow::Context;
use tokio::io::{AsyncReadExt, BufReader};

use super::report::Report;
use super::state::Dir;
use crate::failure::Failure;
use crate::progress;

/// Starts it and waits until it is ready, or has failed.
pub(super) async fn start(dir: &Dir, members: Option<usize>, flags: &[&str]) -> anyhow::Result<Report> {
    if let Some(process) = dir.running()? {
        let what = format!("another `atoll up` is running in {}, process {process}", dir.0.display());
        return Err(Failure::usage(&what, "stop it with `atoll down`, or use another --dir").into());
    }
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let mut command = Command::new(program);
    command.arg("up").arg("--dir").arg(&dir.0).args(["--output", "json"]);
    if let Some(members) = members {
        command.arg("--members").arg(members.to_string());
    }
    command.args(flags);
    let complaints = nameless_file()?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(complaints.try_clone()?)
        // Ctrl-C in this terminal is not for it.
        .process_group(0);
    let mut child =
        tokio::process::Command::from(command).spawn().context("cannot start in the background")?;
    let mut out = BufReader::new(child.stdout.take().context("no output to read")?);
    let ready = async {
        let mut text = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let read = out.read(&mut piece).await?;
            text.extend_from_slice(&piece[..read]);
            if let Ok(report) = serde_json::from_slice::<Report>(&text) {
                return anyhow::Ok(Some(report));
            }
            if read == 0 {
                return Ok(None);
            }
        }
    };
    match progress::announce_if_slow("waiting for the sandbox to start", ready).await? {
        Some(report) => Ok(report),
        None => {
            let ended = child.wait().await?;
            let said = said(complaints);
            let said = said.trim().trim_start_matches("error: ");
            let what =
                if said.is_empty() { format!("the process ended with {ended}") } else { said.to_owned() };
            Err(anyhow::anyhow!("cannot start in the background: {what}"))
        }
    }
}

/// A file without a name: what is said there is read if it is needed, and gone afterwards.
fn nameless_file() -> anyhow::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(File::from(rustix::fs::memfd_create("atoll-up", flags)?))
}

fn said(mut file: File) -> String {
    use std::io::{Read, Seek};
    let mut text = String::new();
    let _ = file.rewind();
    let _ = file.read_to_string(&mut text);
    text
}
