//! Where a request may come from: this computer, under its own name; no web page that was not named.
//!
//! Invariant: a page of the web that points a name of its own here (DNS rebinding) is refused by that name, and a page that
//! asks from the browser by its origin, before anything is read.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use url::{Host, Url};

use crate::error::{ApiError, ErrorKind};
use crate::options::ApiOptions;
use crate::state::Api;

/// Lets a request on that comes from where it may.
pub async fn check(State(api): State<Api>, request: Request, next: Next) -> Result<Response, ApiError> {
    headers_fit(request.headers(), &api.options)?;
    host_is_ours(request.uri(), request.headers(), &api.options)?;
    origin_is_listed(request.headers(), &api.options)?;
    Ok(next.run(request).await)
}

fn headers_fit(headers: &HeaderMap, options: &ApiOptions) -> Result<(), ApiError> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers.len() <= options.limits.headers && bytes <= options.limits.header_bytes {
        return Ok(());
    }
    Err(ApiError::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        ErrorKind::InvalidRequestError,
        "headers_too_large",
        format!(
            "a request can have {} header lines of {} KB",
            options.limits.headers,
            options.limits.header_bytes >> 10
        ),
    ))
}

fn host_is_ours(uri: &Uri, headers: &HeaderMap, options: &ApiOptions) -> Result<(), ApiError> {
    let refused =
        || ApiError::forbidden("host_not_allowed", "the host of this request is not this server's name");
    if headers.get_all(header::HOST).iter().count() > 1 {
        return Err(refused());
    }
    let named = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    let named = uri.authority().map(|authority| authority.as_str()).or(named).ok_or_else(refused)?;
    let url = Url::parse(&format!("http://{named}/")).map_err(|_| refused())?;
    let ours = match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name.eq_ignore_ascii_case("localhost")
                || options.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
        }
        // No name, so nobody can have pointed it here.
        Some(Host::Ipv4(address)) => address_is_ours(address.into(), options),
        Some(Host::Ipv6(address)) => address_is_ours(address.into(), options),
        None => false,
    };
    if ours { Ok(()) } else { Err(refused()) }
}

fn address_is_ours(address: IpAddr, options: &ApiOptions) -> bool {
    address.is_loopback() || !options.bind.is_loopback()
}

fn origin_is_listed(headers: &HeaderMap, options: &ApiOptions) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let listed = origin.to_str().is_ok_and(|origin| is_listed(origin, &options.origins));
    if listed {
        return Ok(());
    }
    Err(ApiError::forbidden(
        "origin_not_allowed",
        "web pages of this origin may not ask; `--origin` allows one",
    ))
}

/// Whether an origin was named.
pub fn is_listed(origin: &str, origins: &[Url]) -> bool {
    let Ok(asked) = Url::parse(origin) else { return false };
    asked.origin().is_tuple() && origins.iter().any(|listed| listed.origin() == asked.origin())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, options: &ApiOptions) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, name.parse().unwrap());
        host_is_ours(&Uri::from_static("/v1/models"), &headers, options).is_ok()
    }

    #[test]
    fn only_this_computers_names_are_served() {
        let here = ApiOptions::default();
        for name in ["127.0.0.1:80", "localhost:1234", "LOCALHOST.", "[::1]:8", "127.3.2.1"] {
            assert!(host(name, &here), "{name}");
        }
        for name in
            ["evil.example", "localhost.evil.example", "192.168.0.2:80", "127.0.0.1.nip.io", "", "a@b c"]
        {
            assert!(!host(name, &here), "{name}");
        }
        let everywhere = ApiOptions {
            bind: "0.0.0.0".parse().unwrap(),
            hosts: vec!["desk.lan".to_owned()],
            ..ApiOptions::default()
        };
        assert!(host("192.168.0.2:80", &everywhere));
        assert!(host("Desk.lan:80", &everywhere));
        assert!(!host("evil.example", &everywhere));
    }

    #[test]
    fn an_origin_is_listed_by_scheme_host_and_port() {
        let origins = ["http://localhost:3000".parse().unwrap()];
        assert!(is_listed("http://localhost:3000", &origins));
        for other in ["https://localhost:3000", "http://localhost:3001", "null", "http://localhost"] {
            assert!(!is_listed(other, &origins), "{other}");
        }
    }
}
