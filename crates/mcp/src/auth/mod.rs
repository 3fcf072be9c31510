//! Signing in to remote servers (MCP 2025-11-25 and 2026-07-28, Authorization; OAuth 2.1).
//!
//! A request is sent without a token until the server asks for one. Then, in this order: a token that is kept, a
//! renewed one, and only then the user, in a browser.
//!
//! Invariant: a token goes to the server that it was given for and to nobody else; what was agreed with one
//! authorization server (client id, secret, refresh token) is never shown to another; a secret stands in no log, no
//! error and no address. Nothing opens in a browser unless whoever made the host gave it one.
//!
//! # What is a library's, and what is our own
//!
//! PKCE, `state`, the token requests and their answers are the `oauth2` crate's; challenges are parsed by `http-auth`.
//! Discovery, the choice of client and scopes and the checks between them are MCP's own rules, which `oauth2` has no
//! words for. `rmcp` 3.9.0 has them (`transport::auth`), but forgets earlier scopes when more are asked for, reaches
//! any address that a server names, and hangs on its own HTTP transport, which is not used here.
//!
//! | module | job |
//! |---|---|
//! | `challenge` | what a 401 or 403 asks for |
//! | `discover` | from a server to its authorization server, with all checks |
//! | `client` | who we are there: registered before, by document, or now |
//! | `flow` | the user's visit to the browser, and back |
//! | `loopback` | the address to come back to |
//! | `token` | requests for tokens |
//! | `store` | tokens in the keyring |
//! | `browser` | opens pages |

mod browser;
mod challenge;
mod client;
mod discover;
mod flow;
mod loopback;
mod store;
mod token;

use std::collections::BTreeSet;
use std::sync::Arc;

use reqwest::header::{HeaderMap, HeaderValue};
use tokio::sync::{Mutex, MutexGuard};
use url::Url;

use crate::config::{Grant, SignIn};
use crate::http::reach::{OutOfReach, Reach};
use crate::secrets::Secrets;
use challenge::Challenge;
use discover::Found;
use store::Tokens;
use token::Endpoint;

pub(crate) use challenge::lacks_rights;

pub(crate) use flow::PATIENCE;
pub(crate) use store::Kept;

pub use browser::{Browser, BrowserCommand, SystemBrowser};

/// How often more rights are asked for in one connection: a server that never has enough is not obeyed for ever
/// (MCP 2025-11-25, Authorization, Step-Up Authorization Flow).
const STEP_UPS: u32 = 2;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuthError {
    /// There is no browser to open here.
    #[error("the user has to sign in")]
    NeedsUser,
    /// There is no browser to open here; holds what the next visit will ask for.
    #[error("the user has to grant more rights ({0})")]
    NeedsRights(String),
    #[error("the server refused the `Authorization` header of its settings")]
    OwnHeader,
    #[error("the server refuses the token that was just given for it")]
    Useless,
    #[error("the server asks for ever more rights ({0})")]
    NeverEnough(String),
    #[error(transparent)]
    OutOfReach(#[from] OutOfReach),
    #[error("the HTTP client could not be made: {0}")]
    Client(#[from] crate::http::client::ClientError),
    #[error(transparent)]
    Discover(#[from] discover::DiscoverError),
    #[error(transparent)]
    Register(#[from] client::RegisterError),
    #[error(transparent)]
    Flow(#[from] flow::FlowError),
    #[error(transparent)]
    Token(#[from] token::TokenError),
    #[error("the token could not be kept: {0}")]
    Keep(String),
}

/// What was done about a refusal, so that the request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// There was a token already.
    Known,
    /// The token was renewed.
    Renewed,
    /// Somebody signed in.
    SignedIn,
}

/// Signs in to one server.
pub(crate) struct Authorizer {
    server: Url,
    settings: SignIn,
    /// The settings have an `Authorization` header: then nothing is done here.
    own_header: bool,
    kept: Kept,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    browser: Option<Arc<dyn Browser>>,
    looked: bool,
    tokens: Option<Tokens>,
    /// Somebody signed in during this connection.
    visited: bool,
    /// All scopes that were ever asked for.
    asked: BTreeSet<String>,
    step_ups: u32,
}

impl Authorizer {
    pub(crate) fn new(
        server: &Url,
        settings: SignIn,
        own_header: bool,
        secrets: Option<Arc<dyn Secrets>>,
        browser: Option<Arc<dyn Browser>>,
    ) -> Self {
        let kept = Kept::new(server, secrets);
        let state = Mutex::new(State { browser, ..State::default() });
        Self { server: server.clone(), settings, own_header, kept, state }
    }

    /// Signs in although nothing was refused in this connection, unless somebody just did: some servers greet
    /// everybody and want to know who asks only when a tool is called.
    pub(crate) async fn visit(&self) -> Result<(), AuthError> {
        if self.own_header {
            return Err(AuthError::OwnHeader);
        }
        let mut state = self.state.lock().await;
        if state.visited {
            return Ok(());
        }
        let kept = match state.tokens.clone() {
            Some(tokens) => Some(tokens),
            None => self.kept.load().await,
        };
        let scopes = with_wanted(None, kept.as_ref());
        self.sign_in(&mut state, &Challenge::default(), scopes).await
    }

    /// From here on the user signs in there, or not at all. Returns at whose door somebody signed in.
    pub(crate) async fn started(&self, browser: Option<Arc<dyn Browser>>) -> Option<String> {
        let mut state = self.state.lock().await;
        state.browser = browser;
        state.tokens.as_ref().map(|tokens| tokens.issuer.clone())
    }

    /// The header to send, renewed shortly before the token ends. Waits while somebody signs in.
    pub(crate) async fn header(&self) -> Option<HeaderValue> {
        if self.own_header {
            return None;
        }
        let mut state = self.state.lock().await;
        let tokens = state.tokens.as_ref()?;
        if tokens.ends_soon() && tokens.refresh.is_some() && self.renew(&mut state).await.is_err() {
            // Perhaps the old one still does; if not, the server will say so.
            tracing::debug!(server = %self.server.host_str().unwrap_or_default(), "a token could not be renewed");
        }
        state.tokens.as_ref()?.header()
    }

    /// The server refused a request for lack of a token (401) or of rights (403). `used` is what was sent with it.
    pub(crate) async fn refused(
        &self,
        headers: &HeaderMap,
        used: Option<&HeaderValue>,
        already: Option<Answered>,
        more_rights: bool,
    ) -> Result<Answered, AuthError> {
        if self.own_header {
            return Err(AuthError::OwnHeader);
        }
        let challenge = Challenge::read(headers);
        let mut state = self.state.lock().await;
        let now = state.tokens.as_ref().and_then(Tokens::header);
        if now.is_some() && now.as_ref() != used {
            // Another request was quicker.
            return Ok(Answered::Known);
        }
        if more_rights {
            return self.step_up(&mut state, &challenge).await;
        }
        if already == Some(Answered::SignedIn) {
            return Err(AuthError::Useless);
        }
        if let Some(known) = self.known(&mut state, already).await? {
            return Ok(known);
        }
        let scopes = with_wanted(challenge.scopes.clone(), state.tokens.as_ref());
        self.sign_in(&mut state, &challenge, scopes).await?;
        Ok(Answered::SignedIn)
    }

    /// A token that is kept, or a renewed one. One that was renewed for this very request is not renewed again.
    async fn known(
        &self,
        state: &mut MutexGuard<'_, State>,
        already: Option<Answered>,
    ) -> Result<Option<Answered>, AuthError> {
        if !state.looked {
            state.looked = true;
            state.tokens = self.kept.load().await;
            let Some(kept) = &state.tokens else { return Ok(None) };
            let (asked, ends) = (kept.scopes.clone(), kept.ends_soon());
            let more = !kept.wanted.is_empty() && state.browser.is_some();
            state.asked.extend(asked);
            if more {
                // The user is here to grant more than this token has.
                return Ok(None);
            }
            if !ends {
                return Ok(Some(Answered::Known));
            }
        }
        let can = state.tokens.as_ref().is_some_and(|tokens| tokens.refresh.is_some());
        if already == Some(Answered::Renewed) || !can {
            return Ok(None);
        }
        match self.renew(state).await {
            Ok(()) => Ok(Some(Answered::Renewed)),
            // Nobody has refused anything: to sign in again would not help, and to try again later may.
            Err(error @ AuthError::Token(token::TokenError::Unreachable(..))) => Err(error),
            Err(_) => Ok(None),
        }
    }

    async fn renew(&self, state: &mut State) -> Result<(), AuthError> {
        let Some(tokens) = &state.tokens else { return Err(AuthError::NeedsUser) };
        let reach = Reach::of(&self.server).await;
        let endpoint = Endpoint::new(reach, tokens.endpoint.clone(), tokens.client.clone())?;
        let wanted = tokens.wanted.clone();
        let fresh = endpoint.refresh(tokens).await?;
        self.keep(state, Tokens { wanted, ..fresh }).await
    }

    async fn keep(&self, state: &mut State, tokens: Tokens) -> Result<(), AuthError> {
        // A keyring that does not work costs the user a sign-in next time, not this one.
        if let Err(error) = self.kept.save(&tokens).await {
            tracing::warn!(%error, "a token could not be kept");
        }
        state.tokens = Some(tokens);
        state.looked = true;
        Ok(())
    }

    /// More rights: those that were asked for before stay (MCP 2026-07-28, Authorization, Step-Up Authorization Flow).
    async fn step_up(
        &self,
        state: &mut MutexGuard<'_, State>,
        challenge: &Challenge,
    ) -> Result<Answered, AuthError> {
        let wanted: BTreeSet<String> = challenge.scopes.iter().flatten().cloned().collect();
        let never = || AuthError::NeverEnough(wanted.iter().cloned().collect::<Vec<_>>().join(" "));
        if state.step_ups == STEP_UPS || wanted.is_subset(&state.asked) {
            return Err(never());
        }
        let granted = state.tokens.iter().flat_map(|tokens| tokens.scopes.clone());
        let all: BTreeSet<String> =
            state.asked.iter().cloned().chain(granted).chain(wanted.iter().cloned()).collect();
        let all: Vec<String> = all.into_iter().collect();
        if self.settings.grant == Grant::User && state.browser.is_none() {
            // Kept with the token: the visit is made during another start.
            if let Some(tokens) = state.tokens.clone() {
                self.keep(state, Tokens { wanted: all, ..tokens }).await?;
            }
            return Err(AuthError::NeedsRights(wanted.into_iter().collect::<Vec<_>>().join(" ")));
        }
        state.step_ups += 1;
        self.sign_in(state, challenge, Some(all)).await?;
        Ok(Answered::SignedIn)
    }

    /// Finds out who gives tokens, and gets one.
    async fn sign_in(
        &self,
        state: &mut MutexGuard<'_, State>,
        challenge: &Challenge,
        scopes: Option<Vec<String>>,
    ) -> Result<(), AuthError> {
        if self.settings.grant == Grant::User && state.browser.is_none() {
            return Err(AuthError::NeedsUser);
        }
        let reach = Reach::of(&self.server).await;
        let found = discover::discover(&reach, &self.server, challenge).await?;
        self.kept.check_client(&self.settings, &found.issuer).await?;
        let scopes = chosen(scopes, &found);
        state.asked.extend(scopes.iter().cloned());
        let tokens = match (self.settings.grant, state.browser.clone()) {
            (Grant::User, Some(browser)) => {
                flow::by_user(&reach, &found, &self.settings, &scopes, browser.as_ref()).await?
            }
            (Grant::User, None) => return Err(AuthError::NeedsUser),
            (Grant::Client, _) => {
                let client = client::configured(&self.settings, &found)?;
                Endpoint::new(reach, found.token_endpoint.clone(), client)?
                    .for_client(&found, &scopes)
                    .await?
            }
        };
        state.visited = true;
        self.keep(state, tokens).await
    }
}

/// What a server asks for now, and what it has been asking for since the last visit.
fn with_wanted(asked: Option<Vec<String>>, tokens: Option<&Tokens>) -> Option<Vec<String>> {
    let wanted = tokens.map(|tokens| tokens.wanted.clone()).filter(|wanted| !wanted.is_empty());
    let Some(mut all) = wanted else { return asked };
    all.extend(asked.into_iter().flatten());
    let all: BTreeSet<String> = all.into_iter().collect();
    Some(all.into_iter().collect())
}

/// The scopes to ask for (MCP 2025-11-25, Authorization, Scope Selection Strategy): what the server asks for, else
/// what its metadata names, else none; and a token that can be renewed, where there is such a scope.
fn chosen(asked: Option<Vec<String>>, found: &Found) -> Vec<String> {
    let mut scopes = asked.or_else(|| found.scopes.clone()).unwrap_or_default();
    let offline = "offline_access";
    if found.offers_scope(offline) && !scopes.iter().any(|scope| scope == offline) {
        scopes.push(offline.to_owned());
    }
    scopes
}
