//! Google's logins: a service account, a person's application-default login, the metadata server of a machine.
//!
//! Why not `google-cloud-auth` (1.18): for a service account it signs each request's token itself and never asks
//! `token_uri`, so a revoked key is noticed late, and private endpoints with a token server of their own can't be used.
//! What is left, two forms to post and one to get, is small; signing is `ring`'s, which TLS brings along.
//!
//! Invariant: nothing is asked but the given addresses, and those only over TLS, on this computer, or at a machine's own
//! metadata server.

use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures::future::BoxFuture;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;

use super::{Mint, SignInError, Token};
use crate::fault::Said;
use crate::transport::{self, Limits, cause};

const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
/// Google's own (RFC 7523 assertions, refresh tokens).
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// Google takes no assertion that lasts longer.
const LASTS: i64 = 3_600;
/// Bytes of a token answer at most.
const LONGEST: usize = 64 << 10;
/// Where a machine of Google's finds its own token.
pub const METADATA_HOST: &str = "metadata.google.internal";

/// Why credentials can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadCredentials {
    /// A field is missing or empty.
    #[error("the credentials have no `{0}`")]
    Missing(&'static str),
    /// It is no JSON object.
    #[error("the credentials are no JSON object")]
    NoObject,
    /// Another kind, e.g. `external_account`.
    #[error("credentials of the kind `{0}` are not supported")]
    Kind(String),
    /// The key can't be read.
    #[error("the private key can't be read")]
    Key,
    /// The address is none, or would send secrets in the clear.
    #[error("`{0}` is no address that a secret may be sent to")]
    Address(String),
    /// No client.
    #[error("the HTTP client could not be made")]
    Client,
}

/// One login at Google; [`super::Tokens`] keeps what it gives.
pub struct GoogleLogin {
    kind: Kind,
    client: reqwest::Client,
    url: Url,
    limits: Limits,
}

enum Kind {
    ServiceAccount {
        email: String,
        key: Box<RsaKeyPair>,
        key_id: Option<String>,
    },
    Person {
        client_id: String,
        client_secret: SecretString,
        refresh_token: SecretString,
        quota_project: Option<String>,
    },
    Machine,
}

/// What may be shown of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// `service_account`, `authorized_user` or `metadata_server`.
    pub kind: &'static str,
    /// The account, where the credentials name it.
    pub account: Option<String>,
    /// The project, where the credentials name one.
    pub project: Option<String>,
}

/// What a file of credentials is about, without a secret. Nothing is asked.
pub fn about(credentials: &Value) -> Result<About, BadCredentials> {
    let text = |name: &str| credentials.get(name).and_then(Value::as_str).map(str::to_owned);
    match kind_of(credentials)? {
        "service_account" => {
            Ok(About { kind: "service_account", account: text("client_email"), project: text("project_id") })
        }
        "authorized_user" => {
            Ok(About { kind: "authorized_user", account: text("account"), project: text("quota_project_id") })
        }
        other => Err(BadCredentials::Kind(other.to_owned())),
    }
}

fn kind_of(credentials: &Value) -> Result<&str, BadCredentials> {
    let fields = credentials.as_object().ok_or(BadCredentials::NoObject)?;
    fields.get("type").and_then(Value::as_str).ok_or(BadCredentials::Missing("type"))
}

impl GoogleLogin {
    /// Reads the JSON that Google gives: a service account's key, or gcloud's application-default login.
    pub fn from_json(credentials: &Value, limits: Limits) -> Result<Self, BadCredentials> {
        let text = |name: &'static str| {
            let value = credentials.get(name).and_then(Value::as_str).map(str::trim);
            value.filter(|value| !value.is_empty()).ok_or(BadCredentials::Missing(name))
        };
        let kind = match kind_of(credentials)? {
            "service_account" => Kind::ServiceAccount {
                email: text("client_email")?.to_owned(),
                key: Box::new(read_key(text("private_key")?)?),
                key_id: text("private_key_id").ok().map(str::to_owned),
            },
            "authorized_user" => Kind::Person {
                client_id: text("client_id")?.to_owned(),
                client_secret: text("client_secret")?.into(),
                refresh_token: text("refresh_token")?.into(),
                quota_project: text("quota_project_id").ok().map(str::to_owned),
            },
            other => return Err(BadCredentials::Kind(other.to_owned())),
        };
        let given = text("token_uri").unwrap_or(TOKEN_URI);
        let url = Url::parse(given).ok().filter(|url| url.scheme() == "https" || transport::is_here(url));
        let url = url.ok_or_else(|| BadCredentials::Address(given.to_owned()))?;
        Self::new(kind, url, limits)
    }

    /// The account of the machine itself, at [`METADATA_HOST`] or where `GCE_METADATA_HOST` says.
    pub fn machine(host: &str, limits: Limits) -> Result<Self, BadCredentials> {
        let address = format!("http://{host}/computeMetadata/v1/instance/service-accounts/default/token");
        let url = Url::parse(&address).ok().filter(|url| url.path().starts_with("/computeMetadata/"));
        let mut url = url.ok_or_else(|| BadCredentials::Address(host.to_owned()))?;
        url.query_pairs_mut().append_pair("scopes", SCOPE);
        Self::new(Kind::Machine, url, limits)
    }

    fn new(kind: Kind, url: Url, limits: Limits) -> Result<Self, BadCredentials> {
        let client = match kind {
            // It is a part of the machine; a proxy can't reach it, and must not see its token.
            Kind::Machine => transport::direct_client(&url, &limits),
            Kind::ServiceAccount { .. } | Kind::Person { .. } => transport::client(&url, &limits),
        };
        let client = client.map_err(|_| BadCredentials::Client)?;
        Ok(Self { kind, client, url, limits })
    }

    /// Who is asked, and on which way.
    fn asked(&self) -> String {
        let proxy = match self.kind {
            Kind::Machine => None,
            Kind::ServiceAccount { .. } | Kind::Person { .. } => transport::proxy_of(&self.url),
        };
        transport::way_to(&transport::host_of(&self.url), proxy.as_deref())
    }

    fn request(&self) -> Result<reqwest::RequestBuilder, SignInError> {
        let post = |form: &[(&str, &str)]| self.client.post(self.url.clone()).form(form);
        Ok(match &self.kind {
            Kind::ServiceAccount { email, key, key_id } => {
                let now = lectern_core::clock::now().as_second();
                let assertion = self.assertion(email, key, key_id.as_deref(), now)?;
                post(&[
                    ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                    ("assertion", &assertion),
                ])
            }
            Kind::Person { client_id, client_secret, refresh_token, .. } => post(&[
                ("grant_type", "refresh_token"),
                ("client_id", client_id),
                ("client_secret", client_secret.expose_secret()),
                ("refresh_token", refresh_token.expose_secret()),
            ]),
            Kind::Machine => self.client.get(self.url.clone()).header("Metadata-Flavor", "Google"),
        })
    }

    /// RFC 7523, 3, signed with RS256 (RFC 7518, 3.3).
    fn assertion(
        &self,
        email: &str,
        key: &RsaKeyPair,
        key_id: Option<&str>,
        now: i64,
    ) -> Result<String, SignInError> {
        let mut head = json!({ "alg": "RS256", "typ": "JWT" });
        if let Some(id) = key_id {
            head["kid"] = json!(id);
        }
        // A clock that is a little ahead would make an assertion of the future.
        let issued = now - 10;
        let claims = json!({
            "iss": email, "scope": SCOPE, "aud": self.url.as_str(), "iat": issued, "exp": issued + LASTS,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&head), part(&claims));
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature)
            .map_err(|_| SignInError::Refused("the private key can't sign".to_owned()))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    async fn ask(&self) -> Result<Token, SignInError> {
        let host = self.asked();
        let unreachable = |why: String| SignInError::Unreachable { host: host.clone(), why };
        let mut response = self.request()?.send().await.map_err(|error| unreachable(cause(&error)))?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| unreachable(cause(&error)))? {
            body.extend_from_slice(&chunk);
            if body.len() > LONGEST {
                return Err(unreachable("its answer is longer than it may be".to_owned()));
            }
        }
        if status.is_success() {
            return self.token(&body).ok_or_else(|| unreachable("its answer is no token".to_owned()));
        }
        let said = Said::read(&body);
        let word = said.status.clone().unwrap_or_else(|| status.to_string());
        // By the code alone (RFC 6749, 5.2); the sentence may repeat what was sent.
        Err(match word.as_str() {
            "invalid_grant" => SignInError::Expired(word),
            _ if status.is_server_error() || status.as_u16() == 429 => unreachable(word),
            _ => SignInError::Refused(word),
        })
    }

    fn token(&self, body: &[u8]) -> Option<Token> {
        let answer: Value = serde_json::from_slice(body).ok()?;
        let secret = answer.get("access_token")?.as_str().filter(|token| !token.is_empty())?;
        let lasts = answer.get("expires_in").and_then(Value::as_u64).map(Duration::from_secs);
        let quota_project = match &self.kind {
            Kind::Person { quota_project, .. } => quota_project.clone(),
            Kind::ServiceAccount { .. } | Kind::Machine => None,
        };
        let expires = lasts.and_then(|lasts| Instant::now().checked_add(lasts));
        Some(Token { secret: secret.into(), expires, quota_project })
    }
}

impl Mint for GoogleLogin {
    fn mint(&self) -> BoxFuture<'_, Result<Token, SignInError>> {
        Box::pin(async {
            let limit = self.limits.first_byte.min(Duration::from_secs(30));
            match tokio::time::timeout(limit, self.ask()).await {
                Ok(token) => token,
                Err(_) => Err(SignInError::Unreachable {
                    host: self.asked(),
                    why: format!("it said nothing for {} s", limit.as_secs()),
                }),
            }
        })
    }
}

impl std::fmt::Debug for GoogleLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.kind {
            Kind::ServiceAccount { .. } => "GoogleLogin::ServiceAccount(…)",
            Kind::Person { .. } => "GoogleLogin::Person(…)",
            Kind::Machine => "GoogleLogin::Machine",
        })
    }
}

/// A key in PEM: PKCS#8 as Google gives it, or PKCS#1.
fn read_key(pem: &str) -> Result<RsaKeyPair, BadCredentials> {
    // Pasted from elsewhere, the line breaks may be written out.
    let pem = pem.replace("\\n", "\n");
    let mut lines = pem.lines().map(str::trim).filter(|line| !line.is_empty());
    let kind = lines.next().ok_or(BadCredentials::Key)?;
    let body: String = lines.take_while(|line| !line.starts_with("-----")).collect();
    let der = STANDARD.decode(body).map_err(|_| BadCredentials::Key)?;
    let key = match kind {
        "-----BEGIN PRIVATE KEY-----" => RsaKeyPair::from_pkcs8(&der),
        "-----BEGIN RSA PRIVATE KEY-----" => RsaKeyPair::from_der(&der),
        _ => return Err(BadCredentials::Key),
    };
    key.map_err(|_| BadCredentials::Key)
}
