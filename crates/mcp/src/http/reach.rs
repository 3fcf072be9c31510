//! Which addresses a server's word may lead to.
//!
//! The user names a server's address; everything else (metadata, an authorization server, a redirect) is named by the
//! server, and must not be used to reach into the user's own network (MCP 2025-11-25, Security Best Practices, SSRF).
//!
//! Invariant: an address is checked after its name was resolved, so a name can't promise one thing and lead to another.

use std::net::{IpAddr, SocketAddr};

use lectern_core::nearness::Nearness;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Why an address that a server named is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutOfReach {
    #[error("`{0}` is not an address of the web")]
    NoAddress(String),
    #[error("`{0}` is not encrypted; only addresses of this computer may be")]
    Plain(String),
    #[error("`{0}` leads into a private network, which the server's own address does not")]
    Private(String),
}

/// What may be reached on a server's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    allowed: Vec<Nearness>,
}

impl Reach {
    /// From a server at these addresses: the public web, and what is as near as the server itself.
    pub(crate) fn from(addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        let mut allowed = vec![Nearness::Public];
        for nearness in addresses.into_iter().map(Nearness::of) {
            if nearness == Nearness::Private {
                allowed.push(Nearness::ThisComputer);
            }
            allowed.push(nearness);
        }
        Self { allowed }
    }

    /// From the address that the user gave; a name that does not resolve lies in the public web.
    pub(crate) async fn of(url: &Url) -> Self {
        let port = url.port_or_known_default().unwrap_or(443);
        match url.host() {
            Some(Host::Ipv4(address)) => Self::from([IpAddr::V4(address)]),
            Some(Host::Ipv6(address)) => Self::from([IpAddr::V6(address)]),
            Some(Host::Domain(name)) => {
                let found = tokio::net::lookup_host((name, port)).await;
                Self::from(found.into_iter().flatten().map(|address| address.ip()))
            }
            None => Self::from([]),
        }
    }

    fn allows(&self, address: IpAddr) -> bool {
        self.allowed.contains(&Nearness::of(address))
    }

    /// Checks what can be checked before a name is resolved: the scheme, and addresses that are no names.
    pub(crate) fn check(&self, url: &Url) -> Result<(), OutOfReach> {
        let here = is_loopback(url);
        match url.scheme() {
            "https" => {}
            "http" if here => {}
            "http" => return Err(OutOfReach::Plain(url.to_string())),
            _ => return Err(OutOfReach::NoAddress(url.to_string())),
        }
        let near = match url.host() {
            Some(Host::Ipv4(address)) => self.allows(IpAddr::V4(address)),
            Some(Host::Ipv6(address)) => self.allows(IpAddr::V6(address)),
            Some(Host::Domain(_)) if here => self.allowed.contains(&Nearness::ThisComputer),
            Some(Host::Domain(_)) => true,
            None => return Err(OutOfReach::NoAddress(url.to_string())),
        };
        if near { Ok(()) } else { Err(OutOfReach::Private(url.to_string())) }
    }
}

/// Whether an address is this computer by its very name.
pub(crate) fn is_loopback(url: &Url) -> bool {
    url.host_str().map(Nearness::of_host) == Some(Nearness::ThisComputer)
}

/// Resolves names to what is within reach.
impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            let near: Vec<SocketAddr> =
                found.iter().copied().filter(|address| reach.allows(address.ip())).collect();
            if near.is_empty() && !found.is_empty() {
                return Err(OutOfReach::Private(name.as_str().to_owned()).into());
            }
            Ok(Box::new(near.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: &str, url: &str) -> Result<(), OutOfReach> {
        Reach::from([server.parse().unwrap()]).check(&Url::parse(url).unwrap())
    }

    #[test]
    fn a_server_leads_no_nearer_to_the_user_than_it_is_itself() {
        let inside = |url: &str| Err(OutOfReach::Private(url.to_owned()));
        for url in [
            "https://10.0.0.1/",
            "https://169.254.169.254/latest",
            "https://[fd00::1]/",
            "https://100.64.0.1/",
        ] {
            assert_eq!(check("93.184.216.34", url), inside(url), "{url}");
            assert_eq!(check("127.0.0.1", url), inside(url), "{url}");
        }
        assert_eq!(check("93.184.216.34", "http://127.0.0.1:8/"), inside("http://127.0.0.1:8/"));
        assert_eq!(check("93.184.216.34", "https://[::ffff:10.0.0.1]/"), inside("https://[::ffff:a00:1]/"));
        assert_eq!(check("192.168.1.4", "https://192.168.1.5/"), Ok(()));
        assert_eq!(check("192.168.1.4", "https://169.254.169.254/"), inside("https://169.254.169.254/"));
        assert_eq!(check("127.0.0.1", "http://localhost:9000/"), Ok(()));
        assert_eq!(check("127.0.0.1", "https://example.com/"), Ok(()));
    }

    #[test]
    fn only_this_computer_goes_unencrypted() {
        assert_eq!(
            check("127.0.0.1", "http://example.com/"),
            Err(OutOfReach::Plain("http://example.com/".into()))
        );
        for url in ["file:///etc/passwd", "javascript:alert(1)", "data:text/html,x"] {
            assert_eq!(check("127.0.0.1", url), Err(OutOfReach::NoAddress(url.into())));
        }
    }

    #[tokio::test]
    async fn a_name_is_judged_by_what_it_resolves_to() {
        let reach = Reach::from(["93.184.216.34".parse().unwrap()]);
        let resolved = reach.resolve("localhost".parse().unwrap()).await;
        assert!(resolved.is_err());
        let reach = Reach::from(["127.0.0.1".parse().unwrap()]);
        assert!(reach.resolve("localhost".parse().unwrap()).await.unwrap().count() > 0);
    }
}
