//! Who we are to a provider.
//!
//! Invariant: no secret is printed; a token that the provider refused is renewed once, by one of those who wait for it.

pub mod google;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;

/// A token is renewed when it is valid for less than this, so that none expires on its way.
const AHEAD: Duration = Duration::from_secs(120);

/// Who we are.
#[derive(Clone, Default)]
pub enum Credentials {
    /// Nobody; for endpoints that ask for nothing.
    #[default]
    None,
    /// A key: `x-goog-api-key` at Google, `Authorization: Bearer` at OpenAI-compatible endpoints.
    Key(SecretString),
    /// Tokens that end and are renewed.
    Tokens(Arc<dyn TokenSource>),
}

/// A token, and what is sent with it.
#[derive(Clone, Debug)]
pub struct Token {
    /// `Authorization: Bearer …`
    pub secret: SecretString,
    /// When it ends; none when that is not known.
    pub expires: Option<Instant>,
    /// The project that pays, for the credentials of a person (`x-goog-user-project`).
    pub quota_project: Option<String>,
}

/// Why there is no token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignInError {
    /// The login is over or was withdrawn (`invalid_grant`): the user has to sign in again.
    #[error("the login has expired or was withdrawn: {0}")]
    Expired(String),
    /// The credentials themselves are refused, or can't be read.
    #[error("the credentials are refused: {0}")]
    Refused(String),
    /// No way to the server that gives tokens; may be tried again.
    #[error("no token from {host}: {why}")]
    Unreachable {
        /// The server.
        host: String,
        /// What is in the way.
        why: String,
    },
}

/// Gives a token for each request.
pub trait TokenSource: Send + Sync {
    /// A token that is valid now. `refused` is the one that the provider did not take: another is wanted.
    fn token(&self, refused: Option<Token>) -> BoxFuture<'_, Result<Token, SignInError>>;
}

/// Gets one new token. [`Tokens`] says when.
pub trait Mint: Send + Sync {
    /// Asks for a new token.
    fn mint(&self) -> BoxFuture<'_, Result<Token, SignInError>>;
}

/// Keeps the token of a [`Mint`], renews it ahead of its end, and asks once however many wait.
pub struct Tokens<M> {
    mint: M,
    /// Held while a token is fetched: whoever comes meanwhile waits for that one.
    kept: Mutex<Option<Token>>,
}

impl<M: Mint> Tokens<M> {
    /// Nothing is asked yet.
    pub fn new(mint: M) -> Self {
        Self { mint, kept: Mutex::new(None) }
    }
}

impl<M: Mint> TokenSource for Tokens<M> {
    fn token(&self, refused: Option<Token>) -> BoxFuture<'_, Result<Token, SignInError>> {
        Box::pin(async move {
            let mut kept = self.kept.lock().await;
            let is_refused = |token: &Token| refused.as_ref().is_some_and(|refused| refused.is(token));
            if let Some(token) = kept.as_ref().filter(|token| token.is_fresh() && !is_refused(token)) {
                return Ok(token.clone());
            }
            match (self.mint.mint().await, kept.as_ref()) {
                (Ok(token), _) => {
                    *kept = Some(token.clone());
                    Ok(token)
                }
                // No new one for now, but this one still holds for a moment.
                (Err(SignInError::Unreachable { .. }), Some(token))
                    if token.is_valid() && !is_refused(token) =>
                {
                    Ok(token.clone())
                }
                (Err(error), _) => Err(error),
            }
        })
    }
}

impl Token {
    fn is(&self, other: &Self) -> bool {
        self.secret.expose_secret() == other.secret.expose_secret()
    }

    fn is_valid(&self) -> bool {
        self.expires.is_none_or(|end| end > Instant::now())
    }

    fn is_fresh(&self) -> bool {
        self.expires.is_none_or(|end| end.saturating_duration_since(Instant::now()) > AHEAD)
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "Credentials::None",
            Self::Key(_) => "Credentials::Key(…)",
            Self::Tokens(_) => "Credentials::Tokens(…)",
        })
    }
}

/// How a provider wants a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyHeader {
    Google,
    Bearer,
}

/// What one request carries.
#[derive(Default)]
pub(crate) struct Proof {
    pub(crate) headers: HeaderMap,
    pub(crate) token: Option<Token>,
    /// What must not be seen in any text.
    pub(crate) secret: Option<SecretString>,
}

impl Credentials {
    /// A key, without the blanks that come with pasting.
    pub fn key(key: impl Into<String>) -> Self {
        Self::Key(key.into().trim().to_owned().into())
    }

    /// Tokens that are fetched when one is wanted, kept, and renewed ahead of their end.
    pub fn tokens(mint: impl Mint + 'static) -> Self {
        Self::Tokens(Arc::new(Tokens::new(mint)))
    }

    /// The headers of a request. `refused` is the token that the provider did not take.
    pub(crate) async fn proof(&self, key: KeyHeader, refused: Option<Token>) -> Result<Proof, SignInError> {
        let mut headers = HeaderMap::new();
        let (token, secret) = match self {
            Self::None => return Ok(Proof::default()),
            Self::Key(secret) => {
                match key {
                    KeyHeader::Google => {
                        headers.insert(
                            HeaderName::from_static("x-goog-api-key"),
                            secret_value("", secret.expose_secret())?,
                        );
                    }
                    KeyHeader::Bearer => {
                        headers.insert(AUTHORIZATION, secret_value("Bearer ", secret.expose_secret())?);
                    }
                }
                (None, secret.clone())
            }
            Self::Tokens(source) => {
                let token = source.token(refused).await?;
                headers.insert(AUTHORIZATION, secret_value("Bearer ", token.secret.expose_secret())?);
                if let Some(project) = &token.quota_project {
                    let value = HeaderValue::try_from(project.as_str());
                    let value =
                        value.map_err(|_| SignInError::Refused("the quota project is no name".into()))?;
                    headers.insert(HeaderName::from_static("x-goog-user-project"), value);
                }
                let secret = token.secret.clone();
                (Some(token), secret)
            }
        };
        Ok(Proof { headers, token, secret: Some(secret) })
    }

    /// Whether another token may help where one was refused.
    pub(crate) fn can_renew(&self) -> bool {
        match self {
            Self::None | Self::Key(_) => false,
            Self::Tokens(_) => true,
        }
    }
}

fn secret_value(before: &str, secret: &str) -> Result<HeaderValue, SignInError> {
    let value = HeaderValue::try_from(format!("{before}{}", secret.trim()));
    let mut value =
        value.map_err(|_| SignInError::Refused("it has characters that no key has".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Counting(AtomicUsize, Duration);

    impl Mint for Counting {
        fn mint(&self) -> BoxFuture<'_, Result<Token, SignInError>> {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                let count = self.0.fetch_add(1, Ordering::SeqCst);
                let expires = Some(Instant::now() + self.1);
                Ok(Token { secret: format!("t{count}").into(), expires, quota_project: None })
            })
        }
    }

    #[tokio::test]
    async fn many_who_wait_ask_once_and_a_refused_token_is_renewed_once() {
        let tokens = Tokens::new(Counting(AtomicUsize::new(0), Duration::from_secs(3_600)));
        let all = futures::future::join_all((0..20).map(|_| tokens.token(None))).await;
        let first = all[0].clone().unwrap();
        assert!(all.into_iter().all(|token| token.unwrap().is(&first)));
        let renewed = futures::future::join_all((0..20).map(|_| tokens.token(Some(first.clone())))).await;
        assert!(renewed.into_iter().all(|token| token.unwrap().secret.expose_secret() == "t1"));
        assert_eq!(tokens.mint.0.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn a_token_is_renewed_ahead_of_its_end() {
        let tokens = Tokens::new(Counting(AtomicUsize::new(0), Duration::from_secs(60)));
        tokens.token(None).await.unwrap();
        assert_eq!(tokens.token(None).await.unwrap().secret.expose_secret(), "t1");
    }

    #[tokio::test]
    async fn a_token_that_still_holds_is_used_while_no_new_one_can_be_had() {
        struct Once(AtomicUsize);
        impl Mint for Once {
            fn mint(&self) -> BoxFuture<'_, Result<Token, SignInError>> {
                Box::pin(async {
                    if self.0.fetch_add(1, Ordering::SeqCst) > 0 {
                        return Err(SignInError::Unreachable { host: "h".to_owned(), why: "off".to_owned() });
                    }
                    let expires = Some(Instant::now() + AHEAD / 2);
                    Ok(Token { secret: "t".into(), expires, quota_project: None })
                })
            }
        }
        let tokens = Tokens::new(Once(AtomicUsize::new(0)));
        let first = tokens.token(None).await.unwrap();
        assert!(tokens.token(None).await.unwrap().is(&first));
        assert!(tokens.token(Some(first)).await.is_err());
    }

    #[test]
    fn nothing_prints_a_secret() {
        let token = Token { secret: "geheim".into(), expires: None, quota_project: None };
        let all = format!("{token:?} {:?}", Credentials::Key("geheim".into()));
        assert!(!all.contains("geheim"), "{all}");
    }
}
