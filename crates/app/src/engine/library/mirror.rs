//! The hub's address and token, as the user sets them.
//!
//! Invariant: a token goes into the keyring and is never given out by this.

use lectern_mcp::Secrets;

use super::super::Engine;
use super::hub::{HUB_VARIABLE, TOKEN, TOKEN_VARIABLE};
use crate::problem::of_secrets;
use crate::secrets::Kept;
use crate::view::{HubToken, HubView, Problem};

impl Engine {
    /// Where models come from. Asks the keyring whether there is a token.
    pub async fn hub(&self) -> Result<HubView, Problem> {
        let kept = self.0.secrets.get(TOKEN).await.map_err(|error| of_secrets(&error));
        let token = match (variable(TOKEN_VARIABLE), kept) {
            (Some(_), _) => HubToken::Environment,
            (None, Ok(Some(_))) => HubToken::Kept,
            // Without a keyring there is none; one that is locked says so when a token is kept.
            (None, Ok(None) | Err(_)) => HubToken::None,
        };
        Ok(self.hub_view(token))
    }

    /// Keeps a token for the hub, or forgets the one that is kept.
    pub async fn keep_hub_token(&self, token: Option<&str>) -> Result<HubView, Problem> {
        let Some(token) = token.map(str::trim).filter(|token| !token.is_empty()) else {
            self.0.secrets.delete(TOKEN).await.map_err(|error| of_secrets(&error))?;
            self.renew_hub()?;
            return self.hub().await;
        };
        if !token.chars().all(|char| char.is_ascii_graphic()) {
            return Err(Problem::new("bad_token", "a token has no spaces and no letters beyond ASCII"));
        }
        let kept = self.0.secrets.keep(TOKEN, token).await.map_err(|error| of_secrets(&error))?;
        self.renew_hub()?;
        Ok(match kept {
            Kept::InKeyring => self.hub().await?,
            Kept::ForThisSession(_) => self.hub_view(HubToken::Session),
        })
    }

    /// Sets the mirror that stands for Hugging Face, or none. It holds at once.
    pub async fn set_hub_mirror(&self, mirror: Option<&str>) -> Result<HubView, Problem> {
        let mirror = mirror.map(str::trim).filter(|mirror| !mirror.is_empty()).map(str::to_owned);
        if let Some(named) = mirror.as_deref().filter(|named| !is_address(named)) {
            return Err(Problem::new("bad_address", format!("`{named}` is no web address"))
                .hint("Write one that begins with https://."));
        }
        self.change_settings(|settings| settings.model_hub = mirror)?;
        self.renew_hub()?;
        self.hub().await
    }

    fn hub_view(&self, token: HubToken) -> HubView {
        HubView {
            mirror: self.state().settings.model_hub.clone(),
            from_environment: variable(HUB_VARIABLE),
            token,
        }
    }
}

/// Whether a hub can be at this address; who is there shows when it is asked.
fn is_address(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| !rest.is_empty() && !text.contains(char::is_whitespace))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
