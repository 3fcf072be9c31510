//! A scripted model and scripted tools, for tests of everything above the core.
//!
//! Invariant: the same script gives the same deltas and results; time only passes where the script says so.

mod model;
mod tools;

pub use model::{Beat, Reply, ScriptedModel, calls, calls_all, fails, says};
pub use tools::{Behaviour, CallRecord, ScriptedTools, tool};
