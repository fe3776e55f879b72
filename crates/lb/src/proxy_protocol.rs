//! The header of the PROXY protocol, version 2: who the client is, in front of what it says.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const SIGNATURE: [u8; 12] = [0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a];
/// Version 2, a connection on behalf of a client.
const PROXY: u8 = 0x21;
const TCP_V4: u8 = 0x11;
const TCP_V6: u8 = 0x21;

/// The header for a TCP connection from `client` to `listener`.
pub(crate) fn header(client: SocketAddr, listener: SocketAddr) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.push(PROXY);
    match (client.ip().to_canonical(), listener.ip().to_canonical()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes.extend_from_slice(&[TCP_V4, 0, 12]);
            bytes.extend_from_slice(&from.octets());
            bytes.extend_from_slice(&to.octets());
        }
        (from, to) => {
            bytes.extend_from_slice(&[TCP_V6, 0, 36]);
            bytes.extend_from_slice(&v6(from).octets());
            bytes.extend_from_slice(&v6(to).octets());
        }
    }
    bytes.extend_from_slice(&client.port().to_be_bytes());
    bytes.extend_from_slice(&listener.port().to_be_bytes());
    bytes
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let header = header("192.0.2.7:40000".parse().unwrap(), "203.0.113.9:443".parse().unwrap());
        assert_eq!(&header[..12], b"\r\n\r\n\0\r\nQUIT\n");
        assert_eq!(header[12..16], [0x21, 0x11, 0, 12]);
        assert_eq!(header[16..], [192, 0, 2, 7, 203, 0, 113, 9, 0x9c, 0x40, 0x01, 0xbb]);
    }

    #[test]
    fn a_client_of_the_other_family_is_mapped() {
        let mapped = header("[::ffff:192.0.2.7]:1".parse().unwrap(), "203.0.113.9:2".parse().unwrap());
        assert_eq!(mapped[13], TCP_V4);
        let six = header("[2001:db8::1]:1".parse().unwrap(), "[2001:db8::2]:2".parse().unwrap());
        assert_eq!((six[13], six[15], six.len()), (TCP_V6, 36, 52));
    }
}
