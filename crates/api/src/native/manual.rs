//! Manual mode: the model gets the servers' tools, and its calls go to the client, which has them run or runs them itself.
//!
//! The history comes with the request, results included, as on `/v1`; the session is only the folder.

use axum::Json;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use serde_json::{Value, json};

use super::chat::Native;
use crate::auth::Caller;
use crate::error::ApiError;
use crate::sessions::Session;
use crate::sse;
use crate::state::Api;
use crate::v1::calls::{Piece, Pieces};
use crate::v1::chat::{named_servers, open, plain, taken};
use crate::v1::gather::{Head, gather};
use crate::v1::outcome::{finish_reason, usage};

/// Answers.
pub async fn answer(
    api: &Api,
    caller: &Caller,
    mut native: Native,
    session: Session,
) -> Result<Response, ApiError> {
    let tools = api.sessions.tools(&session, &*api.backend);
    let servers = named_servers(api, caller, &mut native.asked, !native.named_tools, tools).await?;
    if let Some(servers) = servers {
        let known: Vec<_> = native.asked.tools().iter().map(|spec| spec.name.clone()).collect();
        let there = servers.tools();
        native.asked.offered.tools.extend(there.iter().filter(|spec| !known.contains(&spec.name)).cloned());
    }
    let asked = &native.asked;
    let answering = open(api, asked).await?;
    // Two sessions share no cache either.
    let prefix = format!("{}/{}", caller.id, session.conversation);
    let lease = api.prefixes.lease(&prefix, answering.id.as_str(), &asked.history.messages);
    api.metrics.answer();
    let pieces = api.until_end(api.counted(plain(&answering, asked, lease)));
    let execution = json!({
        "executed": false,
        "tools_called": [],
        "session_id": session.id,
        "conversation": session.conversation,
        "workspace_path": session.workspace,
    });
    if asked.stream {
        let pieces = api.failures_counted(taken(pieces).await?);
        return Ok(streamed(pieces, execution, session));
    }
    let mut body = gather(Head::new(answering.id.as_str()), pieces).await?;
    body["tool_execution"] = execution;
    Ok(Json(body).into_response())
}

fn streamed(pieces: Pieces, execution: Value, session: Session) -> Response {
    let (mut seq, mut ids, mut over) = (0_u64, Vec::new(), false);
    let frames = pieces.map(move |piece| {
        // The session is in use until the last frame.
        let _ = &session;
        let mut out = Vec::new();
        let mut frame = |mut value: Value| {
            value["seq"] = json!(seq);
            seq += 1;
            out.extend_from_slice(&sse::data(&value));
        };
        match piece {
            Ok(Piece::Working | Piece::Remark(_)) => {}
            Ok(Piece::Text(text)) => frame(json!({"type": "content", "delta": {"content": text}})),
            Ok(Piece::Thinking(text)) => frame(json!({"type": "thinking", "delta": {"content": text}})),
            Ok(Piece::Call { index, id, tool }) => {
                ids.push(id.clone());
                let function = json!({"name": tool, "arguments": ""});
                let call = json!({"index": index, "id": id, "type": "function", "function": function});
                frame(json!({"type": "tool_call", "tool_call_id": id, "delta": {"tool_calls": [call]}}));
            }
            Ok(Piece::Arguments { index, fragment }) => {
                let id = usize::try_from(index).ok().and_then(|index| ids.get(index));
                let call = json!({"index": index, "function": {"arguments": fragment}});
                frame(json!({"type": "tool_call", "tool_call_id": id, "delta": {"tool_calls": [call]}}));
            }
            Ok(Piece::Done { finish, usage: cost }) => {
                let finish = finish_reason(finish, !ids.is_empty()).unwrap_or("stop");
                frame(json!({"type": "usage", "usage": usage(&cost)}));
                frame(json!({"type": "done", "finish_reason": finish, "tool_execution": execution}));
                over = true;
            }
            Err(error) => {
                frame(json!({"type": "error", "error": error.body()["error"]}));
                over = true;
            }
        }
        if over {
            out.extend_from_slice(sse::DONE);
        }
        bytes::Bytes::from(out)
    });
    sse::response(frames.filter(|frame| std::future::ready(!frame.is_empty())))
}
