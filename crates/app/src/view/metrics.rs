//! What the local API counted since it was started.
//!
//! Invariant: the same numbers as `GET /metrics`; no word of a request among them.

use lectern_core::Timestamp;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// The numbers of the local API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/metrics.ts")]
pub struct MetricsView {
    /// When the counting began.
    #[ts(type = "string")]
    pub since: Timestamp,
    /// Requests that were answered, with or without success.
    pub requests: u64,
    /// Requests that are being answered now.
    pub running: u64,
    /// Requests by address, in the order of the addresses.
    pub addresses: Vec<AddressNumbers>,
    /// Answers of models that were begun.
    pub answers: u64,
    /// Those of them in which a tool of a server ran.
    pub answers_with_tools: u64,
    /// From a request to the first word or call.
    pub first_token: TimesView,
    /// From a request to the end of its answer, of all answers of models.
    pub answer: TimesView,
    /// Calls of servers' tools, the most called first.
    pub tools: Vec<ToolNumbers>,
    /// Tokens.
    pub tokens: TokenNumbers,
    /// Errors by their code, the most frequent first.
    pub errors: Vec<ErrorNumbers>,
}

/// Requests at one address.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/metrics.ts")]
pub struct AddressNumbers {
    /// The address as it is served, e.g. `/api/tools/{name}`.
    pub address: String,
    /// Requests.
    pub requests: u64,
    /// Those that ended with a status of 400 or above.
    pub refused: u64,
    /// From a request to its last byte.
    pub time: TimesView,
}

/// Calls of one tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/metrics.ts")]
pub struct ToolNumbers {
    /// Its public name; `other` for all beyond the first 200.
    pub tool: String,
    /// Calls.
    pub calls: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that were not allowed.
    pub denied: u64,
    /// Calls that were stopped.
    pub cancelled: u64,
    /// How long they ran.
    pub time: TimesView,
}

/// What was read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/metrics.ts")]
pub struct TokenNumbers {
    /// Tokens of all prompts.
    pub prompt: u64,
    /// Those of them that were evaluated before.
    pub reused: u64,
    /// Tokens that were written.
    pub written: u64,
}

/// How often an error was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/metrics.ts")]
pub struct ErrorNumbers {
    /// Its code, one of docs/api.md.
    pub code: String,
    /// How often.
    pub count: u64,
}

/// Times, by how long they were.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/metrics.ts")]
pub struct TimesView {
    /// How many.
    pub count: u64,
    /// All of them together, in seconds.
    pub seconds: f64,
    /// How many in each range, the shortest first; the last one has no end.
    pub ranges: Vec<TimeRange>,
}

/// Times of about the same length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/metrics.ts")]
pub struct TimeRange {
    /// Seconds at most; none for the last range.
    pub up_to: Option<f64>,
    /// How many; those of shorter ranges are not among them.
    pub count: u64,
}
