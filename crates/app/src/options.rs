//! What one run of Lectern does otherwise than the settings say.

use std::path::PathBuf;
use std::sync::Arc;

use lectern_core::{Actor, Asker, Rule, ServerId};

use crate::generation::Entry;

/// Overrides for one run; the default is to do as the settings say. None of it is written to the settings.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// The executable that has the subcommands of [`crate::entry`]; none for the running one.
    pub executable: Option<PathBuf>,
    /// A model by its id, a GGUF file, or `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Where the provider of the model is asked in place of its own address.
    pub base_url: Option<String>,
    /// Folders of notes in place of the vaults in the settings; empty for those.
    pub vaults: Vec<PathBuf>,
    /// A file of servers in place of those in the settings. Then no vault is served that is not named here.
    pub mcp_config: Option<PathBuf>,
    /// Starts no server at all, for a shell that only looks at the models.
    pub without_servers: bool,
    /// Starts no server by itself, for a shell that examines them one by one.
    pub dormant: bool,
    /// Of all servers only this one is started; that there is none of this name is an error.
    pub only: Option<ServerId>,
    /// Rules beside those in the settings.
    pub rules: Vec<Rule>,
    /// How models write in this run, over what is set elsewhere; see [`crate::view::SettingKey`].
    pub generation: Entry,
    /// Who acts, for the audit log.
    pub who: Actor,
    /// Where secrets are; none for the keyring of the system.
    pub secrets: Option<crate::secrets::Keyring>,
    /// Who answers servers that ask outside of a turn; nobody when none.
    pub asker: Option<Arc<dyn Asker>>,
    /// Steps of a turn at most.
    pub max_steps: Option<u32>,
}
