//! `--audit-log-…`: where the hub notes who did what, in its own API and in members.

use std::path::PathBuf;

use anyhow::Context;
use atoll_api::names::annotation;
use atoll_audit::{FileOptions, Log};
use clap::Args;

/// The audit log.
#[derive(Args, Debug)]
pub(super) struct AuditLog {
    /// File to write an audit log to: requests to the hub's own API and writes into members, in Kubernetes' format [default: none].
    #[arg(long, value_name = "FILE", env = "ATOLL_AUDIT_LOG_PATH")]
    audit_log_path: Option<PathBuf>,
    /// Size in megabytes at which the audit log is rotated.
    #[arg(long, value_name = "MB", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..), requires = "audit_log_path")]
    audit_log_maxsize: u64,
    /// Number of old audit logs to keep; 0 keeps all.
    #[arg(long, value_name = "NUMBER", default_value_t = 10, requires = "audit_log_path")]
    audit_log_maxbackup: usize,
    /// Days to keep old audit logs for; 0 keeps them forever.
    #[arg(long, value_name = "DAYS", default_value_t = 0, requires = "audit_log_path")]
    audit_log_maxage: u32,
}

impl AuditLog {
    /// The log, if one is wanted.
    pub(super) fn open(self) -> anyhow::Result<Option<Log>> {
        let Some(path) = self.audit_log_path else { return Ok(None) };
        let options = FileOptions {
            path,
            max_bytes: self.audit_log_maxsize.saturating_mul(1 << 20),
            max_backups: self.audit_log_maxbackup,
            max_age_days: self.audit_log_maxage,
        };
        let log = Log::in_file(options, annotation::audit::MISSING);
        log.map(Some).context("cannot audit; choose another --audit-log-path, or remove it")
    }
}
