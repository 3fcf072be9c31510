//! Puts Lectern together: settings, sessions, the [`Engine`]. Every shell uses this and nothing below it.

mod approvals;
pub mod audit;
pub mod callers;
pub mod debug;
pub mod durable;
pub mod engine;
pub mod entry;
mod fitted;
pub mod generation;
mod given_way;
pub mod home;
mod library;
pub mod models;
pub mod options;
pub mod picture;
mod problem;
pub mod prompt;
pub mod providers;
pub mod rules;
pub mod sample;
pub mod secrets;
pub mod settings;
pub mod starter;
mod states;
mod unusable;
pub mod vaults;
pub mod view;

/// What a shell needs of the MCP host when there is no engine: to look at a server that is in no settings.
pub mod mcp {
    pub use lectern_mcp::{
        Browser, BrowserCommand, Endpoint, Grant, Program, ServerConfig, SystemBrowser, Transport, probe,
    };
}

pub use engine::{Answering, Engine, KeptKey, NeededValue, News, ToolsIn, ValueKind};
pub use home::Home;
pub use lectern_library::units;
pub use lectern_mcp::export::Shape;
pub use options::EngineOptions;
