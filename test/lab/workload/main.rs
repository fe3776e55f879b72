//! The program inside the lab's pods: answers requests, and makes them.
//!
//! It stands in for `jeremyot/serve` and `jeremyot/request`, which Kubernetes' and Karmada's documents use,
//! with the same flags. Standard library only, because the lab compiles it by itself, statically.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

const PATIENCE: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("serve") => Flags::parse(&arguments[1..]).and_then(|flags| serve(&flags)),
        Some("request") => Flags::parse(&arguments[1..]).and_then(|flags| request(&flags)),
        Some("fetch") => Flags::parse(&arguments[1..]).and_then(|flags| fetch(&flags)),
        Some("pause") => loop {
            std::thread::park();
        },
        _ => Err("usage: workload serve|request|fetch|pause [--flag=value …]".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("workload: {what}");
            ExitCode::FAILURE
        }
    }
}

/// Answers HTTP on `--port` (8080) and, if asked, datagrams on `--udp-port`, with `--message`.
fn serve(flags: &Flags) -> Result<(), String> {
    let template = flags.text("message", "hello from {{env \"POD_NAME\"}} at {{addr}}");
    let port: u16 = flags.number("port", 8080)?;
    if let Some(udp) = flags.get("udp-port") {
        let udp: u16 = udp.parse().map_err(|_| format!("--udp-port: not a port: {udp}"))?;
        let socket = UdpSocket::bind(("::", udp)).map_err(|e| format!("UDP port {udp}: {e}"))?;
        let template = template.clone();
        std::thread::spawn(move || answer_datagrams(&socket, &template));
    }
    let listener = TcpListener::bind(("::", port)).map_err(|e| format!("TCP port {port}: {e}"))?;
    for connection in listener.incoming().flatten() {
        let template = template.clone();
        std::thread::spawn(move || answer_http(connection, &template));
    }
    Ok(())
}

fn answer_datagrams(socket: &UdpSocket, template: &str) {
    let mut buffer = [0; 2048];
    while let Ok((_, from)) = socket.recv_from(&mut buffer) {
        let _ = socket.send_to(render(template, &own_address()).as_bytes(), from);
    }
}

fn answer_http(connection: TcpStream, template: &str) {
    let _ = connection.set_read_timeout(Some(Duration::from_secs(60)));
    let _ = connection.set_nodelay(true);
    let address =
        connection.local_addr().map_or(String::new(), |address| address.ip().to_canonical().to_string());
    let Ok(mut writer) = connection.try_clone() else { return };
    let mut reader = BufReader::new(connection);
    loop {
        let mut asked_to_close = false;
        let mut lines = 0;
        loop {
            let mut line = String::new();
            match (&mut reader).take(16 * 1024).read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) if line.trim_end().is_empty() && lines > 0 => break,
                Ok(_) => asked_to_close |= line.trim_end().eq_ignore_ascii_case("connection: close"),
            }
            lines += 1;
        }
        let body = render(template, &address) + "\n";
        let how = if asked_to_close { "close" } else { "keep-alive" };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: {how}\r\n\r\n",
            body.len()
        );
        if writer.write_all((head + &body).as_bytes()).is_err() || asked_to_close {
            return;
        }
    }
}

/// Asks `--address` (port 80 unless it names one) over HTTP for `--duration`, every `--interval`.
fn request(flags: &Flags) -> Result<(), String> {
    let address = flags.get("address").ok_or("--address is missing")?;
    let duration = flags.duration("duration", Duration::from_secs(10))?;
    let interval = flags.duration("interval", Duration::from_secs(1))?;
    let start = Instant::now();
    loop {
        match ask(&with_port(address), PATIENCE) {
            Ok(body) => println!("{} {}", now(), body.trim_end()),
            Err(error) => println!("{} error: {error}", now()),
        }
        if start.elapsed() + interval > duration {
            return Ok(());
        }
        std::thread::sleep(interval);
    }
}

/// Asks `--address` once, over HTTP or with `--udp=true` by a datagram, and prints the answer alone.
fn fetch(flags: &Flags) -> Result<(), String> {
    let address = with_port(flags.get("address").ok_or("--address is missing")?);
    let patience = flags.duration("timeout", PATIENCE)?;
    let answer = match flags.get("udp") {
        Some("true") => ask_by_datagram(&address, patience),
        _ => ask(&address, patience),
    };
    print!("{}", answer.map_err(|error| format!("{address}: {error}"))?);
    Ok(())
}

fn ask_by_datagram(address: &str, patience: Duration) -> std::io::Result<String> {
    let target = address.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
    let socket = UdpSocket::bind(if target.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" })?;
    socket.set_read_timeout(Some(patience))?;
    socket.connect(target)?;
    socket.send(b"hello\n")?;
    let mut buffer = [0; 2048];
    let count = socket.recv(&mut buffer)?;
    Ok(String::from_utf8_lossy(&buffer[..count]).into_owned())
}

fn ask(address: &str, patience: Duration) -> std::io::Result<String> {
    let target = address.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
    let mut connection = TcpStream::connect_timeout(&target, patience)?;
    connection.set_read_timeout(Some(patience))?;
    write!(connection, "GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer)?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::InvalidData)?;
    Ok(body.to_owned())
}

fn with_port(address: &str) -> String {
    match address.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']')) => {
            address.to_owned()
        }
        _ if address.contains(':') && !address.starts_with('[') => format!("[{address}]:80"),
        _ => format!("{address}:80"),
    }
}

/// Fills in `{{env "NAME"}}` and `{{addr}}`.
fn render(template: &str, address: &str) -> String {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let Some((inside, after)) = after.split_once("}}") else {
            text.push_str("{{");
            rest = after;
            continue;
        };
        match inside.trim().split_once(' ') {
            None if inside.trim() == "addr" => text.push_str(address),
            Some(("env", name)) => {
                text.push_str(&std::env::var(name.trim().trim_matches(['"', '\\'])).unwrap_or_default());
            }
            _ => text.push_str(&format!("{{{{{inside}}}}}")),
        }
        rest = after;
    }
    text + rest
}

fn own_address() -> String {
    std::env::var("POD_IP").unwrap_or_default()
}

/// The time in UTC, as Go's logger writes it.
fn now() -> String {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days are counted from 1 March of year 0, so that a leap day is a year's last.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}/{month:02}/{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

struct Flags(Vec<(String, String)>);

impl Flags {
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut flags = Vec::new();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let name = argument.strip_prefix("--").ok_or(format!("not a flag: {argument}"))?;
            match name.split_once('=') {
                Some((name, value)) => flags.push((name.to_owned(), value.to_owned())),
                None => {
                    let value = rest.next().ok_or(format!("--{name} needs a value"))?;
                    flags.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        Ok(Self(flags))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(flag, _)| flag == name).map(|(_, value)| value.as_str())
    }

    fn text(&self, name: &str, default: &str) -> String {
        self.get(name).unwrap_or(default).to_owned()
    }

    fn number(&self, name: &str, default: u16) -> Result<u16, String> {
        self.get(name)
            .map_or(Ok(default), |text| text.parse().map_err(|_| format!("--{name}: not a number: {text}")))
    }

    fn duration(&self, name: &str, default: Duration) -> Result<Duration, String> {
        let Some(text) = self.get(name) else { return Ok(default) };
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let count: u64 = digits.parse().map_err(|_| format!("--{name}: not a duration: {text}"))?;
        match &text[digits.len()..] {
            "ms" => Ok(Duration::from_millis(count)),
            "s" | "" => Ok(Duration::from_secs(count)),
            "m" => Ok(Duration::from_secs(60 * count)),
            _ => Err(format!("--{name}: use ms, s or m: {text}")),
        }
    }
}
