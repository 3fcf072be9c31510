//! The lines that a client sends, tidied before rmcp reads them.
//! Invariant: what is passed on is what the client wrote; lines are dropped or split, never changed.
//!
//! rmcp 3.9.0 ends the session when a notification or a response comes before the client has chosen the era of the
//! protocol (a client that gives up its `server/discover` sends `notifications/cancelled`), knows no JSON-RPC batches
//! (2025-03-26 has them), and drops a last line that has no end.

use rmcp::model::ProtocolVersion;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader, DuplexStream};

/// Longer messages are dropped; rmcp has the same limit.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
const PIPE: usize = 256 * 1024;

/// Returns a stream of the lines of `input` that rmcp should see.
pub fn tidy(input: impl AsyncRead + Send + Unpin + 'static) -> DuplexStream {
    let (mut to, from) = tokio::io::duplex(PIPE);
    tokio::spawn(async move {
        let mut input = BufReader::new(input);
        let mut gate = Gate::default();
        while let Some(line) = next_line(&mut input).await {
            for message in gate.pass(line) {
                if to.write_all(&message).await.is_err() || to.write_all(b"\n").await.is_err() {
                    return;
                }
            }
        }
    });
    from
}

/// The next line without its end; `None` at the end of the input.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut dropped = false;
    loop {
        let part = input.fill_buf().await.ok()?;
        if part.is_empty() {
            return (!line.is_empty()).then_some(line);
        }
        let end = part.iter().position(|&byte| byte == b'\n');
        let length = end.unwrap_or(part.len());
        dropped |= line.len() + length > LONGEST_LINE;
        if !dropped {
            line.extend_from_slice(&part[..length]);
        }
        input.consume(end.map_or(length, |end| end + 1));
        if end.is_some() {
            if !dropped {
                return Some(line);
            }
            tracing::warn!("a message was longer than {LONGEST_LINE} bytes and was dropped");
            line.clear();
            dropped = false;
        }
    }
}

/// Knows whether the client has chosen an era.
#[derive(Debug, Default)]
struct Gate {
    open: bool,
}

impl Gate {
    fn pass(&mut self, line: Vec<u8>) -> Vec<Vec<u8>> {
        match serde_json::from_slice::<Value>(&line) {
            Ok(Value::Array(batch)) => batch
                .into_iter()
                .filter(|message| self.admits(message))
                .map(|message| message.to_string().into_bytes())
                .collect(),
            Ok(message) => {
                if self.admits(&message) {
                    vec![line]
                } else {
                    Vec::new()
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a line is no JSON and was dropped");
                Vec::new()
            }
        }
    }

    fn admits(&mut self, message: &Value) -> bool {
        let method = message["method"].as_str();
        let request = method.is_some() && !message["id"].is_null();
        if !self.open && !request {
            tracing::debug!(?method, "came before the session and was dropped");
            return false;
        }
        let meta = &message["params"]["_meta"];
        let version = meta["io.modelcontextprotocol/protocolVersion"].as_str();
        let known =
            |version: &str| ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == version);
        let modern = version.is_some_and(known)
            && meta["io.modelcontextprotocol/clientCapabilities"].is_object()
            && !matches!(method, Some("server/discover" | "ping"));
        self.open |= request && (method == Some("initialize") || modern);
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn tidied(input: &'static [u8]) -> Vec<String> {
        let mut text = String::new();
        tidy(input).read_to_string(&mut text).await.unwrap();
        text.lines().map(str::to_owned).collect()
    }

    const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;

    #[tokio::test]
    async fn notifications_wait_for_a_session() {
        let early = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}"#;
        let input = format!("{early}\n{INITIALIZE}\n{early}\n").leak().as_bytes();
        assert_eq!(tidied(input).await, [INITIALIZE, early]);
    }

    #[tokio::test]
    async fn a_batch_is_split_and_the_last_line_needs_no_end() {
        let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
        let input = format!("[{INITIALIZE},{ping}]").leak().as_bytes();
        assert_eq!(tidied(input).await, [INITIALIZE, ping]);
    }

    #[tokio::test]
    async fn lines_that_are_no_json_are_dropped() {
        let input = format!("hello\n\n{{\n{INITIALIZE}").leak().as_bytes();
        assert_eq!(tidied(input).await, [INITIALIZE]);
    }
}
