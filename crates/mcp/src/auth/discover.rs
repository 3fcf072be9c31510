//! From a server to its authorization server: protected-resource metadata (RFC 9728), then the authorization server's
//! own (RFC 8414, OpenID Connect Discovery), and for servers of 2025-03-26 without either the addresses of old.
//!
//! Invariant: every address is within reach of the server ([`Reach`]); a resource that is not this server, or metadata
//! that is somebody else's, ends it.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::AuthError;
use super::browser::may_be_opened;
use super::challenge::Challenge;
use crate::http::client::for_strangers;
use crate::http::events::{body, cause};
use crate::http::reach::Reach;

/// Bytes of a metadata document.
const LONGEST: usize = 256 << 10;

/// Why an authorization server was not found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    #[error("the server's metadata is for `{0}`, which is not this server")]
    OtherResource(String),
    #[error("the metadata of the authorization server `{expected}` names another issuer, `{found}`")]
    OtherIssuer { expected: String, found: String },
    #[error("the authorization server `{0}` describes itself nowhere{1}")]
    NoMetadata(String, String),
    #[error("the authorization server `{0}` does not offer PKCE with S256")]
    NoPkce(String),
    #[error("the authorization server `{0}` has no address for {1}")]
    NoEndpoint(String, &'static str),
    #[error("`{0}` is no address to sign in at")]
    BadPage(String),
}

/// Who gives tokens for a server, and how.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The authorization server's name for itself, exactly.
    pub(super) issuer: String,
    /// The server's name for itself, to which the token is bound (RFC 8707).
    pub(super) resource: String,
    /// The scopes that the server's metadata names.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) metadata: Metadata,
    /// Nobody said so: the addresses are those of old.
    pub(super) guessed: bool,
}

/// Metadata of a server, as far as it matters here (RFC 9728, section 2).
#[derive(Debug, Deserialize)]
struct Resource {
    resource: Option<String>,
    #[serde(default)]
    authorization_servers: Vec<String>,
    scopes_supported: Option<Vec<String>>,
}

/// Metadata of an authorization server, as far as it matters here (RFC 8414, section 2).
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Metadata {
    #[serde(default)]
    issuer: String,
    authorization_endpoint: Option<String>,
    token_endpoint: Option<String>,
    registration_endpoint: Option<String>,
    scopes_supported: Option<Vec<String>>,
    code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
}

impl Found {
    pub(super) fn offers_scope(&self, scope: &str) -> bool {
        self.metadata.scopes_supported.iter().flatten().any(|offered| offered == scope)
    }
}

/// Finds the authorization server of a server.
pub(super) async fn discover(reach: &Reach, server: &Url, challenge: &Challenge) -> Result<Found, AuthError> {
    let web = Web { reach, client: for_strangers(reach.clone())? };
    let described = web.resource(server, challenge).await?;
    let resource = match &described {
        Some(Resource { resource: Some(resource), .. }) => checked_resource(server, resource)?,
        Some(Resource { resource: None, .. }) | None => canonical(server),
    };
    let scopes = described.as_ref().and_then(|it| it.scopes_supported.clone()).filter(|all| !all.is_empty());
    let named = described.and_then(|it| it.authorization_servers.into_iter().next());
    match named {
        Some(issuer) => {
            let address = Url::parse(&issuer)
                .map_err(|_| DiscoverError::NoMetadata(issuer.clone(), ": it is no address".into()))?;
            let (metadata, trouble) = web.metadata(&address).await?;
            let metadata = metadata.ok_or_else(|| DiscoverError::NoMetadata(issuer.clone(), trouble))?;
            checked(reach, &issuer, resource, scopes, metadata)
        }
        None => old(&web, server, resource, scopes).await,
    }
}

/// A server of 2025-03-26 is its own authorization server, with or without metadata (MCP 2025-03-26, Authorization).
async fn old(
    web: &Web<'_>,
    server: &Url,
    resource: String,
    scopes: Option<Vec<String>>,
) -> Result<Found, AuthError> {
    let mut origin = server.clone();
    origin.set_path("/");
    origin.set_query(None);
    origin.set_fragment(None);
    let issuer = origin.as_str().trim_end_matches('/').to_owned();
    if let (Some(metadata), _) = web.metadata(&origin).await? {
        return checked(web.reach, &issuer, resource, scopes, metadata);
    }
    let at =
        |path: &str| origin.join(path).map_err(|_| DiscoverError::NoEndpoint(issuer.clone(), "anything"));
    web.reach.check(&origin)?;
    Ok(Found {
        resource,
        scopes,
        authorization_endpoint: Some(at("/authorize")?),
        token_endpoint: at("/token")?,
        registration_endpoint: Some(at("/register")?),
        metadata: Metadata::default(),
        guessed: true,
        issuer,
    })
}

/// Reads metadata that was found for an issuer.
fn checked(
    reach: &Reach,
    expected: &str,
    resource: String,
    scopes: Option<Vec<String>>,
    metadata: Metadata,
) -> Result<Found, AuthError> {
    // RFC 8414, section 3.3. A closing slash is forgiven: the address that was asked is the same.
    if metadata.issuer.trim_end_matches('/') != expected.trim_end_matches('/') {
        let (expected, found) = (expected.to_owned(), metadata.issuer);
        return Err(DiscoverError::OtherIssuer { expected, found }.into());
    }
    let issuer = metadata.issuer.clone();
    let methods = metadata.code_challenge_methods_supported.iter().flatten();
    if !methods.into_iter().any(|method| method == "S256") && metadata.authorization_endpoint.is_some() {
        return Err(DiscoverError::NoPkce(issuer).into());
    }
    let address = |text: &Option<String>| -> Result<Option<Url>, AuthError> {
        let Some(url) = text.as_deref().and_then(|text| Url::parse(text).ok()) else { return Ok(None) };
        reach.check(&url)?;
        Ok(Some(url))
    };
    let page = metadata.authorization_endpoint.as_deref();
    let page = match page.map(|page| (page, Url::parse(page))) {
        None => None,
        Some((_, Ok(url))) if may_be_opened(&url) => Some(url),
        Some((text, _)) => return Err(DiscoverError::BadPage(text.to_owned()).into()),
    };
    let tokens = address(&metadata.token_endpoint)?;
    Ok(Found {
        resource,
        scopes,
        authorization_endpoint: page,
        token_endpoint: tokens.ok_or_else(|| DiscoverError::NoEndpoint(issuer.clone(), "tokens"))?,
        registration_endpoint: address(&metadata.registration_endpoint)?,
        metadata,
        guessed: false,
        issuer,
    })
}

/// The server's address as the name of a resource (RFC 8707, section 2).
fn canonical(server: &Url) -> String {
    let mut server = server.clone();
    server.set_fragment(None);
    let _ = server.set_password(None);
    let _ = server.set_username("");
    match server.path() {
        "/" if server.query().is_none() => server.as_str().trim_end_matches('/').to_owned(),
        _ => server.to_string(),
    }
}

/// A resource must be this server, or what it is a part of (RFC 9728, section 3.3).
fn checked_resource(server: &Url, named: &str) -> Result<String, DiscoverError> {
    let other = || DiscoverError::OtherResource(named.to_owned());
    let resource = Url::parse(named).map_err(|_| other())?;
    let path = resource.path().trim_end_matches('/');
    let inside = server.path() == path
        || server.path().strip_prefix(path).is_some_and(|rest| rest.starts_with('/') || rest.is_empty());
    if resource.origin() == server.origin() && inside { Ok(named.to_owned()) } else { Err(other()) }
}

/// Fetches documents.
struct Web<'a> {
    reach: &'a Reach,
    client: reqwest::Client,
}

impl Web<'_> {
    /// The server's metadata: where its refusal says, else at the well-known places (RFC 9728, section 3.1).
    async fn resource(&self, server: &Url, challenge: &Challenge) -> Result<Option<Resource>, AuthError> {
        let known = |path: &str| {
            let mut url = server.clone();
            url.set_query(None);
            url.set_fragment(None);
            url.set_path(&format!("/.well-known/oauth-protected-resource{}", path.trim_end_matches('/')));
            url
        };
        let mut places: Vec<Url> = challenge.metadata.clone().into_iter().collect();
        if let Some(named) = places.first() {
            self.reach.check(named)?;
        }
        places.push(known(server.path()));
        places.push(known(""));
        places.dedup();
        for place in places {
            if let Ok(found) = self.fetch::<Resource>(&place).await? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// An authorization server's metadata (MCP 2025-11-25, Authorization Server Metadata Discovery); none with what was
    /// in the way.
    async fn metadata(&self, issuer: &Url) -> Result<(Option<Metadata>, String), AuthError> {
        let path = issuer.path().trim_end_matches('/');
        let at = |path: String| {
            let mut url = issuer.clone();
            url.set_query(None);
            url.set_fragment(None);
            url.set_path(&path);
            url
        };
        let mut places = vec![
            at(format!("/.well-known/oauth-authorization-server{path}")),
            at(format!("/.well-known/openid-configuration{path}")),
        ];
        if !path.is_empty() {
            places.push(at(format!("{path}/.well-known/openid-configuration")));
        }
        let mut trouble = String::new();
        for place in places {
            match self.fetch::<Metadata>(&place).await? {
                Ok(found) if !found.issuer.is_empty() => return Ok((Some(found), trouble)),
                Ok(_) => trouble = ": its metadata names no issuer".into(),
                Err(why) => trouble = format!(": {why}"),
            }
        }
        Ok((None, trouble))
    }

    /// A document; the inner error says why it is not there.
    async fn fetch<T: DeserializeOwned>(&self, url: &Url) -> Result<Result<T, String>, AuthError> {
        self.reach.check(url)?;
        let request = self.client.get(url.clone()).header("accept", "application/json");
        let response = match request.header("mcp-protocol-version", "2025-11-25").send().await {
            Ok(response) if response.status().is_success() => response,
            Ok(response) => return Ok(Err(format!("HTTP {}", response.status()))),
            Err(error) => return Ok(Err(cause(&error))),
        };
        let whole = match body(response, LONGEST).await {
            Ok(whole) => whole,
            Err(error) => return Ok(Err(error.to_string())),
        };
        Ok(serde_json::from_slice(&whole).map_err(|error| format!("its metadata can't be read: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_this_server_or_what_it_is_a_part_of() {
        let server = Url::parse("https://h.example/api/mcp").unwrap();
        for fine in [
            "https://h.example/api/mcp",
            "https://h.example/api/mcp/",
            "https://h.example/api",
            "https://h.example",
        ] {
            assert_eq!(checked_resource(&server, fine).unwrap(), fine);
        }
        for other in [
            "https://evil.example/api/mcp",
            "https://h.example/ap",
            "https://h.example/api/mcp/x",
            "http://h.example/api/mcp",
            "https://h.example:444/api/mcp",
            "nonsense",
        ] {
            assert!(checked_resource(&server, other).is_err(), "{other}");
        }
        assert_eq!(canonical(&Url::parse("https://u:p@h.example/#x").unwrap()), "https://h.example");
    }
}
