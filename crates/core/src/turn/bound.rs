//! Keeps what tools send within bounds, so that no server can fill the memory, the store or a model's context.
//!
//! Invariant: pure; a text is cut at a character, never within one, and says that it was cut.

use serde_json::{Value, json};

use crate::ids::MessageId;
use crate::message::{Blob, Content, ToolResult};

/// Bytes of text in one result.
const RESULT_TEXT: usize = 256 * 1024;

/// Bytes of one image or sound, in base64.
const RESULT_BLOB: usize = 14 * 1024 * 1024;

/// Bytes of a result's structured content, as JSON.
const RESULT_STRUCTURED: usize = 512 * 1024;

/// Bytes of one protocol message in the trace, as JSON.
const WIRE: usize = 64 * 1024;

/// Bytes of one line of a server's log.
const LOG_LINE: usize = 4 * 1024;

/// The result within bounds, and what was cut from it.
pub(super) fn result(mut result: ToolResult) -> (ToolResult, Vec<String>) {
    let mut cuts = Vec::new();
    let mut room = RESULT_TEXT;
    for content in &mut result.content {
        match content {
            Content::Text { text } => cut_text(text, &mut room, &mut cuts),
            Content::Resource(resource) => {
                if let Some(text) = &mut resource.text {
                    cut_text(text, &mut room, &mut cuts);
                }
            }
            Content::Image(blob) | Content::Audio(blob) if blob.base64.len() > RESULT_BLOB => {
                let text = left_out(blob);
                cuts.push(text.clone());
                *content = Content::Text { text };
            }
            Content::Image(_) | Content::Audio(_) => {}
        }
    }
    let structured = result.structured.as_ref().map_or(0, json_size);
    if structured > RESULT_STRUCTURED {
        cuts.push(format!("structured content of {structured} bytes left out"));
        result.structured = None;
    }
    (result, cuts)
}

/// A protocol message within bounds. A longer one is given to `keep` as JSON, which gives the name by which the whole
/// of it can be found.
pub(super) fn wire(message: Value, keep: impl FnOnce(&str) -> Option<MessageId>) -> Value {
    let text = message.to_string();
    if text.len() <= WIRE {
        return message;
    }
    json!({"cut": true, "bytes": text.len(), "start": head(&text, LOG_LINE), "full": keep(&text)})
}

/// A line of a log within bounds.
pub(super) fn log_line(line: String) -> String {
    if line.len() <= LOG_LINE {
        return line;
    }
    format!("{}… ({} bytes)", head(&line, LOG_LINE), line.len())
}

fn cut_text(text: &mut String, room: &mut usize, cuts: &mut Vec<String>) {
    if text.len() <= *room {
        *room -= text.len();
        return;
    }
    let all = text.len();
    let kept = head(text, *room).to_owned();
    *room = 0;
    let note = format!("[cut: {} of {all} bytes are shown]", kept.len());
    cuts.push(note.clone());
    *text = if kept.is_empty() { note } else { format!("{kept}\n{note}") };
}

fn left_out(blob: &Blob) -> String {
    format!("[{} of {} bytes left out]", blob.mime, blob.base64.len() / 4 * 3)
}

fn head(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

fn json_size(value: &Value) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{JsonObject, ToolCall, ToolOutcome};

    fn call() -> ToolCall {
        let arguments = JsonObject::new();
        ToolCall { id: "a".into(), tool: "t".into(), arguments, malformed: None, provider_data: None }
    }

    #[test]
    fn small_results_stay_as_they_are() {
        let small = ToolResult::of(&call(), ToolOutcome::Succeeded, "x".repeat(RESULT_TEXT));
        assert_eq!(result(small.clone()), (small, vec![]));
    }

    #[test]
    fn a_long_text_is_cut_at_a_character_and_says_so() {
        let long = format!("x{}", "é".repeat(RESULT_TEXT));
        let (cut, cuts) = result(ToolResult::of(&call(), ToolOutcome::Succeeded, long.clone()));
        let note = format!("[cut: {} of {} bytes are shown]", RESULT_TEXT - 1, long.len());
        assert_eq!(cut.text(), format!("{}\n{note}", &long[..RESULT_TEXT - 1]));
        assert_eq!(cuts, [note]);
    }

    #[test]
    fn huge_wire_messages_logs_and_blobs_are_cut() {
        let message = json!({"text": "y".repeat(2 * WIRE)});
        let cut = wire(message.clone(), |whole| {
            assert_eq!(whole, message.to_string());
            Some("m".into())
        });
        assert_eq!((&cut["cut"], &cut["full"]), (&json!(true), &json!("m")));
        assert!(log_line("z".repeat(1_000_000)).len() < LOG_LINE + 40);
        let mut huge = ToolResult::of(&call(), ToolOutcome::Succeeded, "");
        huge.content =
            vec![Content::Image(Blob { mime: "image/png".into(), base64: "A".repeat(RESULT_BLOB + 4) })];
        huge.structured = Some(Value::String("s".repeat(RESULT_STRUCTURED)));
        let (cut, cuts) = result(huge);
        assert_eq!(cuts.len(), 2);
        assert!(cut.structured.is_none() && cut.text().contains("image/png"));
    }
}
