//! `alpine/socat`: answers TCP or UDP with one line, or with what was sent.
//!
//! Its arguments may be socat's own or a shell script around it, as the MCS suite has it. The script is not run: the
//! listener is read off it, and a variable that is not set stands for the pod's address, which is what such scripts work out.

use super::command_line::{self, Word};
use super::{Context, Run, failed};
use crate::network::Protocol;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const LARGEST_DATAGRAM: usize = 64 * 1024;
/// How long a client that was answered may take to go.
const FAREWELL: Duration = Duration::from_secs(1);

/// What socat was asked to do.
#[derive(Debug, PartialEq, Eq)]
struct SocatArguments {
    protocol: Protocol,
    port: u16,
    /// The command whose output is the answer; without one, what is sent comes back.
    command: Option<String>,
    crlf: bool,
}

pub(super) fn start(context: &Context) -> Run {
    let text = context.command.iter().chain(&context.arguments).cloned().collect::<Vec<_>>().join(" ");
    let asked = match read(&text) {
        Ok(asked) => asked,
        Err(why) => return failed(context, &format!("socat: {why}")),
    };
    let answer = asked.command.as_deref().map(|command| {
        said(command, &context.environment, &context.address.to_string())
            .map(|line| Bytes::from(line + if asked.crlf { "\r\n" } else { "\n" }))
    });
    let answer = match answer.transpose() {
        Ok(answer) => answer,
        Err(why) => return failed(context, &format!("socat: {why}")),
    };
    let run = match asked.protocol {
        Protocol::Tcp => tcp(context, asked.port, answer),
        Protocol::Udp => udp_answering(context, asked.port, answer),
    };
    run.unwrap_or_else(|why| failed(context, &format!("socat: {why}")))
}

fn tcp(context: &Context, port: u16, answer: Option<Bytes>) -> Result<Run, String> {
    let listening = context.network.listen_tcp(context.at(port));
    let (listener, place) =
        listening.map_err(|error| format!("cannot listen on TCP port {port}: {error}"))?;
    context.note(&place);
    Ok(Box::pin(async move {
        let _place = place;
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(converse(stream, answer.clone()));
                    }
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
                Some(_) = connections.join_next() => {}
            }
        }
    }))
}

async fn converse(mut stream: TcpStream, answer: Option<Bytes>) {
    let (mut reader, mut writer) = stream.split();
    match answer {
        Some(answer) => {
            if writer.write_all(&answer).await.is_ok() && writer.shutdown().await.is_ok() {
                // Closed with something unread, the connection would be reset and the answer lost.
                let mut rest = [0; 1024];
                let drained = async { while matches!(reader.read(&mut rest).await, Ok(1..)) {} };
                let _ = tokio::time::timeout(FAREWELL, drained).await;
            }
        }
        None => {
            let _ = tokio::io::copy(&mut reader, &mut writer).await;
        }
    }
}

/// Answers every datagram with `answer`.
pub(super) fn udp(context: &Context, port: u16, answer: Bytes) -> Result<Run, String> {
    udp_answering(context, port, Some(answer))
}

fn udp_answering(context: &Context, port: u16, answer: Option<Bytes>) -> Result<Run, String> {
    let listening = context.network.listen_udp(context.at(port));
    let (socket, place) = listening.map_err(|error| format!("cannot listen on UDP port {port}: {error}"))?;
    context.note(&place);
    Ok(Box::pin(async move {
        let _place = place;
        let mut buffer = vec![0; LARGEST_DATAGRAM];
        loop {
            // An error is an earlier datagram's that a client did not want.
            let Ok((count, from)) = socket.recv_from(&mut buffer).await else { continue };
            let _ = socket.send_to(answer.as_deref().unwrap_or(&buffer[..count]), from).await;
        }
    }))
}

/// Reads the listener off socat's arguments or a script: the last one for IPv4, which is what the sandbox has.
fn read(text: &str) -> Result<SocatArguments, String> {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    let found: Vec<_> = lines.iter().filter_map(|line| listener(line)).collect();
    let chosen = found.iter().rev().find(|(_, v6)| !v6).or(found.last());
    let (asked, _) =
        chosen.ok_or("the sandbox understands `TCP-LISTEN:<port>,…` and `UDP-LISTEN:<port>,…` alone")?;
    Ok(SocatArguments { command: asked.command.clone(), ..*asked })
}

/// The listener of one line, and whether it is for IPv6.
fn listener(line: &str) -> Option<(SocatArguments, bool)> {
    const LISTEN: &str = "-LISTEN:";
    let at = line.find(LISTEN)?;
    let kind = line[..at].rsplit(|letter: char| !letter.is_ascii_alphanumeric()).next()?;
    let protocol = match kind.trim_end_matches(['4', '6']) {
        "TCP" => Protocol::Tcp,
        "UDP" => Protocol::Udp,
        _ => return None,
    };
    let rest = &line[at + LISTEN.len()..];
    let (options, action) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let mut options = options.split(',');
    let port = options.next()?.parse().ok()?;
    let command = ["SYSTEM:", "EXEC:"].iter().find_map(|word| action.trim().strip_prefix(word)).map(unquoted);
    let asked = SocatArguments {
        protocol,
        port,
        command: command.filter(|command| command != "cat"),
        crlf: options.any(|option| option == "crlf"),
    };
    Some((asked, kind.ends_with('6')))
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = |quote: char| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    inner('\'').or_else(|| inner('"')).unwrap_or(text).to_owned()
}

/// What an `echo` says.
fn said(command: &str, environment: &BTreeMap<String, String>, address: &str) -> Result<String, String> {
    let line = command_line::parse(command).map_err(|error| error.to_string())?;
    let words: Vec<String> = match line.as_slice() {
        [one] if one.pipeline.len() == 1 => {
            let value = |name: &str| environment.get(name).cloned().unwrap_or_else(|| address.to_owned());
            one.pipeline[0].words.iter().map(|word: &Word| word.text(value)).collect()
        }
        _ => Vec::new(),
    };
    match words.split_first() {
        Some((echo, rest)) if echo == "echo" => Ok(rest.join(" ")),
        _ => Err(format!("the sandbox supports only `SYSTEM:echo …` and `EXEC:cat`, not: {command}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_is_read_off_arguments_and_scripts() {
        let script = "if $has_ipv6; then\n\tsocat -v TCP6-LISTEN:42,crlf,fork SYSTEM:'echo \"six\"'\nelse\n\t# TCP-LISTEN:1\n\tsocat -v -v TCP-LISTEN:42,crlf,reuseaddr,fork SYSTEM:'echo \"pod ip $first_ip\"'\nfi";
        for (text, protocol, command, crlf) in [
            (script, Protocol::Tcp, Some("echo \"pod ip $first_ip\""), true),
            (
                "-v TCP6-LISTEN:42,crlf,fork,ipv6only=0 SYSTEM:echo pod ip 127.1.1.1",
                Protocol::Tcp,
                Some("echo pod ip 127.1.1.1"),
                true,
            ),
            ("UDP-LISTEN:42,fork EXEC:cat", Protocol::Udp, None, false),
        ] {
            let asked = read(text).unwrap();
            let want = SocatArguments { protocol, port: 42, command: command.map(str::to_owned), crlf };
            assert_eq!(asked, want, "{text}");
        }
        assert!(read("OPENSSL-LISTEN:42").is_err());
    }

    #[test]
    fn variables_that_are_not_set_stand_for_the_address() {
        let environment = BTreeMap::from([("WHO".to_owned(), "me".to_owned())]);
        assert_eq!(
            said("echo \"pod ip $first_ip\" $WHO", &environment, "127.1.1.1").unwrap(),
            "pod ip 127.1.1.1 me"
        );
        assert!(said("date", &environment, "127.1.1.1").is_err());
    }
}
