//! Looking at a server at work: its log and its messages.
//!
//! Invariant: reading never waits for a server, and what is read is masked.

use lectern_core::ServerId;

use super::{Engine, unknown_server};
use crate::view::{LogLine, LogPage, Problem, TrafficMessage, TrafficPage};

impl Engine {
    /// What a server wrote to stderr and logged, after this number; 0 for all that is kept.
    pub fn server_log(&self, id: &ServerId, after: u64) -> Result<LogPage, Problem> {
        let page = self.0.host.log(id, after).map_err(|_| unknown_server(id))?;
        let lines = page.lines.into_iter().map(|line| LogLine {
            number: line.number,
            at: Some(line.at),
            text: line.text.to_string(),
        });
        Ok(LogPage { lines: lines.collect(), next: page.next })
    }

    /// The messages between Lectern and a server, after this number; 0 for all that are kept.
    pub fn server_traffic(&self, id: &ServerId, after: u64) -> Result<TrafficPage, Problem> {
        let page = self.0.host.traffic(id, after).map_err(|_| unknown_server(id))?;
        let messages = page.messages.into_iter().map(|message| TrafficMessage {
            number: message.number,
            at: message.at,
            direction: message.direction,
            id: message.id,
            method: message.method,
            bytes: message.bytes as u64,
            message: message.message,
        });
        Ok(TrafficPage { messages: messages.collect(), next: page.next })
    }
}
