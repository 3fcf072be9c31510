//! The other end of a peer: what is to be sent, and where what arrives goes.
//!
//! Invariant: a message is turned into JSON once, and what arrives is written down before anybody acts on it.

use std::sync::Arc;

use lectern_core::WireDirection;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Notice, PeerError, Reply, Shared, request_number};

/// A message on its way to the server, with the line of JSON that it is; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing(Arc<(Value, Box<[u8]>)>);

impl Outgoing {
    pub(super) fn new(message: Map<String, Value>) -> Self {
        Self::of(Value::Object(message))
    }

    pub(super) fn of(message: Value) -> Self {
        let mut line = Vec::with_capacity(256);
        // A value always serialises, and memory takes everything.
        let _ = serde_json::to_writer(&mut line, &message);
        line.push(b'\n');
        Self(Arc::new((message, line.into())))
    }

    /// The message.
    pub(crate) fn value(&self) -> &Value {
        &self.0.0
    }

    /// Its JSON, with the newline that ends it.
    pub(crate) fn line(&self) -> &[u8] {
        &self.0.1
    }
}

/// The end of a connection that carries the messages.
pub(crate) struct Carrier {
    /// What is to be sent, in order.
    pub(crate) outgoing: mpsc::Receiver<Outgoing>,
    /// Where what arrives goes.
    pub(crate) incoming: Incoming,
    /// Cancelled when nothing more shall be sent.
    pub(crate) closing: CancellationToken,
}

/// Takes in what a server sent. Clones feed the same connection; it ends with [`Incoming::end`].
#[derive(Clone)]
pub(crate) struct Incoming(pub(super) Arc<Shared>);

impl Incoming {
    /// One message, or a batch of them (2025-03-26).
    pub(crate) fn message(&self, message: Value) {
        self.message_for(message, None, None);
    }

    /// As [`Incoming::message`], with what it was read from.
    pub(crate) fn line(&self, message: Value, text: &[u8]) {
        self.message_for(message, None, Some(text));
    }

    fn message_for(&self, message: Value, request: Option<i64>, text: Option<&[u8]>) {
        self.0.options.traffic.record(WireDirection::Received, &message, text);
        match message {
            Value::Array(batch) => batch.into_iter().for_each(|message| self.0.receive(message, request)),
            message => self.0.receive(message, request),
        }
    }

    /// A message that came with the answer to this request of ours: what it asks is asked of who waits for that one.
    pub(crate) fn message_about(&self, request: &Value, message: Value) {
        self.message_for(message, request_number(request), None);
    }

    /// Writes down a message that whatever carries the others sent, or got, on its own behalf.
    pub(crate) fn carried(&self, direction: WireDirection, message: &Value) {
        self.0.options.traffic.record(direction, message, None);
    }

    /// Has the tools listed again.
    pub(crate) fn tools_may_have_changed(&self) {
        self.0.notice(Notice::ToolsChanged);
    }

    /// Whether somebody still waits for the answer to this request.
    pub(crate) fn waits_for(&self, id: &Value) -> bool {
        let pending = self.0.pending();
        let waiting = request_number(id).and_then(|number| pending.requests.get(&number));
        waiting.is_some_and(|waiting| waiting.reply.is_some())
    }

    /// A message that can't be read. It settles its request; if it does not say which, all of them.
    pub(crate) fn damaged(&self, id: Option<Value>, reason: String) {
        self.0.damaged(id, reason);
    }

    /// What became of one request, told by what carries it.
    pub(crate) fn settle(&self, id: &Value, error: PeerError) {
        self.0.settle(id, Err(error));
    }

    /// A line for the log.
    pub(crate) fn log(&self, line: String) {
        self.0.log(line, None);
    }

    /// Nothing more will arrive. All requests that still wait end.
    pub(crate) fn end(&self) {
        let lost: Vec<Reply> = {
            let mut pending = self.0.pending();
            pending.over = true;
            pending.requests.drain().filter_map(|(_, waiting)| waiting.reply).collect()
        };
        for reply in lost {
            let _ = reply.send(Err(PeerError::Closed));
        }
        self.0.options.desk.close();
        self.0.closed.cancel();
        self.0.closing.cancel();
    }
}
