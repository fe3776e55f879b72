//! Up, up again, up after a crash, down: by the command line, as a user does it.

use crate::harness::{Outcome, Suite};
use anyhow::{Context, ensure};
use atoll_lab::suite::name;
use atoll_lab::teardown::{cgroups, links, mounts_below};
use atoll_lab::{Deadline, Lab, Layout, Process, until};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

pub(crate) fn tests(suite: &mut Suite) {
    suite.test_alone("a_second_up_in_a_row_changes_nothing", a_second_up_changes_nothing);
    suite.test_alone("up_works_after_its_driver_was_killed_half_way", up_after_a_kill);
    suite.test_alone("up_replaces_a_lab_of_which_a_component_died", up_replaces_a_broken_lab);
    suite.test_alone("down_leaves_nothing_of_a_lab_with_pods_after_a_crash", down_leaves_nothing);
    suite.test_alone("two_labs_are_up_side_by_side", two_labs_side_by_side);
    suite.test_alone("a_link_that_is_not_ours_is_neither_used_nor_removed", a_foreign_link);
    suite.test_alone("up_does_not_replace_a_running_lab_unasked", another_spec);
    suite.test_alone("bad_input_is_refused_with_what_to_do", bad_input_is_refused);
}

/// Removes its lab whatever becomes of the test.
struct Cleanup(String);

impl Drop for Cleanup {
    fn drop(&mut self) {
        if let Err(error) = atoll_lab::down(&self.0) {
            eprintln!("lab: could not take `{}` down: {error}", self.0);
        }
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.args(arguments).env_remove("ATOLL_LAB_NAME").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> anyhow::Result<Output> {
    let output = command(arguments).output()?;
    ensure!(output.status.success(), "lab {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(output)
}

/// The ids of the API servers, by cluster, as `-o json` has them.
fn api_servers(output: &Output) -> anyhow::Result<Vec<u64>> {
    let status: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let clusters = status["clusters"].as_array().context("a list of clusters")?;
    clusters.iter().map(|cluster| cluster["components"][1]["pid"].as_u64().context("a pid")).collect()
}

async fn a_second_up_changes_nothing() -> Outcome {
    let own = &name("twice");
    let _cleanup = Cleanup(own.clone());
    let up = ["up", "--name", own, "-n", "2", "--api-only", "-o", "json"];
    let first = api_servers(&run(&up)?)?;
    let second = run(&up)?;
    ensure!(String::from_utf8_lossy(&second.stderr).contains("is up already"), "it says so");
    ensure!(first == api_servers(&second)?, "the same processes run");
    let fresh = api_servers(&run(&[&up[..], &["--fresh"]].concat())?)?;
    ensure!(first.iter().all(|pid| !fresh.contains(pid)), "--fresh starts anew");
    Ok(())
}

async fn up_after_a_kill() -> Outcome {
    let own = &name("killed");
    let _cleanup = Cleanup(own.clone());
    let up = ["up", "--name", own, "-n", "2", "--api-only"];
    let mut driver = command(&up).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let layout = Layout::of(own);
    let etcd = layout.member("member1").join("components/etcd.json");
    let half_way = until(Deadline::after(Duration::from_secs(60), "the start is under way"), async || {
        Ok(if etcd.exists() { Ok(()) } else { Err("no etcd yet".into()) })
    })
    .await;
    driver.kill()?;
    driver.wait()?;
    half_way?;
    let left: Process = serde_json::from_slice(&std::fs::read(&etcd)?)?;
    ensure!(left.alive(), "the kill left something behind");
    run(&up)?;
    ensure!(!left.alive(), "what was left is gone");
    let lab = Lab::find(own)?.context("it is up and whole")?;
    lab.member(2).client().await?.apiserver_version().await?;
    Ok(())
}

async fn up_replaces_a_broken_lab() -> Outcome {
    let own = &name("broken");
    let _cleanup = Cleanup(own.clone());
    let up = ["up", "--name", own, "-n", "1", "--api-only", "-o", "json"];
    let first = api_servers(&run(&up)?)?;
    let pid = u32::try_from(first[0])?;
    Process::of(pid).context("it runs")?.kill()?;
    let status = run(&["status", "--name", own])?;
    ensure!(String::from_utf8_lossy(&status.stdout).contains("kube-apiserver ended"), "status tells");
    let second = api_servers(&run(&up)?)?;
    ensure!(first != second, "a new one runs");
    Lab::find(own)?.context("it is whole again")?.member(1).client().await?.apiserver_version().await?;
    Ok(())
}

/// Every process in the lab's control groups, pods' included.
fn processes_of(layout: &Layout) -> BTreeSet<u32> {
    fn below(group: &Path, pids: &mut BTreeSet<u32>) {
        let text = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        pids.extend(text.lines().filter_map(|line| line.parse::<u32>().ok()));
        for entry in std::fs::read_dir(group).into_iter().flatten().flatten() {
            if entry.path().is_dir() {
                below(&entry.path(), pids);
            }
        }
    }
    let mut pids = BTreeSet::new();
    cgroups(layout).iter().for_each(|group| below(group, &mut pids));
    pids
}

/// Every network namespace that some process of the host is in.
fn network_namespaces(pids: &BTreeSet<u32>) -> BTreeSet<std::path::PathBuf> {
    pids.iter().filter_map(|pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()).collect()
}

fn all_processes() -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

async fn down_leaves_nothing() -> Outcome {
    let own = &name("down");
    let _cleanup = Cleanup(own.clone());
    run(&["up", "--name", own, "-n", "1"])?;
    let lab = Lab::find(own)?.context("it is up")?;
    let (layout, slot) = (lab.layout().clone(), lab.slot());
    lab.member(1).tools("default", "tools").await?;
    // A crash of the container runtime leaves its containers running.
    lab.member(1).process(atoll_lab::Component::Containerd).context("containerd runs")?.kill()?;

    let pids = processes_of(&layout);
    let processes: Vec<_> = pids.iter().filter_map(|pid| Process::of(*pid)).collect();
    let namespaces = network_namespaces(&pids);
    ensure!(
        processes.len() > 8 && namespaces.len() > 1,
        "components and a pod: {} {namespaces:?}",
        processes.len()
    );
    ensure!(!links(&layout).is_empty() && !cgroups(&layout).is_empty(), "there is something to remove");

    run(&["down", "--name", own])?;
    let left: Vec<_> = processes.iter().filter(|process| process.alive()).collect();
    ensure!(left.is_empty(), "processes are left: {left:?}");
    let left: Vec<_> = network_namespaces(&all_processes()).intersection(&namespaces).cloned().collect();
    ensure!(left.is_empty(), "namespaces are left: {left:?}");
    ensure!(links(&layout).is_empty(), "links are left: {:?}", links(&layout));
    ensure!(
        !Path::new("/sys/class/net").join(atoll_lab::addresses::bridge(slot)).exists(),
        "the bridge is left"
    );
    ensure!(cgroups(&layout).is_empty(), "control groups are left: {:?}", cgroups(&layout));
    ensure!(mounts_below(layout.dir()).is_empty(), "mounts are left: {:?}", mounts_below(layout.dir()));
    ensure!(!layout.dir().exists(), "{} is left", layout.dir().display());
    let again = run(&["down", "--name", own])?;
    ensure!(String::from_utf8_lossy(&again.stderr).contains("was not up"), "a second down says so");
    Ok(())
}

async fn two_labs_side_by_side() -> Outcome {
    let (left_name, right_name) = (&name("left"), &name("right"));
    let _cleanup = (Cleanup(left_name.clone()), Cleanup(right_name.clone()));
    run(&["up", "--name", left_name, "-n", "1", "--api-only"])?;
    run(&["up", "--name", right_name, "-n", "1", "--api-only"])?;
    let left = Lab::find(left_name)?.context("left is up")?;
    let right = Lab::find(right_name)?.context("right is up")?;
    ensure!(left.slot() != right.slot(), "each has its own network");
    run(&["down", "--name", left_name])?;
    right.member(1).client().await?.apiserver_version().await?;
    Ok(())
}

/// A link that the lab did not make, removed at the end.
struct ForeignLink(String);

impl Drop for ForeignLink {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["link", "del", &self.0]).output();
    }
}

async fn a_foreign_link() -> Outcome {
    let own = &name("foreign");
    let _cleanup = Cleanup(own.clone());
    let up = ["up", "--name", own, "-n", "1", "--api-only"];
    run(&up)?;
    let name = atoll_lab::addresses::bridge(Lab::find(own)?.context("it is up")?.slot());
    run(&["down", "--name", own])?;
    ensure!(Command::new("ip").args(["link", "add", &name, "type", "bridge"]).status()?.success(), "{name}");
    let foreign = ForeignLink(name);
    run(&up)?;
    let slot = Lab::find(own)?.context("it is up")?.slot();
    ensure!(atoll_lab::addresses::bridge(slot) != foreign.0, "the link in the way was passed by");
    run(&["down", "--name", own])?;
    ensure!(Path::new("/sys/class/net").join(&foreign.0).exists(), "and it is still there");
    Ok(())
}

async fn another_spec() -> Outcome {
    let own = &name("another");
    let _cleanup = Cleanup(own.clone());
    let up = ["up", "--name", own, "-n", "1", "--api-only", "-o", "json"];
    let first = api_servers(&run(&up)?)?;
    let refused = command(&["up", "--name", own, "-n", "2", "--api-only"]).output()?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    ensure!(!refused.status.success() && said.contains("--fresh"), "{said}");
    ensure!(first == api_servers(&run(&up)?)?, "it runs on as it was");
    Ok(())
}

async fn bad_input_is_refused() -> Outcome {
    for (arguments, word) in [
        (&["up", "-n", "0"][..], "1 to 80"),
        (&["up", "--name", "../../etc"], "lower-case"),
        (&["up", "--bystander", "member1"], "two hosts"),
        (&["down", "--name", "NO"], "lower-case"),
        (&["status", "--name", "test-nowhere"], "lab up --name test-nowhere"),
        (&["exec", "--name", "test-nowhere", "member1", "--", "true"], "lab up --name test-nowhere"),
    ] {
        let output = command(arguments).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && said.contains(word), "{arguments:?}: {said}");
        ensure!(said.contains("hint: "), "{arguments:?} says what to do: {said}");
    }
    Ok(())
}
