//! What is measured, each on both sides with the same messages, one after the other.

use lectern_core::{
    AnswerForm, ChatModel, ChatRequest, ConversationId, Message, Sampling, ToolCallId, ToolChoice, ToolName,
    UserMessage,
};
use lectern_local::LocalModel;
use lectern_test_gguf::QuotingModel;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::other::{Peer, number};
use crate::ours::{Timed, ask, result, tool};
use crate::table::median;

/// Tokens of the prompt and of the reply where tokens per second are measured.
const PROMPT: usize = 500;
const REPLY: u32 = 64;

/// The words of a run: different ones in each round, so that nothing is reused by chance.
pub struct Words<'a> {
    pub model: &'a QuotingModel,
    pub round: usize,
}

impl Words<'_> {
    /// So many words that the model does not write, beginning at a place of their own.
    pub fn other(&self, place: usize, count: usize) -> String {
        let all = self.model.others();
        let start = self.round * 131 + place * 37;
        let words = (0..count).map(|i| all[(start + i * (1 + start % 7)) % all.len()].as_str());
        words.collect::<Vec<_>>().join(" ")
    }

    /// What the model writes, from this word on.
    pub fn quoted(&self, from: usize) -> String {
        self.model.quoted()[from..].join(" ")
    }

    pub fn conversation(&self, name: &str) -> ConversationId {
        ConversationId(format!("{name} {}", self.round))
    }
}

fn greedy(max_tokens: u32) -> Sampling {
    Sampling { temperature: Some(0.0), max_tokens: Some(max_tokens), ..Sampling::default() }
}

fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text))
}

/// Tokens per second of a prompt and of a reply: ours, theirs.
pub async fn throughput(
    model: &LocalModel,
    peer: Option<&mut Peer>,
    words: &Words<'_>,
) -> [[Option<f64>; 2]; 2] {
    let text = words.other(0, PROMPT);
    let request = ChatRequest {
        conversation: words.conversation("throughput"),
        messages: vec![user(&text)],
        sampling: greedy(REPLY),
        ..ChatRequest::default()
    };
    let reply = ask(model, &request).await;
    let evaluated = f64::from(reply.usage.prompt_tokens - reply.usage.reused_tokens);
    let ours = [evaluated / reply.first.as_secs_f64(), reply.pace()];
    let prompt = format!("<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n");
    let theirs = asked(peer, |peer| peer.ask(&json!({ "do": "raw", "prompt": prompt, "generate": REPLY })));
    let theirs = theirs.map(|answer| {
        let rest = (number(&answer, "generated") - 1.0) / number(&answer, "rest");
        [number(&answer, "prompt") / number(&answer, "first"), rest]
    });
    [0, 1].map(|i| [Some(ours[i]), theirs.map(|theirs| theirs[i])])
}

/// Seconds until the second turn begins to be answered: ours, ours when it was read while it was typed, theirs.
pub async fn second_turn(model: &LocalModel, peer: Option<&mut Peer>, words: &Words<'_>) -> [Option<f64>; 3] {
    let system = words.other(1, 200);
    let (question, next) = (words.other(2, 60), words.other(3, 32));
    let mut request = ChatRequest {
        conversation: words.conversation("turns"),
        system: Some(system.clone()),
        messages: vec![user(&question)],
        sampling: greedy(300),
        ..ChatRequest::default()
    };
    let reply = ask(model, &request).await;
    request.messages.extend([reply.message(), user(&next)]);
    request.sampling = greedy(2);
    let second = ask(model, &request).await;
    // The same with another last message, of which all but the last word is typed when the user pauses.
    let other = words.other(12, 32);
    request.messages.pop();
    request.messages.push(user(&other));
    model.prepare(request.clone(), CancellationToken::new()).await;
    let read = ask(model, &request).await;
    let evaluated = |timed: &Timed| timed.usage.prompt_tokens - timed.usage.reused_tokens;
    println!("second turn: {} tokens read, {} after typing", evaluated(&second), evaluated(&read));
    let theirs = asked(peer, |peer| {
        let mut messages = vec![
            json!({ "role": "system", "content": system }),
            json!({ "role": "user", "content": question }),
        ];
        let reply = peer.chat(json!({ "messages": messages, "max_tokens": 300 }))?;
        messages.push(json!({ "role": "assistant", "content": reply["text"] }));
        messages.push(json!({ "role": "user", "content": next }));
        peer.chat(json!({ "messages": messages, "max_tokens": 2 }))
    });
    let first = |timed: &Timed| Some(timed.first.as_secs_f64());
    [first(&second), first(&read), theirs.map(|answer| number(&answer, "first"))]
}

/// Tokens per second of a reply, the median of so many, after two conversations of 2,000 tokens.
pub async fn beside_others(model: &LocalModel, words: &Words<'_>, rounds: usize) -> f64 {
    let request = |name: String, text: String, tokens| ChatRequest {
        conversation: words.conversation(&name),
        messages: vec![user(&text)],
        sampling: greedy(tokens),
        ..ChatRequest::default()
    };
    for other in 0..2 {
        ask(model, &request(format!("other {other}"), words.other(20 + other, 2000), 1)).await;
    }
    let mut paces = Vec::new();
    for round in 0..rounds {
        let text = words.other(30 + round, 100);
        paces.push(ask(model, &request("this".to_owned(), text, REPLY)).await.pace());
    }
    median(paces).unwrap_or(f64::NAN)
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "folder": { "enum": ["inbox", "archive"] }, "text": { "type": "string" } },
        "required": ["folder", "text"],
    })
}

/// Seconds until the step after a call begins to be answered. The call writes a note, its result is short.
pub async fn second_step(model: &LocalModel, peer: Option<&mut Peer>, words: &Words<'_>) -> [Option<f64>; 2] {
    let (system, question) = (words.other(4, 200), words.other(5, 40));
    let created = format!("created {}", words.other(6, 6));
    let spec = tool("notes__create", schema());
    let mut request = ChatRequest {
        conversation: words.conversation("steps"),
        system: Some(system.clone()),
        messages: vec![user(&question)],
        tools: vec![spec.clone()],
        tool_choice: ToolChoice::Required,
        sampling: greedy(600),
        ..ChatRequest::default()
    };
    let reply = ask(model, &request).await;
    let Some(call) = reply.calls.first() else { return [None, None] };
    request.messages.extend([reply.message(), result(call, &created)]);
    request.tool_choice = ToolChoice::Auto;
    request.sampling = greedy(2);
    let second = ask(model, &request).await;
    let theirs = asked(peer, |peer| second_step_of(peer, &system, &question, &created));
    [Some(second.first.as_secs_f64()), theirs.map(|answer| number(&answer, "first"))]
}

/// Seconds until the step after a search begins to be answered: a short call, a result of many lines.
pub async fn found_step(model: &LocalModel, peer: Option<&mut Peer>, words: &Words<'_>) -> [Option<f64>; 2] {
    let (system, question) = (words.other(15, 600), words.other(16, 24));
    let (query, found) = (words.other(17, 3), words.other(18, 60));
    let schema = json!({
        "type": "object", "properties": { "query": { "type": "string" } }, "required": ["query"],
    });
    let mut request = ChatRequest {
        conversation: words.conversation("search"),
        system: Some(system.clone()),
        messages: vec![user(&question)],
        tools: vec![tool("notes__search", schema.clone())],
        sampling: greedy(8),
        ..ChatRequest::default()
    };
    ask(model, &request).await;
    let arguments = json!({ "query": query });
    let call = (ToolCallId::from("call_1"), ToolName::from("notes__search"), arguments.to_string());
    let made = Timed { calls: vec![call.clone()], ..Timed::default() };
    request.messages.extend([made.message(), result(&call, &found)]);
    request.sampling = greedy(2);
    let second = ask(model, &request).await;
    let theirs = asked(peer, |peer| {
        let tools = json!([{ "type": "function", "function": {
            "name": "notes__search", "description": "Writes a note.", "parameters": schema,
        } }]);
        let mut messages = vec![
            json!({ "role": "system", "content": system }),
            json!({ "role": "user", "content": question }),
        ];
        peer.chat(json!({ "messages": messages, "tools": tools, "tool_choice": "auto", "max_tokens": 8 }))?;
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [{
            "id": "call_1", "type": "function",
            "function": { "name": "notes__search", "arguments": arguments.to_string() },
        }] }));
        messages.push(json!({ "role": "tool", "tool_call_id": "call_1", "content": found }));
        peer.chat(json!({ "messages": messages, "tools": tools, "tool_choice": "auto", "max_tokens": 2 }))
    });
    [Some(second.first.as_secs_f64()), theirs.map(|answer| number(&answer, "first"))]
}

fn second_step_of(peer: &mut Peer, system: &str, question: &str, created: &str) -> Result<Value, String> {
    let tools = json!([{ "type": "function", "function": {
        "name": "notes__create", "description": "Writes a note.", "parameters": schema(),
    } }]);
    let mut messages =
        vec![json!({ "role": "system", "content": system }), json!({ "role": "user", "content": question })];
    let forced = json!({ "type": "function", "function": { "name": "notes__create" } });
    let reply =
        peer.chat(json!({ "messages": messages, "tools": tools, "tool_choice": forced, "max_tokens": 600 }))?;
    let call = reply["calls"].get(0).ok_or("the peer made no call")?;
    messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [{
        "id": call["id"], "type": "function",
        "function": { "name": "notes__create", "arguments": call["arguments"] },
    }] }));
    messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": created }));
    peer.chat(json!({ "messages": messages, "tools": tools, "tool_choice": "auto", "max_tokens": 2 }))
}

/// Milliseconds that a token costs more when the answer has to be JSON of a schema: ours, theirs.
pub async fn grammar(model: &LocalModel, peer: Option<&mut Peer>, words: &Words<'_>) -> [Option<f64>; 2] {
    let question = words.other(7, 40);
    let schema = json!({
        "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"],
    });
    let request = |name: &str, answer: AnswerForm| ChatRequest {
        conversation: words.conversation(name),
        messages: vec![user(&question)],
        answer,
        sampling: greedy(REPLY),
        ..ChatRequest::default()
    };
    let cost = |reply: &Timed| 1000.0 / reply.pace();
    let free = ask(model, &request("free", AnswerForm::Free)).await;
    let bound = ask(model, &request("bound", AnswerForm::JsonSchema(schema.clone()))).await;
    let theirs = asked(peer, |peer| {
        let messages = json!([{ "role": "user", "content": question }]);
        let free = peer.chat(json!({ "messages": messages, "max_tokens": REPLY }))?;
        let format = json!({ "type": "json_object", "schema": schema });
        let bound =
            peer.chat(json!({ "messages": messages, "max_tokens": REPLY, "response_format": format }))?;
        let cost = |answer: &Value| 1000.0 * number(answer, "rest") / (number(answer, "chunks") - 1.0);
        Ok(json!({ "cost": cost(&bound) - cost(&free) }))
    });
    [Some(cost(&bound) - cost(&free)), theirs.map(|answer| number(&answer, "cost"))]
}

/// Tokens per second of an answer of which this part stands in a tool's result.
pub async fn quoting(model: &LocalModel, words: &Words<'_>, from: usize) -> (f64, f64) {
    let question = words.other(8, 30);
    let note = format!("{}\n\"\n{}\n{}", words.other(9, 60), words.quoted(from), words.other(10, 60));
    let request = ChatRequest {
        conversation: words.conversation(&format!("quoting {from}")),
        messages: vec![user(&format!("{question}\n{note}"))],
        sampling: greedy(400),
        ..ChatRequest::default()
    };
    let reply = ask(model, &request).await;
    let right = f64::from(reply.usage.right_guesses.unwrap_or(0));
    (reply.pace(), right / f64::from(reply.usage.guessed_tokens.unwrap_or(0)))
}

/// Seconds from the death of the worker to the first token of the next reply.
pub async fn after_crash(model: &LocalModel, words: &Words<'_>) -> f64 {
    model.misbehave(lectern_local::Misbehaviour::Abort).await;
    let request = ChatRequest {
        conversation: words.conversation("crash"),
        messages: vec![user(&words.other(11, 10))],
        sampling: greedy(2),
        ..ChatRequest::default()
    };
    ask(model, &request).await.first.as_secs_f64()
}

/// Seconds from the start of a new process to the first token of the next turn of a conversation of so many tokens:
/// with its state from the disk, and without. Both load the model.
pub async fn restart(open: impl AsyncFn(bool) -> LocalModel, words: &Words<'_>, tokens: usize) -> [f64; 2] {
    let mut request = ChatRequest {
        conversation: words.conversation("restart"),
        messages: vec![user(&words.other(13, tokens))],
        sampling: greedy(8),
        ..ChatRequest::default()
    };
    let before = open(true).await;
    let reply = ask(&before, &request).await;
    before.unload().await;
    request.messages.extend([reply.message(), user(&words.other(14, 12))]);
    let mut seconds = [0.0; 2];
    for (seconds, saved) in seconds.iter_mut().zip([true, false]) {
        let began = std::time::Instant::now();
        let model = open(saved).await;
        ask(&model, &request).await;
        *seconds = began.elapsed().as_secs_f64();
        model.unload().await;
    }
    seconds
}

/// What the peer answers, if there is one; what goes wrong there is said and left out.
fn asked(peer: Option<&mut Peer>, work: impl FnOnce(&mut Peer) -> Result<Value, String>) -> Option<Value> {
    match work(peer?) {
        Ok(answer) => Some(answer),
        Err(error) => {
            eprintln!("the peer failed: {error}");
            None
        }
    }
}
