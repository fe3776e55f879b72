//! One thread per socket, and nothing between it and the kernel: two calls per question.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::time::Instant;

use atoll_dns::Verdict;

use crate::error::ServerError;
use crate::gate::Gate;
use crate::live::Answerer;

/// Longer questions are none.
const LONGEST_QUESTION: usize = 4096;

/// Answers on `socket` in a thread of its own.
pub(crate) fn start(socket: UdpSocket, mut answerer: Answerer, mut gate: Gate) -> Result<(), ServerError> {
    let thread = std::thread::Builder::new().name("dns-udp".to_owned()).stack_size(256 * 1024);
    let run = move || answer_all(&socket, &mut answerer, &mut gate);
    thread.spawn(run).map(drop).map_err(ServerError::Thread)
}

fn answer_all(socket: &UdpSocket, answerer: &mut Answerer, gate: &mut Gate) {
    let mut packet = [0; LONGEST_QUESTION];
    let mut reply = Vec::with_capacity(LONGEST_QUESTION);
    while !answerer.over() {
        let (length, client) = match socket.recv_from(&mut packet) {
            Ok(received) => received,
            Err(error) => {
                match error.kind() {
                    // Nothing came; or an earlier answer found no listening client, which the kernel tells the next reader.
                    ErrorKind::WouldBlock
                    | ErrorKind::TimedOut
                    | ErrorKind::Interrupted
                    | ErrorKind::ConnectionRefused => {}
                    _ => {
                        tracing::warn!(%error, "cannot read a datagram");
                        std::thread::sleep(std::time::Duration::from_millis(100));
                    }
                }
                continue;
            }
        };
        let since = Instant::now();
        let (transport, verdict) = gate.judge(client.ip(), since);
        let answered = match verdict {
            Verdict::Answer => answerer.answer(&packet[..length], transport, &mut reply),
            Verdict::Truncate => answerer.send_to_tcp(&packet[..length], &mut reply),
            Verdict::Drop => {
                answerer.refuse();
                None
            }
        };
        if let Some(summary) = answered {
            // A client that can't be reached asks again, or has gone.
            let _ = socket.send_to(&reply, client);
            answerer.count(summary, transport, since);
        }
    }
}
