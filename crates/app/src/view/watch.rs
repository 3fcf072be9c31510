//! Looking at a server at work: its log, its messages, the doctor's visit.
//!
//! Invariant: bounded pages, secrets masked; all of it is untrusted text.

use lectern_core::{ServerId, Timestamp, WireDirection};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use ts_rs::TS;

/// Some lines of a server's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/watch.ts")]
pub struct LogPage {
    /// The lines, oldest first.
    pub lines: Vec<LogLine>,
    /// Ask with this for what comes after.
    pub next: u64,
}

/// One line of a server's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/watch.ts")]
pub struct LogLine {
    /// Its number; it grows.
    pub number: u64,
    /// When it was written; none when it is from an earlier run.
    #[ts(type = "string | null")]
    pub at: Option<Timestamp>,
    /// The line.
    pub text: String,
}

/// Some messages between Lectern and a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/watch.ts")]
pub struct TrafficPage {
    /// The messages, oldest first.
    pub messages: Vec<TrafficMessage>,
    /// Ask with this for what comes after.
    pub next: u64,
}

/// One JSON-RPC message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/watch.ts")]
pub struct TrafficMessage {
    /// Its number; it grows.
    pub number: u64,
    /// When it passed.
    #[ts(type = "string")]
    pub at: Timestamp,
    /// Which way it went.
    pub direction: WireDirection,
    /// Its JSON-RPC id.
    #[ts(type = "string | number | null")]
    pub id: Option<Value>,
    /// Its method; of a reply, the method that it answers when that is known.
    pub method: Option<String>,
    /// Its size as it was sent.
    pub bytes: u64,
    /// The message, secrets masked, long texts cut.
    #[ts(type = "unknown")]
    pub message: Value,
}

/// What the doctor found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/watch.ts")]
pub struct DoctorReport {
    /// The server.
    pub server: ServerId,
    /// The checks in the order in which they were made.
    pub checks: Vec<DoctorCheck>,
}

/// One check of the doctor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, TS)]
#[ts(export, export_to = "app/watch.ts")]
pub struct DoctorCheck {
    /// What was looked at.
    pub step: DoctorStep,
    /// What came of it.
    pub outcome: CheckOutcome,
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// What was found, one line.
    pub says: String,
    /// How to mend it.
    pub hint: Option<String>,
}

/// What the doctor looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/watch.ts")]
pub enum DoctorStep {
    /// The folders in which programs are looked for.
    Path,
    /// The program is there and may run.
    Executable,
    /// The program's version.
    Version,
    /// The address can be reached.
    Address,
    /// Somebody is signed in.
    SignIn,
    /// The process starts.
    Spawn,
    /// The protocol is agreed on.
    Handshake,
    /// The tools are listed.
    List,
    /// One harmless call.
    Call,
}

/// What came of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export, export_to = "app/watch.ts")]
pub enum CheckOutcome {
    /// All is well.
    Passed,
    /// Here it breaks.
    Failed,
    /// Not looked at, because it does not apply or an earlier one failed.
    Skipped,
}
