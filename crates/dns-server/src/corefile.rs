//! Our part of a Corefile: put in, found again, taken out; every other byte stays. Pure text.
//!
//! ```
//! use atoll_dns_server::corefile::{self, Corefile};
//!
//! let before = ".:53 {\n    kubernetes cluster.local\n}\n";
//! let zone = atoll_dns::Name::parse("clusterset.local").unwrap();
//! let stub = Corefile::read(before).stub(&zone, &["10.96.0.99:53".parse().unwrap()]);
//! let after = corefile::with(before, &stub);
//! assert!(after.starts_with(before) && corefile::find(&after) == Some(stub.as_str()));
//! assert_eq!(corefile::without(&after), before);
//! ```

use std::net::SocketAddr;
use std::ops::Range;

use atoll_dns::Name;

const BEGIN: &str = "# BEGIN atoll: written by `atoll dns setup`, taken away by `atoll dns setup --undo`\n";
const END: &str = "# END atoll\n";
/// The port that a block without one listens on.
const DNS_PORT: u16 = 53;

/// The server blocks of a Corefile, as far as they concern us.
#[derive(Debug)]
pub struct Corefile<'t> {
    blocks: Vec<Block<'t>>,
}

#[derive(Debug, Default)]
struct Block<'t> {
    keys: Vec<&'t str>,
    /// Its directives, without what is in braces below them.
    lines: Vec<Vec<&'t str>>,
    ours: bool,
}

impl<'t> Corefile<'t> {
    /// Reads the blocks. Whatever can't be read is CoreDNS's to complain about.
    pub fn read(text: &'t str) -> Self {
        let ours = span(text).unwrap_or_default();
        let (mut blocks, mut block, mut depth) = (Vec::new(), Block::default(), 0_usize);
        let mut next = 0;
        for line in text.split_inclusive('\n') {
            let at = next;
            next += line.len();
            let tokens: Vec<&str> =
                line.split_whitespace().take_while(|token| !token.starts_with('#')).collect();
            if tokens.is_empty() {
                continue;
            }
            if depth == 0 {
                block.keys.extend(
                    tokens
                        .iter()
                        .map(|key| key.trim_end_matches(','))
                        .filter(|key| !["{", "}"].contains(key)),
                );
                block.ours = ours.contains(&at);
            } else if depth == 1 && tokens != ["}"] {
                block.lines.push(tokens.iter().copied().filter(|token| *token != "{").collect());
            }
            for token in tokens {
                match token {
                    "{" => depth += 1,
                    "}" => {
                        depth = depth.saturating_sub(1);
                        if depth == 0 {
                            blocks.push(std::mem::take(&mut block));
                        }
                    }
                    _ => {}
                }
            }
        }
        Self { blocks }
    }

    /// The block that leads `zone` to `servers`. It listens where the block of all names does, or CoreDNS would not ask it.
    pub fn stub(&self, zone: &Name, servers: &[SocketAddr]) -> String {
        let all_names = self.blocks.iter().find_map(|block| {
            let port =
                block.keys.iter().filter_map(|key| zone_and_port(key)).find(|(zone, _)| zone.is_empty())?.1;
            let binds = block.lines.iter().filter(|line| line.first() == Some(&"bind"));
            Some((port, binds.map(|line| format!("    {}\n", line.join(" "))).collect::<String>()))
        });
        let (port, binds) = all_names.unwrap_or((DNS_PORT, String::new()));
        let servers: Vec<String> = servers.iter().map(ToString::to_string).collect();
        // No cache: an answer costs us less than keeping it would cost a client that waits for a change.
        format!("{BEGIN}{zone}:{port} {{\n{binds}    errors\n    forward . {}\n}}\n{END}", servers.join(" "))
    }

    /// Does a block that is not ours serve the zone?
    pub fn served_by_others(&self, zone: &Name) -> bool {
        let zone = zone.to_string();
        let others = self.blocks.iter().filter(|block| !block.ours);
        others
            .flat_map(|block| &block.keys)
            .filter_map(|key| zone_and_port(key))
            .any(|(served, _)| served == zone)
    }
}

/// Does CoreDNS's own `multicluster` option serve the zone?
pub fn has_multicluster(text: &str, zone: &Name) -> bool {
    let zone = zone.to_string();
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|tokens| {
        tokens.first() == Some(&"multicluster")
            && tokens.iter().any(|token| token.trim_end_matches('.') == zone)
    })
}

/// `.:53` is every name at port 53. None for what is no plain DNS zone.
fn zone_and_port(key: &str) -> Option<(String, u16)> {
    let key = match key.split_once("://") {
        Some(("dns", rest)) => rest,
        Some(_) => return None,
        None => key,
    };
    if key.starts_with('(') {
        return None;
    }
    let (zone, port) = match key.rsplit_once(':') {
        Some((zone, port)) => (zone, port.parse().ok()?),
        None => (key, DNS_PORT),
    };
    Some((zone.trim_end_matches('.').to_ascii_lowercase(), port))
}

/// Our part, if it is there.
pub fn find(text: &str) -> Option<&str> {
    span(text).map(|span| &text[span])
}

fn span(text: &str) -> Option<Range<usize>> {
    let start = text.find(BEGIN)?;
    Some(start..start + text[start..].find(END)? + END.len())
}

/// The text with our part replaced by, or else followed by, `stub`.
pub fn with(text: &str, stub: &str) -> String {
    let mut text = without(text);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text + stub
}

/// The text without our part.
pub fn without(text: &str) -> String {
    let Some(ours) = span(text) else { return text.to_owned() };
    [&text[..ours.start], &text[ours.end..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBEADM: &str = "\
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       ttl 30
    }
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 # seconds
    loop
}
";

    fn zone() -> Name {
        Name::parse("clusterset.local").unwrap()
    }

    fn stub(corefile: &str) -> String {
        Corefile::read(corefile)
            .stub(&zone(), &["10.96.0.99:53".parse().unwrap(), "[fd00::99]:53".parse().unwrap()])
    }

    #[test]
    fn the_stub_leads_to_our_servers_of_both_families() {
        let want = "clusterset.local:53 {\n    errors\n    forward . 10.96.0.99:53 [fd00::99]:53\n}\n";
        assert_eq!(stub(KUBEADM), format!("{BEGIN}{want}{END}"));
    }

    #[test]
    fn the_stub_listens_where_all_names_do() {
        let node_local =
            ".:1053 {\n    bind 169.254.20.10 10.0.0.10 # both\n    bind fd00::10\n    errors\n}\n";
        let text = stub(node_local);
        assert!(
            text.contains("clusterset.local:1053 {\n    bind 169.254.20.10 10.0.0.10\n    bind fd00::10\n"),
            "{text}"
        );
    }

    #[test]
    fn what_was_there_stays_to_the_byte() {
        let odd = format!("# mine\n{KUBEADM}\n\nexample.org {{ \n  whoami\n}}");
        let after = with(&odd, &stub(&odd));
        assert_eq!(without(&after), format!("{odd}\n"));
        assert_eq!(with(&after, &stub(&after)), after, "twice is once");
        let moved = after.replace("10.96.0.99", "10.96.0.1");
        assert_ne!(moved, after);
        assert_eq!(with(&moved, &stub(&odd)), after, "an old part is replaced");
    }

    #[test]
    fn somebody_elses_block_for_the_zone_is_seen() {
        for (block, want) in [
            ("clusterset.local:53 {\n forward . 10.0.0.1\n}\n", true),
            ("example.org clusterset.local {\n forward . 10.0.0.1\n}\n", true),
            ("dns://ClusterSet.local.:53 {\n}\n", true),
            ("tls://clusterset.local {\n}\n", false),
            ("# clusterset.local {\n# }\n", false),
            ("(clusterset.local) {\n}\n", false),
        ] {
            let text = format!("{KUBEADM}{block}");
            assert_eq!(Corefile::read(&text).served_by_others(&zone()), want, "{block}");
        }
        let ours = with(KUBEADM, &stub(KUBEADM));
        assert!(!Corefile::read(&ours).served_by_others(&zone()));
    }

    #[test]
    fn the_multicluster_option_is_seen() {
        let text = KUBEADM.replace("ttl 30", "multicluster clusterset.local");
        assert!(has_multicluster(&text, &zone()));
        assert!(!has_multicluster(KUBEADM, &zone()));
    }
}
