//! How near to the user an address lies, by what it says of itself.
//!
//! Invariant: pure; no name is looked up. What a name resolves to has to be judged again by whoever resolves it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How near to the user an address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nearness {
    /// This computer.
    ThisComputer,
    /// No address of a host (`0.0.0.0`, `::`); who connects to it reaches this computer.
    Unspecified,
    /// This link, where clouds answer with their metadata (RFC 3927), or many hosts at once.
    Link,
    /// The user's own network (RFC 1918, RFC 4193, RFC 6598).
    Private,
    /// Anybody's.
    Public,
}

/// Ends of names that no public server has (RFC 6762, RFC 8375, and what routers give out).
const NEAR: [&str; 5] = [".local", ".lan", ".home.arpa", ".internal", ".intranet"];

impl Nearness {
    /// Of the host of an address, as `Url::host_str` gives it: a name, an address of IPv4, or one of IPv6 in brackets.
    pub fn of_host(host: &str) -> Self {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        bare.parse().map_or_else(|_| Self::of_name(host), Self::of)
    }

    /// Of an address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_name(name: &str) -> Self {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if name == "localhost" || name.ends_with(".localhost") {
            Self::ThisComputer
        } else if !name.contains('.') || NEAR.iter().any(|end| name.ends_with(end)) {
            Self::Private
        } else {
            Self::Public
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [first, second, ..] = address.octets();
        // 100.64.0.0/10 is shared by the customers of one network (RFC 6598), and by private overlays.
        let shared = first == 100 && (64..128).contains(&second);
        if address.is_loopback() {
            Self::ThisComputer
        } else if address.is_unspecified() {
            Self::Unspecified
        } else if address.is_link_local() || address.is_multicast() || address.is_broadcast() {
            Self::Link
        } else if address.is_private() || shared {
            Self::Private
        } else {
            Self::Public
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        if let Some(inner) = address.to_ipv4_mapped() {
            return Self::of_v4(inner);
        }
        if address.is_loopback() {
            Self::ThisComputer
        } else if address.is_unspecified() {
            Self::Unspecified
        } else if address.is_unicast_link_local() || address.is_multicast() {
            Self::Link
        } else if address.is_unique_local() {
            Self::Private
        } else {
            Self::Public
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_near_or_far() {
        use Nearness::{Link, Private, Public, ThisComputer, Unspecified};
        for (nearness, hosts) in [
            (
                ThisComputer,
                &[
                    "localhost",
                    "LOCALHOST.",
                    "a.localhost",
                    "127.0.0.1",
                    "127.9.9.9",
                    "[::1]",
                    "[::ffff:127.0.0.1]",
                ][..],
            ),
            (Unspecified, &["0.0.0.0", "[::]", "[::ffff:0.0.0.0]"]),
            (Link, &["169.254.169.254", "224.0.0.1", "255.255.255.255", "[fe80::1]", "[ff02::1]"]),
            (
                Private,
                &["192.168.1.4", "10.1.2.3", "172.16.0.1", "100.70.1.1", "[fd00::1]", "nas", "nas.local."],
            ),
            (
                Public,
                &[
                    "8.8.8.8",
                    "100.128.0.1",
                    "172.32.0.1",
                    "[2001:db8::1]",
                    "[::ffff:8.8.8.8]",
                    "localhost.evil.com",
                ],
            ),
            (Public, &["api.openai.com", "local.example", "127.0.0.1.nip.io", "xlocalhost.example"]),
        ] {
            for host in hosts {
                assert_eq!(Nearness::of_host(host), nearness, "{host}");
            }
        }
    }
}
