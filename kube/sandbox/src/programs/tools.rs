//! `busybox`, `alpine`, `nicolaka/netshoot`: pods that are there to be used by `exec`.

use super::{Context, Input, Pipe, Shell, Stdin, command_line};

pub(super) async fn run(context: Context, stdin: Stdin) -> i32 {
    let mut words: Vec<String> = context.command.iter().chain(&context.arguments).cloned().collect();
    if words.is_empty() {
        words.push("sh".to_owned());
    }
    if let Some(why) = not_run(&words) {
        context.complain(&format!("sandbox: this pod waits to be used by exec: {why}"));
        return std::future::pending().await;
    }
    let shell = Shell {
        dialer: context.dialer.clone(),
        environment: context.environment.clone(),
        hostname: context.pod.clone(),
        dns: context.dns,
    };
    let input = stdin.map_or(Input::Nothing, Input::Client);
    shell.run(words, input, Pipe::stdout(&context.log), Pipe::stderr(&context.log)).await
}

/// Why a command is not run: scripts with loops and files that are followed keep a pod there, and that is their purpose.
fn not_run(words: &[String]) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| !matches!(*word, "--")).collect();
    match words.as_slice() {
        [.., "tail", "-f", _] => Some("it follows no file".to_owned()),
        [.., flag, script] if flag.starts_with('-') && flag.ends_with('c') => {
            command_line::parse(script).err().map(|error| error.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_that_wait_are_not_run() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (command, waits) in [
            (words(&["/bin/sh", "-ec", "while :; do echo '.'; sleep 5 ; done"]), true),
            (words(&["tail", "-f", "/dev/null"]), true),
            (words(&["sh", "-c", "echo hello; sleep 3"]), false),
            (words(&["tini", "--", "sleep", "infinity"]), false),
        ] {
            assert_eq!(not_run(&command).is_some(), waits, "{command:?}");
        }
    }
}
