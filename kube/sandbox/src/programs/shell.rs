//! Runs a command line in a pod of a built-in program. There is no file system and no other process: a command is a
//! function here.

use super::command_line::{self, Command, When};
use super::log::{Log, Stream};
use super::{http, names, netcat, request};
use crate::network::Dialer;
use atoll_kubeapi::pods::Output;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// What a shell says of a command that it does not have.
const NOT_FOUND: i32 = 127;
const MISUSED: i32 = 2;
const PATIENCE: Duration = Duration::from_secs(5);
/// The commands, for the message about an unknown one.
const COMMANDS: &str =
    "cat, curl, dig, echo, env, exit, false, hostname, nc, nslookup, request, sh, sleep, true, wget";

/// Where output goes.
#[derive(Clone)]
pub(crate) enum Pipe {
    /// To a container's log.
    Log(Log, Stream),
    /// To a client's session.
    Session(mpsc::Sender<Output>, Stream),
    /// Into the next command.
    Memory(Arc<Mutex<Vec<u8>>>),
    /// Nowhere.
    Null,
}

impl Pipe {
    pub(crate) fn stdout(log: &Log) -> Self {
        Self::Log(log.clone(), Stream::Stdout)
    }

    pub(crate) fn stderr(log: &Log) -> Self {
        Self::Log(log.clone(), Stream::Stderr)
    }

    pub(super) async fn write(&self, text: &[u8]) {
        match self {
            Self::Log(log, stream) => log.write(*stream, text),
            Self::Session(sender, stream) => {
                let text = Bytes::copy_from_slice(text);
                let piece = match stream {
                    Stream::Stdout => Output::Stdout(text),
                    Stream::Stderr => Output::Stderr(text),
                };
                // A client that is gone wants nothing.
                let _ = sender.send(piece).await;
            }
            Self::Memory(kept) => kept.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(text),
            Self::Null => {}
        }
    }

    pub(super) async fn line(&self, text: &str) {
        self.write(format!("{text}\n").as_bytes()).await;
    }
}

/// Where input comes from.
pub(crate) enum Input {
    Nothing,
    Text(Vec<u8>),
    Client(mpsc::Receiver<Bytes>),
}

impl Input {
    /// The next piece; nothing at the end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        match self {
            Self::Nothing => None,
            Self::Text(text) => {
                let text = std::mem::take(text);
                *self = Self::Nothing;
                (!text.is_empty()).then(|| text.into())
            }
            Self::Client(receiver) => receiver.recv().await,
        }
    }
}

/// What a command needs to know.
#[derive(Clone)]
pub(crate) struct Shell {
    pub(crate) dialer: Dialer,
    pub(crate) environment: Arc<BTreeMap<String, String>>,
    pub(crate) hostname: String,
    pub(crate) dns: Ipv4Addr,
}

impl Shell {
    /// Runs a command with its arguments.
    pub(crate) async fn run(&self, words: Vec<String>, mut input: Input, out: Pipe, err: Pipe) -> i32 {
        self.command(words, &mut input, out, err).await.0
    }

    /// Runs a line; its exit code, and whether the line said `exit`.
    async fn line(&self, text: &str, input: &mut Input, out: &Pipe, err: &Pipe) -> (i32, bool) {
        let items = match command_line::parse(text) {
            Ok(items) => items,
            Err(why) => {
                err.line(&format!("sh: {why}")).await;
                return (MISUSED, false);
            }
        };
        let mut code = 0;
        for item in items {
            let runs = match item.when {
                When::Always => true,
                When::Success => code == 0,
                When::Failure => code != 0,
            };
            if !runs {
                continue;
            }
            // The first command reads the line's own input, each other what the one before it says.
            let mut fed = Input::Nothing;
            let last = item.pipeline.len() - 1;
            for (at, command) in item.pipeline.iter().enumerate() {
                let memory = Arc::new(Mutex::new(Vec::new()));
                let into = if at == last { out.clone() } else { Pipe::Memory(Arc::clone(&memory)) };
                let from = if at == 0 { &mut *input } else { &mut fed };
                let (ended, exit) = self.piped(command, from, into, err.clone()).await;
                code = ended;
                if exit {
                    return (code, true);
                }
                fed = Input::Text(std::mem::take(&mut memory.lock().unwrap_or_else(PoisonError::into_inner)));
            }
        }
        (code, false)
    }

    async fn piped(&self, command: &Command, input: &mut Input, out: Pipe, err: Pipe) -> (i32, bool) {
        let value = |name: &str| self.environment.get(name).cloned().unwrap_or_default();
        let words = command.words.iter().map(|word| word.text(value)).collect();
        let out = if command.silent { Pipe::Null } else { out };
        let err = match (command.errors_too, command.no_errors) {
            (true, _) => out.clone(),
            (false, true) => Pipe::Null,
            (false, false) => err,
        };
        self.command(words, input, out, err).await
    }

    /// Boxed, because a shell may run in a shell.
    fn command<'a>(
        &'a self,
        words: Vec<String>,
        input: &'a mut Input,
        out: Pipe,
        err: Pipe,
    ) -> BoxFuture<'a, (i32, bool)> {
        Box::pin(async move {
            let (name, arguments) = match words.split_first() {
                Some((name, arguments)) => (name.rsplit('/').next().unwrap_or(name), arguments),
                None => return (0, false),
            };
            let code = match name {
                "exit" => {
                    let code = arguments.first().and_then(|text| text.parse().ok()).unwrap_or(0);
                    return (code, true);
                }
                "sh" | "ash" | "bash" | "dash" | "zsh" => self.script(arguments, input, &out, &err).await,
                "tini" | "command" | "exec" => {
                    let rest = arguments.iter().skip_while(|word| word.starts_with('-')).cloned().collect();
                    self.command(rest, input, out, err).await.0
                }
                "true" | ":" => 0,
                "false" => 1,
                "echo" => echo(arguments, &out).await,
                "cat" => cat(arguments, input, &out, &err).await,
                "env" | "printenv" => self.print_environment(arguments, &out).await,
                "hostname" => {
                    out.line(&self.hostname).await;
                    0
                }
                "sleep" => sleep(arguments, &err).await,
                "nc" | "netcat" | "ncat" => netcat::run(&self.dialer, arguments, input, &out, &err).await,
                "nslookup" => names::nslookup(&self.dialer, self.dns, arguments, &out).await,
                "dig" => names::dig(&self.dialer, self.dns, arguments, &out).await,
                "curl" | "wget" => fetch(&self.dialer, name, arguments, &out, &err).await,
                "request" => request::request(arguments, &self.dialer, &out, &err).await,
                _ => {
                    let text = format!(
                        "sh: {name}: not found: a pod of the sandbox has {COMMANDS}; an image \"process:<command>\" has all of this machine"
                    );
                    err.line(&text).await;
                    NOT_FOUND
                }
            };
            (code, false)
        })
    }

    /// `sh -c LINE`, or line by line what is sent.
    async fn script(&self, arguments: &[String], input: &mut Input, out: &Pipe, err: &Pipe) -> i32 {
        let flags = arguments.iter().take_while(|word| word.starts_with('-')).count();
        if arguments[..flags].iter().any(|flag| flag.ends_with('c')) {
            let line = arguments.get(flags).map_or("", String::as_str);
            return self.line(line, input, out, err).await.0;
        }
        let mut code = 0;
        let mut waiting = Vec::new();
        while let Some(piece) = input.next().await {
            waiting.extend_from_slice(&piece);
            while let Some(end) = waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = waiting.drain(..=end).collect();
                let (ended, exit) =
                    self.line(&String::from_utf8_lossy(&line), &mut Input::Nothing, out, err).await;
                code = ended;
                if exit {
                    return code;
                }
            }
        }
        if waiting.is_empty() {
            return code;
        }
        self.line(&String::from_utf8_lossy(&waiting), &mut Input::Nothing, out, err).await.0
    }

    async fn print_environment(&self, asked: &[String], out: &Pipe) -> i32 {
        if let Some(name) = asked.first() {
            let Some(value) = self.environment.get(name) else { return 1 };
            out.line(value).await;
            return 0;
        }
        for (name, value) in self.environment.iter() {
            out.line(&format!("{name}={value}")).await;
        }
        0
    }
}

async fn echo(arguments: &[String], out: &Pipe) -> i32 {
    match arguments.split_first() {
        Some((flag, rest)) if flag == "-n" => out.write(rest.join(" ").as_bytes()).await,
        _ => out.line(&arguments.join(" ")).await,
    }
    0
}

async fn cat(arguments: &[String], input: &mut Input, out: &Pipe, err: &Pipe) -> i32 {
    if let Some(file) = arguments.iter().find(|argument| *argument != "-") {
        err.line(&format!("cat: {file}: the sandbox's pods have no files")).await;
        return 1;
    }
    while let Some(piece) = input.next().await {
        out.write(&piece).await;
    }
    0
}

async fn sleep(arguments: &[String], err: &Pipe) -> i32 {
    match arguments.first().map(String::as_str) {
        Some("infinity" | "inf") => std::future::pending().await,
        Some(text) => match super::arguments::duration(text) {
            Some(time) => {
                tokio::time::sleep(time).await;
                0
            }
            None => {
                err.line(&format!("sleep: not a duration: {text}")).await;
                1
            }
        },
        None => {
            err.line("sleep: for how long?").await;
            1
        }
    }
}

/// `curl URL` and `wget -qO- URL`: prints the answer.
async fn fetch(dialer: &Dialer, name: &str, arguments: &[String], out: &Pipe, err: &Pipe) -> i32 {
    let mut patience = PATIENCE;
    let mut url = None;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "-m" | "--max-time" | "--connect-timeout" | "-T" | "--timeout" => {
                patience = rest.next().and_then(|text| super::arguments::duration(text)).unwrap_or(patience);
            }
            "-O" | "-o" | "-w" | "-H" => drop(rest.next()),
            flag if flag.starts_with('-') => {}
            _ => url = Some(argument),
        }
    }
    let Some(url) = url else {
        err.line(&format!("{name}: which address?")).await;
        return MISUSED;
    };
    if url.starts_with("https://") {
        err.line(&format!("{name}: the sandbox's pods speak no TLS: {url}")).await;
        return 1;
    }
    let url = url.trim_start_matches("http://");
    let (host, path) = url.find('/').map_or((url, "/"), |slash| url.split_at(slash));
    let (host, port) = super::arguments::host_and_port(host, 80);
    match http::get(dialer, &host, port, path, patience).await {
        Ok(answer) => {
            out.write(&answer.body).await;
            // As these programs do: wget fails on an error that the server names, curl does not.
            if answer.status >= 400 && name == "wget" {
                err.line(&format!("wget: server returned error {}", answer.status)).await;
                return 1;
            }
            0
        }
        Err(error) => {
            err.line(&format!("{name}: {error}")).await;
            1
        }
    }
}
