//! What OpenAI-compatible endpoints are asked, and how their odd answers are read.

use lectern_cloud::decode::Decoded;
use lectern_cloud::{Credentials, OpenAiConfig, OpenAiModel, OpenAiOptions, Provider, recorded};
use lectern_core::{
    AnswerForm, AssistantMessage, Blob, ChatRequest, Content, Delta, FinishReason, Message, ModelErrorCode,
    Part, Sampling, Thinking, ToolChoice, ToolOutcome, ToolResult, UserMessage,
};
use lectern_fake_provider::{Answer, Piece, Server};
use serde_json::{Value, json};

use crate::endpoint::limits;
use crate::support::{all, ask, call, error_of, info, says, text_of, tool, user};

pub fn model(url: &str, credentials: Credentials) -> OpenAiModel {
    let base = url::Url::parse(url).unwrap();
    let options = OpenAiOptions::of(&base);
    let config = OpenAiConfig {
        info: info("m"),
        model: "qwen3".to_owned(),
        base,
        credentials,
        options,
        limits: limits(),
    };
    OpenAiModel::new(config).unwrap()
}

fn stream(chunks: &[Value], end: &str) -> Vec<u8> {
    let mut out: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    out.push_str(end);
    out.into_bytes()
}

fn delta(delta: Value, finish: Option<&str>) -> Value {
    json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn read(chunks: &[Value]) -> Decoded {
    let bytes = stream(chunks, "data: [DONE]\n\n");
    let whole = recorded(Provider::OpenAi, &bytes, 0);
    assert_eq!(recorded(Provider::OpenAi, &bytes, 1), whole);
    whole
}

fn calls(decoded: &Decoded) -> Vec<(Option<&str>, &str, &Value)> {
    decoded.calls.iter().map(|call| (call.id.as_deref(), call.name.as_str(), &call.args)).collect()
}

fn piece(index: Option<i64>, id: Option<&str>, name: Option<&str>, arguments: Value) -> Value {
    let mut call = json!({"function": {"arguments": arguments}});
    if let Some(index) = index {
        call["index"] = json!(index);
    }
    if let Some(id) = id {
        call["id"] = json!(id);
    }
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    delta(json!({"tool_calls": [call]}), None)
}

#[test]
fn pieces_of_parallel_calls_find_their_calls() {
    let decoded = read(&[
        delta(json!({"role": "assistant", "content": null}), None),
        piece(Some(0), Some("a"), Some("f"), json!("")),
        piece(Some(1), Some("b"), Some("g"), json!("{\"y\"")),
        piece(Some(0), None, None, json!("{\"x\":")),
        piece(Some(1), None, None, json!(":2}")),
        piece(Some(0), None, None, json!("1}")),
        delta(json!({}), Some("tool_calls")),
        json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}),
    ]);
    assert_eq!(calls(&decoded), [(Some("a"), "f", &json!({"x": 1})), (Some("b"), "g", &json!({"y": 2}))]);
    assert_eq!(decoded.usage.unwrap()["total_tokens"], 13);
    assert_eq!((decoded.finish.as_deref(), decoded.outcome.as_str()), (Some("tool_calls"), "tool_calls"));
}

#[test]
fn servers_that_leave_things_out_are_understood() {
    let (one, two) = (json!({"x": 1}), json!({"x": 2}));
    // Neither numbers nor ids, the arguments an object, and `stop` at the end (Ollama, older LM Studio).
    let decoded = read(&[
        piece(None, None, Some("f"), one.clone()),
        piece(None, None, Some("f"), two.clone()),
        delta(json!({"content": ""}), Some("stop")),
    ]);
    assert_eq!(calls(&decoded), [(None, "f", &one), (None, "f", &two)]);
    assert_eq!(decoded.outcome, "tool_calls");
    // Every call has the number 0 and an id of its own.
    let decoded = read(&[
        piece(Some(0), Some("a"), Some("f"), json!("{\"x\":1}")),
        piece(Some(0), Some("b"), Some("f"), json!("{\"x\":")),
        piece(Some(0), None, None, json!("2}")),
        delta(json!({}), Some("tool_calls")),
    ]);
    assert_eq!(calls(&decoded), [(Some("a"), "f", &one), (Some("b"), "f", &two)]);
    // Name and id repeated with every piece; no number.
    let decoded = read(&[
        piece(None, Some("a"), Some("f"), json!("{\"x\"")),
        piece(None, Some("a"), Some("f"), json!(":1}")),
        piece(None, Some("b"), Some("f"), json!("{\"x\":2")),
        piece(None, None, None, json!("}")),
        delta(json!({}), Some("stop")),
    ]);
    assert_eq!(calls(&decoded), [(Some("a"), "f", &one), (Some("b"), "f", &two)]);
    // The name comes late; a call without arguments; the old form.
    let decoded = read(&[
        piece(Some(0), Some("a"), None, json!("{\"x\"")),
        piece(Some(0), None, Some("f"), json!(":1}")),
        piece(Some(1), Some("n"), Some("now"), Value::Null),
        delta(json!({}), Some("tool_calls")),
    ]);
    assert_eq!(calls(&decoded), [(Some("a"), "f", &one), (Some("n"), "now", &json!({}))]);
    let decoded = read(&[
        delta(json!({"function_call": {"name": "f", "arguments": "{\"x\":"}}), None),
        delta(json!({"function_call": {"arguments": "1}"}}), Some("function_call")),
    ]);
    assert_eq!(calls(&decoded), [(None, "f", &one)]);
}

#[test]
fn reasoning_has_several_names_and_text_beside_a_call_is_kept() {
    let decoded = read(&[
        delta(json!({"reasoning_content": "a", "reasoning": "a"}), None),
        delta(json!({"reasoning": "b", "reasoning_content": null}), None),
        delta(json!({"content": [{"type": "text", "text": "c"}]}), None),
        delta(
            json!({"content": "d", "tool_calls": [{"index": 0, "id": 7, "function": {"name": "f"}}]}),
            None,
        ),
        delta(json!({"content": "e"}), Some("tool_calls")),
    ]);
    assert_eq!((decoded.thinking.as_str(), decoded.text.as_str()), ("ab", "cde"));
    assert_eq!(calls(&decoded), [(Some("7"), "f", &json!({}))]);
}

#[test]
fn ends_are_what_they_are() {
    let text = || delta(json!({"content": "x"}), None);
    let end = |finish: &str| read(&[text(), delta(json!({}), Some(finish))]).outcome;
    assert_eq!(end("stop"), "stop");
    assert_eq!(end("length"), "length");
    assert_eq!(end("content_filter"), "filtered");
    assert_eq!(end("eos"), "stop");
    assert_eq!(read(&[delta(json!({}), Some("content_filter"))]).outcome, "blocked");
    assert_eq!(read(&[delta(json!({}), Some("stop"))]).outcome, "empty_answer");
    // [DONE] without a reason is an end, nothing at all is none.
    assert_eq!(read(&[text()]).outcome, "stop");
    assert_eq!(recorded(Provider::OpenAi, &stream(&[text()], ""), 0).outcome, "provider");
    let no_done = stream(&[text(), delta(json!({}), Some("stop"))], "");
    assert_eq!(recorded(Provider::OpenAi, &no_done, 0).outcome, "stop");
    let answer =
        json!({"choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]});
    assert_eq!(recorded(Provider::OpenAi, answer.to_string().as_bytes(), 0).text, "whole");
}

#[test]
fn errors_in_a_stream_have_many_shapes() {
    for (error, kind) in [
        (
            json!({"error": {"message": "x", "type": "server_error", "code": null, "param": null}}),
            "overloaded",
        ),
        (json!({"error": {"message": "x", "code": 429}}), "busy"),
        (json!({"error": "model crashed"}), "unknown"),
        (json!({"object": "error", "message": "x", "code": 400, "type": "BadRequestError"}), "bad_request"),
        (json!({"detail": "Not Found"}), "unknown"),
        (json!({"error": {"code": "context_length_exceeded", "message": "x"}}), "too_long"),
    ] {
        let decoded = read(&[delta(json!({"content": "a"}), None), error.clone()]);
        assert_eq!(decoded.text, "a");
        assert_eq!(decoded.error.unwrap().kind, json!(kind), "{error}");
    }
}

#[tokio::test]
async fn a_request_has_what_was_set_and_history_in_its_order() {
    let server = Server::script(vec![Answer::of(
        200,
        "text/event-stream",
        stream(&[delta(json!({"content": "ok"}), Some("stop"))], "data: [DONE]\n\n"),
    )])
    .await;
    let image = Blob { mime: "image/png".into(), base64: "QUJD".into() };
    let mut shows = ToolResult::of(&call("c1", "see", json!({})), ToolOutcome::Succeeded, "seen");
    shows.content.push(Content::Image(image.clone()));
    let request = ChatRequest {
        system: Some("S".into()),
        messages: vec![
            Message::User(UserMessage {
                parts: vec![Part::Text { text: "look".into() }, Part::Image(image)],
                context: None,
            }),
            says(vec![Part::ToolCall(call("c1", "see", json!({"q": 1})))], "other"),
            Message::Tool(shows),
            says(vec![Part::Text { text: "I see.".into() }], "other"),
            user("more"),
        ],
        tools: vec![tool("see", json!({"properties": {"q": {"enum": [1, 2], "default": 1}}}))],
        tool_choice: ToolChoice::Required,
        tail: Some("T".into()),
        sampling: Sampling {
            temperature: Some(0.1),
            top_k: Some(5),
            max_tokens: Some(9),
            ..Sampling::default()
        },
        answer: AnswerForm::Free,
        ..ChatRequest::default()
    };
    let deltas = all(&model(&server.url(), Credentials::Key("sk-x".into())), request).await;
    assert_eq!(text_of(&deltas), "ok");
    let seen = server.seen().remove(0);
    assert_eq!((seen.path.as_str(), seen.header("authorization")), ("/v1/chat/completions", "Bearer sk-x"));
    let url = "data:image/png;base64,QUJD";
    assert_eq!(
        seen.json(),
        json!({
            "model": "qwen3",
            "messages": [
                {"role": "system", "content": "S"},
                {"role": "user", "content": [
                    {"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]},
                {"role": "assistant", "content": "", "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "see", "arguments": "{\"q\":1}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "seen"},
                {"role": "user", "content": [
                    {"type": "text", "text": "(what the tools returned as images)"},
                    {"type": "image_url", "image_url": {"url": url}}]},
                {"role": "assistant", "content": "I see."},
                {"role": "user", "content": "more\n\nT"},
            ],
            "stream": true,
            "stream_options": {"include_usage": true},
            "tools": [{"type": "function", "function": {"name": "see", "description": "Does see.", "parameters":
                {"properties": {"q": {"enum": [1, 2], "default": 1}}, "type": "object"}}}],
            "tool_choice": "required",
            "temperature": 0.1, "max_tokens": 9, "top_k": 5,
        })
    );
}

/// A turn of two steps at an endpoint whose first reply is this delta and a call; gives the second request's message of
/// the model.
async fn second_step(thoughts: Value, other_model: bool) -> Value {
    let mut first =
        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]});
    first.as_object_mut().unwrap().extend(thoughts.as_object().unwrap().clone());
    let body = stream(&[delta(first, Some("tool_calls"))], "data: [DONE]\n\n");
    let answer = Answer::of(200, "text/event-stream", body);
    let server = Server::script(vec![answer.clone(), answer]).await;
    let asked = |name: &str| {
        let base = url::Url::parse(&server.url()).unwrap();
        let options = OpenAiOptions::of(&base);
        let credentials = Credentials::None;
        let (info, model, limits) = (info("m"), name.to_owned(), limits());
        OpenAiModel::new(OpenAiConfig { info, model, base, credentials, options, limits }).unwrap()
    };
    let deltas = all(&asked("one"), ask("hi")).await;
    let mut message = AssistantMessage::default();
    for said in deltas {
        match said.unwrap() {
            Delta::Thinking(text) => {
                message.parts.push(Part::Thinking(Thinking { text, provider_data: None }))
            }
            Delta::ToolCallStarted { .. } => message.parts.push(Part::ToolCall(call("c", "f", json!({})))),
            Delta::ProviderData(data) => message.provider_data = Some(data),
            _ => {}
        }
    }
    let result = ToolResult::of(&call("c", "f", json!({})), ToolOutcome::Succeeded, "ok");
    let messages = vec![user("hi"), Message::Assistant(message), Message::Tool(result)];
    let request = ChatRequest { messages: messages.clone(), ..ChatRequest::default() };
    all(&asked(if other_model { "two" } else { "one" }), request).await;
    // In the next turn they are of no use any more.
    let later = [messages, vec![says(vec![Part::Text { text: "Done.".into() }], "m"), user("and?")]].concat();
    all(&asked("one"), ChatRequest { messages: later, ..ChatRequest::default() }).await;
    let seen = server.seen();
    let third = &seen[2].json()["messages"][1];
    assert!(third.get("reasoning_content").is_none() && third.get("reasoning_details").is_none(), "{third}");
    seen[1].json()["messages"][1].clone()
}

#[tokio::test]
async fn thoughts_go_back_to_where_they_came_from_within_the_turn() {
    let bare = second_step(json!({}), false).await;
    let mut keys: Vec<_> = bare.as_object().unwrap().keys().cloned().collect();
    keys.sort();
    assert_eq!(keys, ["content", "role", "tool_calls"]);
    for field in ["reasoning_content", "reasoning"] {
        let sent = second_step(json!({field: "Two cities."}), false).await;
        assert_eq!(sent[field], "Two cities.");
        assert_eq!(sent.as_object().unwrap().len(), 4, "{sent}");
        assert_eq!(second_step(json!({field: "Two cities."}), true).await, bare);
    }
    let details = json!([{"type": "reasoning.text", "text": "Two", "index": 0, "signature": "c2ln"},
        {"type": "reasoning.encrypted", "data": "QUJD", "index": 1}]);
    let sent = second_step(json!({"reasoning": "Two", "reasoning_details": details}), false).await;
    assert_eq!((&sent["reasoning_details"], &sent["reasoning"]), (&details, &json!("Two")));
}

#[tokio::test]
async fn a_server_that_keeps_the_connection_after_done_is_finished() {
    let body = stream(&[delta(json!({"content": "ok"}), Some("stop"))], "data: [DONE]\n\n");
    let answer = Answer::of(200, "text/event-stream", body).then(Piece::Stall);
    let server = Server::script(vec![answer]).await;
    let deltas = all(&model(&server.url(), Credentials::None), ask("hi")).await;
    assert_eq!(deltas.last(), Some(&Ok(Delta::Finished(FinishReason::Stop))));
}

#[tokio::test]
async fn the_list_of_models_and_its_errors() {
    let list = json!({"object": "list", "data": [{"id": "qwen3", "max_model_len": 32768}, {"id": "qwen2"}]});
    let server = Server::script(vec![Answer::json(200, &list)]).await;
    let listed = model(&server.url(), Credentials::None).models().await.unwrap();
    assert_eq!(listed.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["qwen3", "qwen2"]);
    assert_eq!(listed[0].context_length, Some(32_768));
    assert_eq!(server.seen()[0].path, "/v1/models");
    let error =
        json!({"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}});
    let server = Server::script(vec![Answer::json(401, &error)]).await;
    let error = model(&server.url(), Credentials::Key("sk-secret-9".into())).models().await.unwrap_err();
    assert_eq!(error.code, ModelErrorCode::Unauthorized);
}

#[tokio::test]
async fn a_missing_model_is_told_with_names_that_are_like_it() {
    let server = Server::start(std::sync::Arc::new(|seen| match seen.path.as_str() {
        "/v1/models" => Answer::json(200, &json!({"data": [{"id": "qwen3:8b"}, {"id": "llama"}]})),
        _ => Answer::json(
            404,
            &json!({"error": {"message": "model \"qwen3\" not found", "type": "api_error"}}),
        ),
    }))
    .await;
    let error = error_of(&all(&model(&server.url(), Credentials::None), ask("hi")).await);
    assert_eq!(error.code, ModelErrorCode::ModelNotFound);
    assert!(error.hint.unwrap().contains("qwen3:8b"));
}
