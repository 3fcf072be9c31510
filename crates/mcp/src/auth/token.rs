//! Requests for tokens, made by the `oauth2` crate.
//!
//! Invariant: they go to one address without following where it may lead, and name the resource that the token is for
//! (RFC 8707).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::{BoxFuture, FutureExt};
use oauth2::basic::{BasicClient, BasicRequestTokenError, BasicTokenResponse};
use oauth2::{
    AsyncHttpClient, AuthType, AuthorizationCode, ClientId, ClientSecret, EndpointNotSet, EndpointSet,
    HttpRequest, HttpResponse, PkceCodeVerifier, RedirectUrl, RefreshToken, RequestTokenError, Scope,
    TokenResponse, TokenUrl,
};
use serde_json::{Value, json};
use url::Url;

use super::client::{Client, Proof};
use super::discover::Found;
use super::store::Tokens;
use crate::http::client::for_strangers_without_redirects;
use crate::http::events::{body, cause};
use crate::http::reach::Reach;

/// Bytes of an answer with tokens.
const LONGEST: usize = 256 << 10;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenError {
    #[error("`{0}` can't be asked for a token: {1}")]
    Unreachable(String, String),
    #[error("`{0}` gave no token: {1}")]
    Refused(String, String),
    #[error("the answer of `{0}` with a token can't be read: {1}")]
    Unreadable(String, String),
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Failed(String);

type Set = BasicClient<EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// An address that gives tokens, and who we are to it.
pub(super) struct Endpoint {
    url: Url,
    client: Client,
    http: Http,
}

/// Sends the requests that `oauth2` makes.
struct Http(reqwest::Client);

impl<'c> AsyncHttpClient<'c> for Http {
    type Error = Failed;
    type Future = BoxFuture<'c, Result<HttpResponse, Failed>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        send(self.0.clone(), request).boxed()
    }
}

async fn send(client: reqwest::Client, request: HttpRequest) -> Result<HttpResponse, Failed> {
    let failed = |error: &reqwest::Error| Failed(cause(error));
    let request = reqwest::Request::try_from(request).map_err(|error| failed(&error))?;
    let response = client.execute(request).await.map_err(|error| failed(&error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let whole = body(response, LONGEST).await.map_err(|error| Failed(error.to_string()))?;
    let mut answer = HttpResponse::new(if status.is_success() { mended(whole) } else { whole });
    *answer.status_mut() = status;
    *answer.headers_mut() = headers;
    Ok(answer)
}

impl Endpoint {
    pub(super) fn new(reach: Reach, url: Url, client: Client) -> Result<Self, super::AuthError> {
        reach.check(&url)?;
        let http = Http(for_strangers_without_redirects(reach)?);
        Ok(Self { url, client, http })
    }

    /// A token for the code that the user came back with (RFC 6749, section 4.1.3; RFC 7636).
    pub(super) async fn for_code(
        &self,
        found: &Found,
        code: String,
        verifier: PkceCodeVerifier,
        back: &RedirectUrl,
        scopes: &[String],
    ) -> Result<Tokens, TokenError> {
        let set = self.set();
        let request = set.exchange_code(AuthorizationCode::new(code)).set_pkce_verifier(verifier);
        let request = request.set_redirect_uri(std::borrow::Cow::Borrowed(back));
        let request = request.add_extra_param("resource", &found.resource);
        let answer = request.request_async(&self.http).await;
        Ok(self.tokens(answer.map_err(|error| self.failed(error))?, found, scopes))
    }

    /// A token for ourselves (RFC 6749, section 4.4).
    pub(super) async fn for_client(&self, found: &Found, scopes: &[String]) -> Result<Tokens, TokenError> {
        let set = self.set();
        let request = set.exchange_client_credentials().add_extra_param("resource", &found.resource);
        let request = request.add_scopes(scopes.iter().cloned().map(Scope::new));
        let answer = request.request_async(&self.http).await;
        Ok(self.tokens(answer.map_err(|error| self.failed(error))?, found, scopes))
    }

    /// A token for a refresh token (RFC 6749, section 6).
    pub(super) async fn refresh(&self, tokens: &Tokens) -> Result<Tokens, TokenError> {
        let refresh = tokens.refresh.clone().unwrap_or_default();
        let (set, token) = (self.set(), RefreshToken::new(refresh.clone()));
        let request = set.exchange_refresh_token(&token).add_extra_param("resource", &tokens.resource);
        let answer = request.request_async(&self.http).await;
        let answer = answer.map_err(|error| self.failed(error))?;
        let mut fresh = self.read(&answer, &tokens.issuer, &tokens.resource, &tokens.scopes);
        // The old one stays when no other is given.
        fresh.refresh = fresh.refresh.or(Some(refresh));
        Ok(fresh)
    }

    fn set(&self) -> Set {
        let kind = match self.client.proof {
            Proof::Basic => AuthType::BasicAuth,
            Proof::Post | Proof::None => AuthType::RequestBody,
        };
        let set = BasicClient::new(ClientId::new(self.client.id.clone()))
            .set_auth_type(kind)
            .set_token_uri(TokenUrl::from_url(self.url.clone()));
        match &self.client.secret {
            Some(secret) if self.client.proof != Proof::None => {
                set.set_client_secret(ClientSecret::new(secret.clone()))
            }
            Some(_) | None => set,
        }
    }

    fn failed(&self, error: BasicRequestTokenError<Failed>) -> TokenError {
        let host = self.url.host_str().unwrap_or_default().to_owned();
        match error {
            RequestTokenError::ServerResponse(refused) => TokenError::Refused(host, refused.to_string()),
            RequestTokenError::Request(failed) => TokenError::Unreachable(host, failed.to_string()),
            // The answer itself may hold a token.
            RequestTokenError::Parse(error, _) => TokenError::Unreadable(host, error.inner().to_string()),
            RequestTokenError::Other(why) => TokenError::Unreadable(host, why),
        }
    }

    fn tokens(&self, answer: BasicTokenResponse, found: &Found, asked: &[String]) -> Tokens {
        self.read(&answer, &found.issuer, &found.resource, asked)
    }

    fn read(&self, answer: &BasicTokenResponse, issuer: &str, resource: &str, asked: &[String]) -> Tokens {
        let ends = answer.expires_in().and_then(|left| SystemTime::now().checked_add(left));
        let seconds = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let granted = answer.scopes().map(|all| all.iter().map(|scope| scope.to_string()).collect());
        Tokens {
            issuer: issuer.to_owned(),
            resource: resource.to_owned(),
            endpoint: self.url.clone(),
            client: self.client.clone(),
            access: answer.access_token().secret().clone(),
            refresh: answer.refresh_token().map(|token| token.secret().clone()),
            ends: ends.map(seconds),
            scopes: granted.unwrap_or_else(|| asked.to_vec()),
            wanted: Vec::new(),
        }
    }
}

/// What many servers get slightly wrong in an answer with a token: a missing type, a number written as a text, nulls.
fn mended(whole: Vec<u8>) -> Vec<u8> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice::<Value>(&whole) else { return whole };
    fields.retain(|_, value| !value.is_null());
    fields.entry("token_type").or_insert_with(|| json!("bearer"));
    if let Some(left) = fields.get("expires_in").filter(|left| !left.is_u64()) {
        let left = left.as_f64().or_else(|| left.as_str().and_then(|left| left.trim().parse().ok()));
        match left.filter(|left| (0.0..1e10).contains(left)) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within bounds")]
            Some(left) => _ = fields.insert("expires_in".into(), json!(left as u64)),
            None => _ = fields.shift_remove("expires_in"),
        }
    }
    Value::Object(fields).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slightly_wrong_answers_are_mended() {
        let mend = |value: Value| -> Value {
            serde_json::from_slice(&mended(value.to_string().into_bytes())).unwrap()
        };
        let wrong = json!({"access_token": "a", "expires_in": "3600", "refresh_token": null});
        assert_eq!(mend(wrong), json!({"access_token": "a", "expires_in": 3600, "token_type": "bearer"}));
        assert_eq!(mend(json!({"expires_in": -1, "token_type": "x"})), json!({"token_type": "x"}));
        assert_eq!(mended(b"<html>".to_vec()), b"<html>");
    }
}
