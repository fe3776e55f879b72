//! A tiny HTTP server in the place of a hub's API: fixed answers by path.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::said;

/// What is answered to a GET, the first that fits counts. Each may be asked once or always.
type Answers = Vec<(String, u16, Value)>;

/// A server for one test, and a home directory for the commands that ask it.
pub(super) struct FakeHub {
    pub(super) home: tempfile::TempDir,
    pub(super) url: String,
    answers: Arc<Mutex<Answers>>,
}

impl FakeHub {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(Answers::new()));
        let shared = Arc::clone(&answers);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { home: tempfile::tempdir().unwrap(), url, answers }
    }

    /// From now on, this path is answered so.
    pub(super) fn answer(&self, path: &str, code: u16, body: Value) -> &Self {
        let mut answers = self.answers.lock().unwrap();
        answers.retain(|(known, ..)| known != path);
        answers.push((path.to_owned(), code, body));
        self
    }

    /// Writes a kubeconfig below the home directory, whose one context leads to `url`.
    pub(super) fn kubeconfig(&self, at: &str, url: &str) -> String {
        let file = self.home.path().join(at);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, config(url, "hub")).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// Runs the binary in this home directory.
    pub(super) fn run(&self, line: &str, env: &[(&str, &str)]) -> (Option<i32>, String, String) {
        self.run_as(Path::new(env!("CARGO_BIN_EXE_atoll")), line, env)
    }

    pub(super) fn run_as(
        &self,
        program: &Path,
        line: &str,
        env: &[(&str, &str)],
    ) -> (Option<i32>, String, String) {
        let mut command = Command::new(program);
        command.args(line.split_whitespace()).env_clear().env("HOME", self.home.path());
        command.envs(env.iter().copied()).stdin(Stdio::null());
        said(command, None)
    }
}

/// A kubeconfig with one context.
pub(super) fn config(url: &str, context: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": context,
        "contexts": [{"name": context, "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
    })
    .to_string()
}

fn serve(mut stream: TcpStream, answers: &Mutex<Answers>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = 0;
        loop {
            let mut header = String::new();
            if reader.read_line(&mut header).unwrap_or(0) == 0 || header.trim().is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let path = target.split('?').next().unwrap_or_default();
        let (code, body) = {
            let answers = answers.lock().unwrap();
            let found = answers.iter().find(|(known, ..)| known == path);
            found.map_or(
                (404, status(404, "NotFound", "the server could not find the requested resource")),
                |(_, code, body)| (*code, body.clone()),
            )
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

/// What an API says when it says no.
pub(super) fn status(code: u16, reason: &str, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": reason, "code": code, "message": message})
}
