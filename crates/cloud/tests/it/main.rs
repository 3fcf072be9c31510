//! Recorded answers, garbage, and real HTTP servers that misbehave.
#![expect(clippy::unwrap_used, reason = "in a test, whatever goes wrong is to end it")]

mod endpoint;
mod garbage;
mod gemini;
mod google;
mod odd;
mod openai;
mod recorded;
mod support;
mod vendors;
