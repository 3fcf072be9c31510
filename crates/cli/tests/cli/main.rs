//! The command line as a person or a script uses it: the built executable, the real starter model in llama.cpp, real
//! MCP servers over stdio.
//!
//! Invariant: each test has its own home; nothing outlives it.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod ahead;
mod asking;
mod debugging;
mod decoding;
mod drafts;
mod engine;
mod failing;
#[cfg(target_os = "linux")]
mod failures;
mod homes;
#[cfg(feature = "vision")]
mod images;
#[cfg(target_os = "linux")]
mod keyring;
mod lectern;
mod mcp;
mod models;
mod permissions;
#[cfg(target_os = "linux")]
mod providers;
mod real_server;
#[cfg(target_os = "linux")]
mod serve_ending;
#[cfg(unix)]
mod serve_sessions;
#[cfg(unix)]
mod served;
mod servers;
mod serving;
#[cfg(target_os = "linux")]
mod session;
mod states;
mod stopping;
mod templates;
mod trust;
#[cfg(target_os = "linux")]
mod ways;
