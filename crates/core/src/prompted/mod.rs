//! Tools for models that know none: described in the prompt, calls read out of the text.
//!
//! Invariant: pure but for [`wrap`], which passes a stream through. What a tool returned is never read as a call.

pub mod parse;
pub mod wrap;
