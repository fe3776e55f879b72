//! What runs in the probe's pod: a script for any POSIX shell with `nc` and `nslookup`, and how its output is read. Pure.
//!
//! The kernel knows more than `nc` says, and says it in the same words everywhere: the states of connections and the bytes that were
//! not acknowledged are read from `/proc/net/tcp` while `nc` holds its connections open.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes of a payload: more than one packet of any usual MTU, less than any receive window.
const PAYLOAD: usize = 8000;
/// Unacknowledged bytes from which on a connection is stalled. A FIN counts as one.
const STALLED: u64 = 100;
/// No more output than this is read.
pub(super) const LONGEST_OUTPUT: usize = 256 * 1024;
/// No line of a tool is longer.
const LONGEST_LINE: usize = 1200;

/// What is probed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// TCP connections, each with whether a request with a long header is sent.
    pub(crate) connects: Vec<(SocketAddr, bool)>,
    /// Names, without the dot at the end.
    pub(crate) names: Vec<String>,
}

/// How a connection went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It opened, and what was sent arrived.
    Connected,
    /// It opened, and what was sent did not arrive.
    Stalled,
    /// It was refused.
    Refused,
    /// No answer.
    Silent,
    /// The tools in the image can't tell; with their words.
    Unknown(String),
}

/// How a name was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// With these addresses.
    Addresses(BTreeSet<IpAddr>),
    /// There is no such name.
    NotFound,
    /// The server could not answer.
    Failed,
    /// No server answered.
    Silent,
    /// The tools in the image can't tell; with their words.
    Unknown(String),
}

/// What came of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Results {
    /// For each connection of the plan.
    pub(crate) connects: Vec<Reach>,
    /// For each name of the plan.
    pub(crate) names: Vec<Answer>,
}

const FUNCTIONS: &str = r#"V=
case "$(timeout 2 nc -h 2>&1)" in *-v*) V=-v;; esac
big() { printf 'GET / HTTP/1.0\r\nX-Atoll-Check: '; head -c PAYLOAD /dev/zero | tr '\0' x; printf '\r\n\r\n'; }
c() {
  out=$( { if [ "$4" = 1 ]; then big; fi; sleep 2; } 2>/dev/null | timeout 3 nc $V "$2" "$3" 2>&1 >/dev/null )
  printf '@@C %s %s\n' "$1" "$(printf %s "$out" | tr '\n' ' ' | cut -c1-300)"
}
n() {
  out=$(timeout 3 nslookup "$2" 2>&1); code=$?
  printf '@@N %s %s %s\n' "$1" "$code" "$(printf %s "$out" | tr '\n' '|' | cut -c1-1000)"
}
tentative() {
  if [ -r /proc/net/if_inet6 ]; then
    while read -r address index length scope flags name; do
      case "$flags" in [4-7]?|[c-f]?) return 0;; esac
    done < /proc/net/if_inet6
  fi
  return 1
}
s() {
  for file in /proc/net/tcp /proc/net/tcp6; do
    if [ -r $file ]; then while read -r line; do printf '@@S %s %s\n' "$1" "$line"; done < $file; fi
  done
}
"#;

impl Plan {
    /// The script. Nothing in it comes from outside as text: addresses, ports and names are checked types or DNS labels.
    pub(crate) fn script(&self) -> String {
        let mut script = FUNCTIONS.replace("PAYLOAD", &PAYLOAD.to_string());
        // A pod that has just started can't use its IPv6 address before the kernel knows that no other pod has it.
        script.push_str("for i in 1 2 3; do if tentative; then sleep 1; fi; done\n");
        for (i, (to, payload)) in self.connects.iter().enumerate() {
            script.push_str(&format!("c {i} {} {} {} &\n", to.ip(), to.port(), u8::from(*payload)));
        }
        for (i, name) in self.names.iter().enumerate() {
            let plain: String =
                name.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')).collect();
            script.push_str(&format!("n {i} {plain}. &\n"));
        }
        script.push_str("sleep 1\ns 1\nsleep 1\ns 2\nwait\necho @@END\n");
        script
    }

    /// Reads what the script printed; none if it did not come to its end.
    pub(crate) fn read(&self, output: &str) -> Option<Results> {
        let mut said: Vec<Option<String>> = vec![None; self.connects.len()];
        let mut names: Vec<Answer> = vec![Answer::Unknown("no output".to_owned()); self.names.len()];
        let mut sockets: Vec<(u8, Socket)> = Vec::new();
        let mut ended = false;
        for line in output.lines().filter(|line| line.len() <= LONGEST_LINE) {
            let Some(line) = line.strip_prefix("@@") else { continue };
            let mut words = line.splitn(3, ' ');
            let (kind, id, rest) = (words.next(), words.next(), words.next().unwrap_or_default());
            let id: usize = id.and_then(|id| id.parse().ok()).unwrap_or(usize::MAX);
            match kind {
                Some("END") => ended = true,
                Some("C") => {
                    if let Some(slot) = said.get_mut(id) {
                        *slot = Some(rest.trim().to_owned());
                    }
                }
                Some("N") => {
                    if let Some(slot) = names.get_mut(id) {
                        *slot = answer(rest);
                    }
                }
                Some("S") => {
                    let sample = u8::try_from(id).unwrap_or_default();
                    sockets.extend(socket(rest).map(|socket| (sample, socket)));
                }
                Some(_) | None => {}
            }
        }
        if !ended {
            return None;
        }
        let connects = self.connects.iter().zip(said);
        let connects = connects.map(|((to, _), said)| reach(*to, said.as_deref(), &sockets)).collect();
        Some(Results { connects, names })
    }
}

/// A connection as the kernel lists it.
struct Socket {
    remote: SocketAddr,
    state: u8,
    unacknowledged: u64,
}

const SYN_SENT: u8 = 2;
const SYN_RECEIVED: u8 = 3;
const LISTEN: u8 = 10;

/// A line of `/proc/net/tcp` or `tcp6`.
fn socket(line: &str) -> Option<Socket> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (address, port) = words.get(2)?.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::to_le_bytes);
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(address)?)),
        32 => {
            let mut bytes = [0; 16];
            for i in 0..4 {
                bytes[i * 4..i * 4 + 4].copy_from_slice(&word(address.get(i * 8..i * 8 + 8)?)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    let state = u8::from_str_radix(words.get(3)?, 16).ok()?;
    let unacknowledged = u64::from_str_radix(words.get(4)?.split_once(':')?.0, 16).ok()?;
    Some(Socket { remote: SocketAddr::new(ip, port), state, unacknowledged })
}

fn reach(to: SocketAddr, said: Option<&str>, sockets: &[(u8, Socket)]) -> Reach {
    let seen: Vec<&(u8, Socket)> = sockets.iter().filter(|(_, socket)| socket.remote == to).collect();
    let open = |socket: &Socket| ![SYN_SENT, SYN_RECEIVED, LISTEN].contains(&socket.state);
    let stalled = |sample: u8| {
        seen.iter().any(|(at, socket)| *at == sample && open(socket) && socket.unacknowledged > STALLED)
    };
    if stalled(1) && stalled(2) {
        return Reach::Stalled;
    }
    if seen.iter().any(|(_, socket)| open(socket)) {
        return Reach::Connected;
    }
    let lower = said.unwrap_or_default().to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["refused"]) {
        return Reach::Refused;
    }
    // One that was late, opened after the first look and ended before the second, is not silent.
    let late = says(&["succeeded"]);
    if !late
        && (seen.iter().any(|(at, _)| *at == 2) || says(&["timed out", "no route to host", "unreachable"]))
    {
        return Reach::Silent;
    }
    if said.is_none() || says(&["not found", "usage", "invalid", "unrecognized", "bad address", "permission"])
    {
        return Reach::Unknown(said.unwrap_or("no output").to_owned());
    }
    // It opened and was closed between two looks.
    Reach::Connected
}

/// The exit code of `nslookup`, and its lines with bars in between.
fn answer(text: &str) -> Answer {
    let (code, said) = text.split_once(' ').unwrap_or((text, ""));
    let lower = said.to_ascii_lowercase();
    let mut of_name = false;
    let mut addresses = BTreeSet::new();
    for line in said.split('|').map(str::trim) {
        of_name |= line.starts_with("Name:");
        if of_name && line.starts_with("Address") {
            let words = line.split_whitespace().skip(1);
            addresses.extend(words.filter_map(|word| word.parse::<IpAddr>().ok()));
        }
    }
    if !addresses.is_empty() {
        return Answer::Addresses(addresses);
    }
    if ["servfail", "refused", "server failure"].iter().any(|word| lower.contains(word)) {
        return Answer::Failed;
    }
    if ["124", "143"].contains(&code) || lower.contains("timed out") || lower.contains("no servers") {
        return Answer::Silent;
    }
    if ["nxdomain", "can't find", "can't resolve", "no answer"].iter().any(|word| lower.contains(word)) {
        return Answer::NotFound;
    }
    Answer::Unknown(said.chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            connects: vec![
                ("10.12.0.5:8080".parse().unwrap(), true),
                ("10.12.0.6:8080".parse().unwrap(), true),
                ("10.12.0.7:9999".parse().unwrap(), true),
                ("[fd00:10:2::5]:8080".parse().unwrap(), true),
                ("10.12.0.8:8080".parse().unwrap(), true),
                ("10.12.0.9:8080".parse().unwrap(), false),
            ],
            names: vec!["web.shop.svc.clusterset.local".to_owned()],
        }
    }

    #[test]
    fn the_kernels_word_comes_before_that_of_nc() {
        let output = "\
nc: noise
@@S 1 sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
@@S 1 0: 07000B0A:C350 05000C0A:1F90 01 00000000:00000000 00:00000000 00000000 65532 0 1 1 0 20 4 30 10 -1
@@S 2 1: 07000B0A:C351 06000C0A:1F90 02 00000001:00000000 01:00000064 00000000 65532 0 2 2 0 20 4 30 10 -1
@@S 1 2: 07000B0A:C352 08000C0A:1F90 01 00001F60:00000000 01:00000064 00000002 65532 0 2 2 0 20 4 30 10 -1
@@S 2 0: 07000B0A:C350 05000C0A:1F90 08 00000001:00000000 00:00000000 00000000 65532 0 1 1 0 20 4 30 10 -1
@@S 2 2: 07000B0A:C352 08000C0A:1F90 04 00001F61:00000000 01:00000064 00000003 65532 0 2 2 0 20 4 30 10 -1
@@S 2 0: 100000FD00000100000000000B000000:C353 100000FD000002000000000005000000:1F90 01 00000000:00000000
@@C 0 Connection to 10.12.0.5 8080 port [tcp/*] succeeded!
@@C 1
@@C 2 nc: connect to 10.12.0.7 port 9999 (tcp) failed: Connection refused
@@C 3
@@C 4
@@C 5 sh: nc: not found
@@N 0 0 Server:\t10.111.0.10|Address:\t10.111.0.10#53||Name:\tweb.shop.svc.clusterset.local|Address: 10.111.3.4|Name:\tweb.shop.svc.clusterset.local|Address: fd00:20:1::7
@@END
";
        let output = output.replace("\\t", "\t");
        let results = plan().read(&output).unwrap();
        use Reach::{Connected, Refused, Silent, Stalled, Unknown};
        let want = [Connected, Silent, Refused, Connected, Stalled, Unknown("sh: nc: not found".to_owned())];
        assert_eq!(results.connects, want);
        let addresses = ["10.111.3.4", "fd00:20:1::7"].map(|one| one.parse().unwrap());
        assert_eq!(results.names, [Answer::Addresses(addresses.into())]);
        assert_eq!(plan().read(&output.replace("@@END", "")), None, "half an output is none");
    }

    #[test]
    fn addresses_of_both_families_are_read_as_the_kernel_writes_them() {
        let six = socket("0: 001000FD00000000000000000B000000:C353 100000FD000002000000000005000000:1F90 01 00000000:00000000").unwrap();
        assert_eq!((six.remote.port(), six.remote.is_ipv6()), (8080, true));
        let bytes = [0xfd, 0, 0, 0x10, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
        assert_eq!(six.remote.ip(), IpAddr::from(bytes));
        let mapped = socket("0: 0:1 0000000000000000FFFF000005000C0A:1F90 01 0:0").unwrap();
        assert_eq!(mapped.remote, "10.12.0.5:8080".parse().unwrap());
        for bad in ["", "0: a b", "0: 0:1 0000:1F90 01 0:0", "0: 0:1 zz000C0A:1F90 01 0:0"] {
            assert!(socket(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn answers_of_bind_and_of_busybox_are_read() {
        let some = |text: &str| Answer::Addresses([text.parse().unwrap()].into());
        for (text, want) in [
            (
                "0 Server: 10.0.0.10|Address 1: 10.0.0.10 kube-dns||Name:      web|Address 1: 10.1.2.3 web.shop",
                some("10.1.2.3"),
            ),
            ("0 Server:\t\t10.0.0.10|Address:\t10.0.0.10:53||Name:\tweb|Address: 10.1.2.3", some("10.1.2.3")),
            (
                "1 Server: 10.0.0.10|Address: 10.0.0.10#53||** server can't find web: NXDOMAIN",
                Answer::NotFound,
            ),
            ("1 nslookup: can't resolve 'web': Name does not resolve", Answer::NotFound),
            ("1 Server: 10.0.0.10||** server can't find web: SERVFAIL", Answer::Failed),
            ("1 ;; connection timed out; no servers could be reached", Answer::Silent),
            ("124 ", Answer::Silent),
            ("127 sh: nslookup: not found", Answer::Unknown("sh: nslookup: not found".to_owned())),
        ] {
            assert_eq!(answer(text), want, "{text}");
        }
    }

    #[test]
    fn a_script_has_nothing_in_it_but_what_was_planned() {
        let script = Plan { connects: Vec::new(), names: vec!["web.shop;reboot $(id)".to_owned()] }.script();
        assert!(script.contains("\nn 0 web.shoprebootid. &\n"), "{script}");
        assert!(plan().script().contains("\nc 3 fd00:10:2::5 8080 1 &\n"));
    }
}
