//! Asks a container whether it is well, and runs its hooks.

use super::runtime::CommandRunner;
use super::spec;
use crate::network::Dialer;
use crate::programs::{Pipe, http};
use k8s_openapi::api::core::v1::{
    Container, ExecAction, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction,
};
use std::net::Ipv4Addr;
use std::time::Duration;

/// A probe of a container, ready to be run.
#[derive(Clone)]
pub(super) struct Prober {
    pub(super) container: Container,
    pub(super) address: Ipv4Addr,
    pub(super) dialer: Dialer,
    pub(super) inside: CommandRunner,
}

/// How often a probe runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    pub(super) first: Duration,
    pub(super) every: Duration,
    patience: Duration,
}

impl Schedule {
    pub(super) fn of(probe: &Probe) -> Self {
        let seconds = |number: Option<i32>, usual: u64| {
            Duration::from_secs(number.and_then(|number| u64::try_from(number).ok()).unwrap_or(usual))
        };
        Self {
            first: seconds(probe.initial_delay_seconds, 0),
            every: seconds(probe.period_seconds, 10).max(Duration::from_secs(1)),
            patience: seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1)),
        }
    }
}

impl Prober {
    /// Asks once. What was wrong is said in words.
    pub(super) async fn probe(&self, probe: &Probe) -> Result<(), String> {
        let asked = async {
            if let Some(action) = &probe.http_get {
                self.http(action).await
            } else if let Some(action) = &probe.tcp_socket {
                self.tcp(action).await
            } else if let Some(action) = &probe.exec {
                self.exec(action).await
            } else {
                Err("the sandbox supports only httpGet, tcpSocket and exec probes".to_owned())
            }
        };
        let patience = Schedule::of(probe).patience;
        match tokio::time::timeout(patience, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no answer within {} s", patience.as_secs())),
        }
    }

    /// Runs a hook; its failure changes nothing.
    pub(super) async fn hook(&self, hook: &LifecycleHandler) -> Result<(), String> {
        if let Some(action) = &hook.sleep {
            tokio::time::sleep(Duration::from_secs(u64::try_from(action.seconds).unwrap_or_default())).await;
            Ok(())
        } else if let Some(action) = &hook.exec {
            self.exec(action).await
        } else if let Some(action) = &hook.http_get {
            self.http(action).await
        } else {
            Ok(())
        }
    }

    async fn http(&self, action: &HTTPGetAction) -> Result<(), String> {
        if action.scheme.as_deref() == Some("HTTPS") {
            return Err("the sandbox does not support HTTPS probes".to_owned());
        }
        let port = spec::port(&self.container, &action.port).ok_or("no such port")?;
        let host =
            action.host.clone().filter(|host| !host.is_empty()).unwrap_or_else(|| self.address.to_string());
        let reached = self.dialer.connect_tcp(&host, port).await.map_err(|error| error.to_string())?;
        let headers: Vec<_> =
            action.http_headers.iter().flatten().map(|one| (one.name.clone(), one.value.clone())).collect();
        let path = action.path.as_deref().unwrap_or("/");
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let (status, _) = http::ask(reached.stream, &format!("{host}:{port}"), &path, &headers).await?;
        match status {
            200..400 => Ok(()),
            status => Err(format!("HTTP probe failed with statuscode: {status}")),
        }
    }

    async fn tcp(&self, action: &TCPSocketAction) -> Result<(), String> {
        let port = spec::port(&self.container, &action.port).ok_or("no such port")?;
        let host =
            action.host.clone().filter(|host| !host.is_empty()).unwrap_or_else(|| self.address.to_string());
        self.dialer.connect_tcp(&host, port).await.map(drop).map_err(|error| error.to_string())
    }

    async fn exec(&self, action: &ExecAction) -> Result<(), String> {
        let command = action.command.clone().unwrap_or_default();
        match self.inside.run(command, None, Pipe::Null, Pipe::Null).await {
            0 => Ok(()),
            code => Err(format!("command ended with code {code}")),
        }
    }
}
