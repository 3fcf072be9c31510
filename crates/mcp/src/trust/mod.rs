//! What the user approved, and how a change is noticed.
//!
//! Invariant: nothing here decides. It says what a server and a tool *are*, as digests, and asks an [`Approval`], which
//! the app gives, whether they may be used. Without one (a probe, a test) everything may.

mod canonical;
mod record;
mod review;
mod server;
mod unicode;

use std::fmt;

use serde_json::Value;

pub use canonical::ToolDefinition;
pub use review::ToolReview;
pub use server::ServerPrint;
pub use unicode::{has_invisible, visible};

pub(crate) use record::masked_arguments;
pub(crate) use review::review;

use crate::config::ServerConfig;

/// Knows what the user approved. Asked from async code: it must answer at once, from memory or disk.
pub trait Approval: Send + Sync + fmt::Debug {
    /// Whether this server may start. Asked before each start, before anything of it is looked up, resolved or run.
    fn may_start(&self, config: &ServerConfig) -> bool;

    /// How each of a server's tools stands, in the same order. Asked each time the tools were listed.
    fn review(&self, config: &ServerConfig, tools: &[ToolDefinition]) -> Vec<Standing>;
}

/// How a tool stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// As it was approved.
    Known,
    /// It came after the approval and nobody has looked at it. It is offered, but its claims are not believed: a
    /// server may grow tools while it works, as some do by design, and a call of it is asked about anyway.
    New,
    /// It is not what it was; the definition that was approved. It is not offered.
    Changed {
        /// As it was.
        before: Value,
    },
    /// Its definition holds characters that nobody can see, and nobody has looked at them. It is not offered.
    Invisible,
}

impl Standing {
    /// Whether the tool is kept from the model until the user has seen it.
    pub fn is_withheld(&self) -> bool {
        match self {
            Self::Known | Self::New => false,
            Self::Changed { .. } | Self::Invisible => true,
        }
    }
}
