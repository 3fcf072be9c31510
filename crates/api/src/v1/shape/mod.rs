//! What `/v1` takes and gives, described for the document at `/openapi.json`.
//!
//! Invariant: nothing is read or written with these types. Requests are read field by field (`request.rs`, so that an error
//! names the field), answers are written piece by piece; tests hold both to what is described here.
#![expect(dead_code, clippy::large_enum_variant, reason = "types that are only described")]

pub mod answer;
pub mod asked;
pub mod message;
pub mod tool;
