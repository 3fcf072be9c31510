//! `/v1`: what OpenAI's clients speak, strictly.
//!
//! Invariant: every body and every chunk is valid by OpenAI's public schema, whatever happens below; nothing is kept from
//! one request to the next but what makes the next one faster.

pub mod calls;
pub mod chat;
pub mod chunk;
pub mod form;
pub mod gather;
pub mod messages;
pub mod models;
pub mod outcome;
pub mod parts;
pub mod request;
pub mod served;
pub mod tools;
