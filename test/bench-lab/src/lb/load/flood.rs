//! As much as goes: so many clients at once, each beginning again as soon as it has finished.

use super::{Load, Measured, Tally, WARM_UP, first_failure, sum};
use crate::lb::case::Case;
use crate::lb::wish::{ANSWER, Wish};
use rustix::net::{RecvFlags, recv};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;

/// After a failure, lest a balancer that refuses gets nothing but attempts.
const BREATHER: Duration = Duration::from_millis(10);
/// Taken off a stream at once.
const PIECE: usize = 1 << 20;

pub(super) fn measure(load: &Load, span: Duration, watch: impl Fn(&dyn Fn()) -> (f64, f64, f64)) -> Measured {
    let threads = super::super::processors();
    let tallies: Vec<Arc<Tally>> = (0..threads).map(|_| Arc::default()).collect();
    let (case, clients) = (load.case, load.clients);
    let targets: Arc<[SocketAddr]> = load.to.clone().into();
    let of_threads = tallies.clone();
    // The threads go on until the process ends.
    std::thread::spawn(move || {
        super::super::on_every_processor(move |thread| {
            let (targets, tally) = (Arc::clone(&targets), Arc::clone(&of_threads[thread]));
            async move {
                for client in (0..clients).filter(|client| client % threads == thread) {
                    let (targets, tally) = (Arc::clone(&targets), Arc::clone(&tally));
                    tokio::spawn(async move {
                        let in_turn = targets.iter().cycle().skip(client % targets.len());
                        for target in in_turn {
                            if let Err(error) = one(case, *target, &tally).await {
                                tally.fail(&error);
                                tokio::time::sleep(BREATHER).await;
                            }
                        }
                    });
                }
                std::future::pending().await
            }
        })
    });
    std::thread::sleep(WARM_UP);
    let before = sum(&tallies);
    let (seconds, process_seconds, machine_seconds) = watch(&|| std::thread::sleep(span));
    let after = sum(&tallies);
    Measured {
        seconds,
        done: after.0 - before.0,
        failed: after.1 - before.1,
        failure: first_failure(&tallies),
        process_seconds,
        machine_seconds,
        milliseconds: Vec::new(),
    }
}

/// One connection, for as long as the case has it.
async fn one(case: Case, target: SocketAddr, tally: &Tally) -> io::Result<()> {
    let mut stream = TcpStream::connect(target).await?;
    match case {
        Case::Connections | Case::ConnectionLatency => {
            stream.write_all(&Wish::AnswerAndClose.request()).await?;
            let (mut buffer, mut read) = ([0; 2 * ANSWER], 0);
            loop {
                match stream.read(&mut buffer).await? {
                    0 if read == ANSWER => break,
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    more => read += more,
                }
            }
            tally.done.fetch_add(1, Relaxed);
            Ok(())
        }
        Case::Requests | Case::RequestLatency => {
            stream.set_nodelay(true)?;
            let (mut buffer, request) = ([0; 2 * ANSWER], Wish::Answer.request());
            loop {
                stream.write_all(&request).await?;
                let mut read = 0;
                while read < ANSWER {
                    match stream.read(&mut buffer).await? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        more => read += more,
                    }
                }
                tally.done.fetch_add(1, Relaxed);
            }
        }
        Case::Stream | Case::Streams => {
            stream.write_all(&Wish::Stream.request()).await?;
            let mut scrap = vec![0; PIECE];
            loop {
                stream.readable().await?;
                // With this flag the kernel drops what has come instead of copying it: to count is all that is wanted.
                let discard = || Ok(recv(&stream, &mut scrap[..], RecvFlags::TRUNC)?.1);
                match stream.try_io(Interest::READABLE, discard) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(read) => {
                        tally.done.fetch_add(read as u64, Relaxed);
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
