//! Notices when another process changed the servers of the settings: `lectern mcp add` beside an open window, or an
//! editor.
//!
//! Invariant: only servers of the settings whose configuration became different are touched, and the rules. A file that
//! can't be read changes nothing; approvals decide whether what is new may start.

use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use lectern_core::ServerId;
use lectern_mcp::ServerConfig;

use super::plan::of_settings;
use crate::engine::Engine;
use crate::settings::Settings;

/// Time between two looks. Polling also sees files on network folders, and costs one call of the system.
const POLL: Duration = Duration::from_secs(1);

type Stamp = Option<(SystemTime, u64)>;

impl Engine {
    /// Follows the settings file for as long as there is an engine.
    pub(in crate::engine) fn follow_settings(&self) {
        let options = &self.0.options;
        if options.without_servers || options.mcp_config.is_some() || options.only.is_some() {
            return;
        }
        let (path, engine) = (self.0.home.settings(), Arc::downgrade(&self.0));
        tokio::spawn(async move {
            let mut applied = stamp(&path);
            let mut before = applied;
            loop {
                tokio::time::sleep(POLL).await;
                let now = stamp(&path);
                // Twice the same: nobody is writing any more, and what this process changed is applied by now.
                if now == before && now != applied {
                    let Some(inner) = engine.upgrade() else { return };
                    Engine(inner).apply_settings().await;
                    applied = now;
                }
                before = now;
                if engine.strong_count() == 0 {
                    return;
                }
            }
        });
    }

    async fn apply_settings(&self) {
        let Some((configs, gone)) = self.take_settings() else { return };
        for id in gone.iter().filter(|id| !self.is_built_in(id.as_str())) {
            // It may have been an entry that the host never had.
            let _ = self.0.host.remove(id).await;
        }
        for config in configs {
            let known = self.0.host.config(&config.id).ok();
            if known.as_ref() != Some(&config) && !self.is_built_in(config.id.as_str()) {
                self.0.host.set(config).await;
            }
        }
        self.tell_servers();
    }

    /// What the file says goes into the state, with the servers that are to be and those that are gone.
    fn take_settings(&self) -> Option<(Vec<ServerConfig>, Vec<ServerId>)> {
        // What this process changes meanwhile would be forgotten again.
        let _alone = self.0.changing.lock().unwrap_or_else(PoisonError::into_inner);
        // A broken file is told about when something is to be written into it.
        let settings = Settings::read(&self.0.home).ok()?;
        let (configs, unusable) = of_settings(&settings);
        let gone: Vec<ServerId> = {
            let mut state = self.state();
            let had = std::mem::replace(&mut state.settings.servers, settings.servers.clone());
            state.settings.inputs.clone_from(&settings.inputs);
            state.settings.rules.clone_from(&settings.rules);
            state.unusable = unusable;
            let gone = had.keys().filter(|id| !configs.iter().any(|config| config.id.as_str() == *id));
            gone.map(|id| id.as_str().into()).collect()
        };
        self.take_rules(&settings);
        // Models need their providers.
        self.take_providers(&settings);
        self.take_models(&settings);
        Some((configs, gone))
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}
