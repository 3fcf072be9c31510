//! Where models come from: the hub or its mirror, and whether a token is shown there.
//!
//! Invariant: the token itself never crosses.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Where models come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/hub.ts")]
pub struct HubView {
    /// The mirror in the settings; none for Hugging Face itself. A change holds at once.
    pub mirror: Option<String>,
    /// The address that the environment names, which wins.
    pub from_environment: Option<String>,
    /// Whether there is a token.
    pub token: HubToken,
}

/// Whether there is a token for the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/hub.ts")]
pub enum HubToken {
    /// There is none.
    None,
    /// It is kept.
    Kept,
    /// The environment has one, which wins.
    Environment,
    /// There is no keyring, so it was kept in memory and holds until Lectern ends.
    Session,
}
