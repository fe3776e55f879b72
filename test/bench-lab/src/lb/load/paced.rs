//! At a fixed rate, far below what any of them carries: how long each request or connection takes. Blocking threads, which wake up sooner than tasks.

use super::{Load, Measured, Tally, WARM_UP, first_failure, sum};
use crate::lb::case::Case;
use crate::lb::wish::{ANSWER, Wish};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const THREADS: u32 = 4;
/// Nothing takes this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn measure(load: &Load, span: Duration, watch: impl Fn(&dyn Fn()) -> (f64, f64, f64)) -> Measured {
    let tallies: Vec<Arc<Tally>> = (0..THREADS).map(|_| Arc::default()).collect();
    let (counts, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let samples: Arc<Mutex<Vec<f64>>> = Arc::default();
    let every = Duration::from_secs(1) * THREADS / load.rate.max(1);
    let mut threads = Vec::new();
    for (number, tally) in (0..THREADS).zip(&tallies) {
        let (tally, counts, ended) = (Arc::clone(tally), Arc::clone(&counts), Arc::clone(&ended));
        let (samples, case, targets) = (Arc::clone(&samples), load.case, load.to.clone());
        threads.push(std::thread::spawn(move || {
            let (mut own, mut kept) = (Vec::new(), None);
            // Evenly between the others.
            let mut next = Instant::now() + every * number / THREADS;
            for target in targets.iter().cycle().skip(number as usize % targets.len()) {
                if ended.load(Relaxed) {
                    break;
                }
                std::thread::sleep(next.saturating_duration_since(Instant::now()));
                next = (next + every).max(Instant::now());
                let counted = counts.load(Relaxed);
                let start = Instant::now();
                let outcome = match case {
                    Case::RequestLatency => request(&mut kept, *target),
                    _ => connection(*target),
                };
                let took = start.elapsed();
                match outcome {
                    Ok(()) if counted => own.push(took.as_secs_f64() * 1000.0),
                    Ok(()) => {}
                    Err(error) => tally.fail(&error),
                }
            }
            samples.lock().unwrap_or_else(PoisonError::into_inner).extend(own);
        }));
    }
    std::thread::sleep(WARM_UP);
    let before = sum(&tallies);
    counts.store(true, Relaxed);
    let (seconds, process_seconds, machine_seconds) = watch(&|| std::thread::sleep(span));
    ended.store(true, Relaxed);
    for thread in threads {
        let _ = thread.join();
    }
    let milliseconds = std::mem::take(&mut *samples.lock().unwrap_or_else(PoisonError::into_inner));
    Measured {
        seconds,
        done: milliseconds.len() as u64,
        failed: sum(&tallies).1 - before.1,
        failure: first_failure(&tallies),
        process_seconds,
        machine_seconds,
        milliseconds,
    }
}

/// One whole connection: made, used, ended.
pub(super) fn connection(target: SocketAddr) -> io::Result<()> {
    let mut stream = connect(target)?;
    stream.write_all(&Wish::AnswerAndClose.request())?;
    let mut answer = Vec::with_capacity(2 * ANSWER);
    match stream.read_to_end(&mut answer)? {
        ANSWER => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// One request on a connection that is kept for the next.
fn request(kept: &mut Option<TcpStream>, target: SocketAddr) -> io::Result<()> {
    let mut stream = match kept.take() {
        Some(stream) => stream,
        None => connect(target)?,
    };
    stream.write_all(&Wish::Answer.request())?;
    stream.read_exact(&mut [0; ANSWER])?;
    *kept = Some(stream);
    Ok(())
}

fn connect(target: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&target, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}
