//! `/api`: what `/v1` cannot carry. Tools that run here and are told frame by frame, sessions, consent.
//!
//! Invariant: nothing of this is ever sent on `/v1`; each frame has a sequence number, and each frame about a call its id.

pub mod approvals;
pub mod chat;
pub mod events;
pub mod frames;
pub mod manual;
pub mod one;
pub mod sessions;
mod telling;
pub mod tools;
