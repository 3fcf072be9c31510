//! Carries messages over a child process's pipes: one JSON message a line (MCP 2025-11-25, Transports, stdio).
//!
//! Invariant: reading never waits for writing, and ends with the server's output.

use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::peer::{Carrier, Incoming, Outgoing};
use crate::wire::{Line, LineReader};

/// Carries messages until the server's output ends. A line over `max_message` bytes is damage.
pub(crate) fn carry(
    carrier: Carrier,
    input: impl AsyncBufRead + Unpin + Send + 'static,
    output: impl AsyncWrite + Unpin + Send + 'static,
    max_message: usize,
) {
    let Carrier { outgoing, incoming, closing } = carrier;
    tokio::spawn(write(output, outgoing, closing));
    tokio::spawn(read(input, incoming, max_message));
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut messages: mpsc::Receiver<Outgoing>,
    closing: CancellationToken,
) {
    let all = async {
        while let Some(message) = messages.recv().await {
            if output.write_all(message.line()).await.is_err() || output.flush().await.is_err() {
                // The end of the output tells the rest of the story.
                break;
            }
        }
    };
    // `biased`, writing first: what was said before the closing is still written if the server reads.
    tokio::select! {
        biased;
        () = all => {}
        () = closing.cancelled() => {}
    }
}

async fn read(input: impl AsyncBufRead + Unpin, incoming: Incoming, max_message: usize) {
    let mut lines = LineReader::new(input, max_message);
    while let Ok(Some(line)) = lines.next().await {
        match line {
            Line::Message(message) => incoming.line(message, lines.text()),
            Line::Damaged { id, reason } => incoming.damaged(id, reason),
            Line::Chatter(text) => incoming.log(format!("[stdout] {text}")),
        }
    }
    incoming.end();
}
