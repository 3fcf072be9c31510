//! Where a window's API listens, and why it can't.
//!
//! Invariant: what other computers reach is never taken for this computer alone.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use lectern_app::view::Problem;

use crate::server::StartError;

/// This computer alone.
pub const HERE: &str = "127.0.0.1";

/// An address as it is typed: `127.0.0.1`, `::1`, `[::1]`, `localhost`.
pub fn address(text: &str) -> Result<IpAddr, Problem> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().map_err(|_| {
        Problem::new("bad_address", format!("`{text}` is no address to listen at"))
            .hint("Use 127.0.0.1 for this computer alone, or 0.0.0.0 for others, too.")
    })
}

/// Where this computer asks a server that listens there.
pub fn url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

/// No port.
pub fn bad_port() -> Problem {
    Problem::new("bad_port", "a port is a number from 1 to 65535")
}

/// Others would reach it.
pub fn beyond(address: IpAddr) -> Problem {
    Problem::new("beyond_this_computer", format!("other computers reach {address}"))
        .hint("What is sent there and answered is not encrypted.")
}

/// Why a server did not start.
pub fn not_started(error: &StartError, bind: IpAddr, port: u16) -> Problem {
    let at = SocketAddr::new(bind, port);
    let source = match error {
        StartError::Listen { source, .. } => source,
        StartError::Sessions(_) => {
            return Problem::from_error("no_sessions", error)
                .hint("Look whether the folder `api` in Lectern's home can be written.");
        }
        StartError::Metrics(_) => return Problem::from_error("defect", error),
    };
    match source.kind() {
        ErrorKind::AddrInUse => Problem::new("port_in_use", format!("another program listens at {at}"))
            .hint("Choose another port, or end the program that has this one."),
        ErrorKind::PermissionDenied => {
            Problem::new("port_not_allowed", format!("this user may not listen at {at}"))
                .hint("Choose a port from 1024.")
        }
        ErrorKind::AddrNotAvailable => {
            Problem::new("address_not_here", format!("{bind} is no address of this computer"))
                .hint("Use 127.0.0.1 for this computer alone, or 0.0.0.0 for others, too.")
        }
        _ => Problem::from_error("no_listener", error).hint("Choose another port or address."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_typed_and_told_as_they_are_asked() {
        for (typed, read) in [
            (" 127.0.0.1 ", "127.0.0.1"),
            ("LocalHost", "127.0.0.1"),
            ("[::1]", "::1"),
            ("::", "::"),
            ("192.168.0.9", "192.168.0.9"),
        ] {
            assert_eq!(address(typed).unwrap(), read.parse::<IpAddr>().unwrap(), "{typed}");
        }
        for none in ["", "127.0.0.1:80", "desk.lan", "[::1", "256.0.0.1"] {
            assert_eq!(address(none).unwrap_err().code, "bad_address", "{none}");
        }
        for (listens, asked) in [
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:80", "http://[::1]:80"),
            ("192.168.0.9:8", "http://192.168.0.9:8"),
        ] {
            assert_eq!(url(listens.parse().unwrap()), asked);
        }
    }
}
