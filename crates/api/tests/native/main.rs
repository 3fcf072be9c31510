//! `/api` through real HTTP: frames, sessions, consent, single calls, events, ends.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod beside;
mod calls;
mod consent;
mod document;
mod ending;
mod events;
mod frames;
mod house;
mod numbers;
#[path = "../scripted/mod.rs"]
#[expect(dead_code, reason = "the other target uses the rest")]
mod scripted;
mod sessions;
mod workspaces;
