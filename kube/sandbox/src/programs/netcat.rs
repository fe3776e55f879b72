//! `nc`: sends what it is given to an address and prints what comes back.

use super::{Input, Pipe};
use crate::network::Dialer;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;

/// How long an answer to a datagram is waited for by default.
const PATIENCE: Duration = Duration::from_secs(1);
/// So much is read at once.
const PIECE: usize = 16 * 1024;

#[derive(Debug, Default, PartialEq)]
struct NetcatArguments {
    verbose: bool,
    udp: bool,
    only_look: bool,
    wait: Option<Duration>,
    place: Vec<String>,
}

pub(super) async fn run(
    dialer: &Dialer,
    arguments: &[String],
    input: &mut Input,
    out: &Pipe,
    err: &Pipe,
) -> i32 {
    let asked = read(arguments);
    let [host, port] = asked.place.as_slice() else {
        err.line("usage: nc [-u] [-v] [-z] [-w SECONDS] HOST PORT").await;
        return 1;
    };
    let Ok(port) = port.parse() else {
        err.line(&format!("nc: not a port: {port}")).await;
        return 1;
    };
    let outcome = match asked.udp {
        true => datagrams(dialer, host, port, &asked, input, out).await,
        false => connection(dialer, host, port, &asked, input, out, err).await,
    };
    match outcome {
        Ok(()) => 0,
        Err(why) => {
            err.line(&format!("nc: {why}")).await;
            1
        }
    }
}

fn read(arguments: &[String]) -> NetcatArguments {
    let mut asked = NetcatArguments::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(letters) = argument.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            asked.place.push(argument.clone());
            continue;
        };
        for (at, letter) in letters.char_indices() {
            match letter {
                'v' => asked.verbose = true,
                'u' => asked.udp = true,
                'z' => asked.only_look = true,
                'w' | 'q' | 'i' => {
                    let own = &letters[at + 1..];
                    let text = if own.is_empty() { rest.next().map_or("", String::as_str) } else { own };
                    if letter == 'w' {
                        asked.wait = super::arguments::duration(text);
                    }
                    break;
                }
                _ => {}
            }
        }
    }
    asked
}

async fn connection(
    dialer: &Dialer,
    host: &str,
    port: u16,
    asked: &NetcatArguments,
    input: &mut Input,
    out: &Pipe,
    err: &Pipe,
) -> Result<(), String> {
    let connect = dialer.connect_tcp(host, port);
    let reached = match asked.wait {
        Some(wait) => tokio::time::timeout(wait, connect).await.map_err(|_| format!("{host}: timed out"))?,
        None => connect.await,
    };
    let mut reached = reached.map_err(|error| error.to_string())?;
    if asked.verbose {
        let address = reached.dialled.ip();
        err.line(&format!("Connection to {host} ({address}) {port} port [tcp/*] succeeded!")).await;
    }
    if asked.only_look {
        return Ok(());
    }
    let (mut reader, mut writer) = reached.stream.split();
    let sending = async {
        while let Some(piece) = input.next().await {
            if writer.write_all(&piece).await.is_err() {
                break;
            }
        }
        // Both may have ended it first.
        let _ = writer.shutdown().await;
        std::future::pending::<()>().await;
    };
    let reading = async {
        let mut piece = vec![0; PIECE];
        loop {
            let quiet = asked.wait.unwrap_or(Duration::MAX);
            match tokio::time::timeout(quiet, reader.read(&mut piece)).await {
                Ok(Ok(count)) if count > 0 => out.write(&piece[..count]).await,
                _ => return,
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = sending => {}
    }
    Ok(())
}

async fn datagrams(
    dialer: &Dialer,
    host: &str,
    port: u16,
    asked: &NetcatArguments,
    input: &mut Input,
    out: &Pipe,
) -> Result<(), String> {
    let (socket, _) = dialer.connect_udp(host, port).await.map_err(|error| error.to_string())?;
    let wait = asked.wait.unwrap_or(PATIENCE);
    loop {
        tokio::select! {
            piece = input.next() => match piece {
                Some(piece) => socket.send(&piece).await.map(drop).map_err(|error| error.to_string())?,
                None => break,
            },
            answered = answer(&socket, out) => answered?,
        }
    }
    // Quiet for as long as was asked is the end.
    while let Ok(answered) = tokio::time::timeout(wait, answer(&socket, out)).await {
        answered?;
    }
    Ok(())
}

async fn answer(socket: &UdpSocket, out: &Pipe) -> Result<(), String> {
    let mut piece = vec![0; 64 * 1024];
    let count = socket.recv(&mut piece).await.map_err(|error| error.to_string())?;
    out.write(&piece[..count]).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_read_alone_and_together() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let asked = read(&words("-v -w 2 -4 web.shop 42"));
        assert_eq!(asked.wait, Some(Duration::from_secs(2)));
        assert!(asked.verbose && !asked.udp);
        assert_eq!(asked.place, ["web.shop", "42"]);
        let asked = read(&words("-zuw1 web 53"));
        assert!(asked.only_look && asked.udp);
        assert_eq!(asked.wait, Some(Duration::from_secs(1)));
    }
}
