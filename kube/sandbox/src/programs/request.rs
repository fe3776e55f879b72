//! `jeremyot/request`: asks over HTTP for a while and prints every answer with its time.

use super::arguments::{Flags, host_and_port};
use super::{Context, Pipe, http};
use crate::network::Dialer;
use jiff::Timestamp;
use std::time::Duration;
use tokio::time::Instant;

const DURATION: Duration = Duration::from_secs(10);
const INTERVAL: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(5);
const PORT: u16 = 80;

pub(super) async fn run(context: Context) -> i32 {
    let given = context.given();
    request(&given, &context.dialer, &Pipe::stdout(&context.log), &Pipe::stderr(&context.log)).await
}

/// Asks `--address` for `--duration`, every `--interval`.
pub(super) async fn request(arguments: &[String], dialer: &Dialer, out: &Pipe, err: &Pipe) -> i32 {
    let read = Flags::parse(arguments).and_then(|flags| {
        let address = flags.get("address").ok_or("--address is missing")?;
        let (host, port) = host_and_port(address, flags.port("port", PORT)?);
        Ok((host, port, flags.duration("duration", DURATION)?, flags.duration("interval", INTERVAL)?))
    });
    let (host, port, duration, interval) = match read {
        Ok(read) => read,
        Err(why) => {
            err.line(&format!("request: {why}")).await;
            return 1;
        }
    };
    let start = Instant::now();
    loop {
        let said = match http::get(dialer, &host, port, "/", PATIENCE).await {
            Ok(answer) => String::from_utf8_lossy(&answer.body).trim_end().to_owned(),
            Err(error) => format!("error: {error}"),
        };
        out.line(&format!("{} {said}", time(Timestamp::now()))).await;
        // It stays for the whole time, so that its log can be read.
        let left = duration.saturating_sub(start.elapsed());
        tokio::time::sleep(left.min(interval)).await;
        if left <= interval {
            return 0;
        }
    }
}

/// The time in UTC, as Go's logger writes it.
fn time(now: Timestamp) -> String {
    now.strftime("%Y/%m/%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_written_as_in_the_document() {
        let at = "2022-07-24T15:13:08.5Z".parse().unwrap();
        assert_eq!(super::time(at), "2022/07/24 15:13:08");
    }
}
