//! The API as a client meets it: real HTTP over a real socket, a scripted model behind it.
//!
//! Invariant: each test has its own server; every body that OpenAI has a schema for is held to it.
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod attacks;
mod calls;
mod document;
mod house;
mod load;
mod plain;
mod requests;
mod schemas;
#[path = "../scripted/mod.rs"]
#[expect(dead_code, reason = "the other target uses the rest")]
mod scripted;
mod servers;
mod stopping;
