//! What was made, and what to try next.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::clusters::{Clusters, HUB};
use super::state::Dir;

/// A sandbox that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    dir: PathBuf,
    kubeconfig: PathBuf,
    log: PathBuf,
    process: u32,
    ready_after_milliseconds: u64,
    clusters: Vec<Entry>,
    /// Added to ports below 1024, which this user may not bind.
    #[serde(skip_serializing_if = "Option::is_none")]
    port_offset: Option<u16>,
}

/// One cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    /// Also its context in the kubeconfig.
    name: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    networks: Option<MemberNetworks>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct MemberNetworks {
    pods: String,
    services: String,
    dns: String,
}

impl Report {
    pub(crate) async fn new(dir: &Dir, clusters: &Clusters, took: Duration) -> Self {
        let hub = Entry { name: HUB.to_owned(), url: clusters.hub_url().to_owned(), networks: None };
        let members = clusters.members();
        let running = members.all().await;
        let entries = running.iter().map(|member| Entry {
            name: member.name().to_owned(),
            url: member.url().to_owned(),
            networks: Some(MemberNetworks {
                pods: member.block().pod_cidr().to_string(),
                services: member.block().service_cidr().to_string(),
                dns: member.dns().to_string(),
            }),
        });
        Self {
            dir: dir.0.clone(),
            kubeconfig: dir.path("kubeconfig"),
            log: dir.path("log"),
            process: std::process::id(),
            ready_after_milliseconds: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            clusters: std::iter::once(hub).chain(entries).collect(),
            port_offset: members.port_offset(),
        }
    }

    pub(crate) fn text(&self, detached: bool) -> String {
        self.text_as(detached, &this_program(), Dir::default_path().as_deref() == Some(&*self.dir))
    }

    fn text_as(&self, detached: bool, program: &str, default_dir: bool) -> String {
        let mut text = String::new();
        let members = self.clusters.len() - 1;
        #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
        let seconds = self.ready_after_milliseconds as f64 / 1000.0;
        let contexts: Vec<&str> = self.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        let contexts = match contexts.as_slice() {
            [first, second, .., last] if contexts.len() > 6 => format!("{first}, {second} to {last}"),
            all => all.join(", "),
        };
        let _ = writeln!(
            text,
            "ready after {seconds:.1} s: a hub and {members} member{}",
            if members == 1 { "" } else { "s" }
        );
        let _ = writeln!(text, "  kubeconfig  {} (contexts {contexts})", self.kubeconfig.display());
        let _ = writeln!(text, "  logs        {}", self.log.display());
        if let Some(offset) = self.port_offset {
            let _ = writeln!(
                text,
                "  ports       this user may not bind ports below 1024: from outside, port 80 is {}",
                80 + offset
            );
        }
        let dir = if default_dir { String::new() } else { format!(" --dir {}", self.dir.display()) };
        let last = contexts_of_members(&self.clusters);
        let _ = writeln!(text, "Try{}:", if detached { "" } else { ", in another terminal" });
        let kubeconfig = self.kubeconfig.display();
        let _ = writeln!(text, "  export KUBECONFIG={kubeconfig}");
        let _ = writeln!(
            text,
            "  {program} apply --context member1 -f {}",
            self.dir.join("serve.yaml").display()
        );
        let _ = writeln!(text, "  {program} get --context {last} serviceimports,services");
        let _ = writeln!(text, "  {program} request --from {last} serve.default.svc.clusterset.local{dir}");
        if detached {
            let _ = writeln!(text, "Stop it with `{program} down{dir}`.");
        } else {
            let _ = writeln!(text, "Ctrl-C stops it and keeps its state; `up --fresh` starts over.");
        }
        text
    }
}

/// The second member, if there is one: the one that imports in the examples.
fn contexts_of_members(clusters: &[Entry]) -> &str {
    clusters.get(2).or(clusters.get(1)).map_or("member1", |cluster| cluster.name.as_str())
}

/// How this program is called from any folder.
fn this_program() -> String {
    let Ok(program) = std::env::current_exe() else { return "atoll".to_owned() };
    let on_path = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|dir| same_file(&dir.join("atoll"), &program)));
    if on_path {
        return "atoll".to_owned();
    }
    program.display().to_string()
}

fn same_file(one: &Path, other: &Path) -> bool {
    one.canonicalize().ok().is_some_and(|one| Some(one) == other.canonicalize().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_to_try() {
        let entry = |name: &str, block: u8| Entry {
            name: name.to_owned(),
            url: format!("https://127.{block}.0.1:6443"),
            networks: None,
        };
        let report = Report {
            dir: "/tmp/up".into(),
            kubeconfig: "/tmp/up/kubeconfig".into(),
            log: "/tmp/up/log".into(),
            process: 7,
            ready_after_milliseconds: 1234,
            clusters: vec![entry("hub", 32), entry("member1", 33), entry("member2", 34)],
            port_offset: Some(20_000),
        };
        let want = "ready after 1.2 s: a hub and 2 members
  kubeconfig  /tmp/up/kubeconfig (contexts hub, member1, member2)
  logs        /tmp/up/log
  ports       this user may not bind ports below 1024: from outside, port 80 is 20080
Try, in another terminal:
  export KUBECONFIG=/tmp/up/kubeconfig
  target/release/atoll apply --context member1 -f /tmp/up/serve.yaml
  target/release/atoll get --context member2 serviceimports,services
  target/release/atoll request --from member2 serve.default.svc.clusterset.local --dir /tmp/up
Ctrl-C stops it and keeps its state; `up --fresh` starts over.
";
        assert_eq!(report.text_as(false, "target/release/atoll", false), want);
        assert!(report.text_as(true, "atoll", true).contains("Stop it with `atoll down`."));
    }
}
