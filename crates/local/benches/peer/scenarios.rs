//! What is measured, each on both sides with the same messages, one after the other.

use lectern_core::{
    AnswerForm, ChatModel, ChatRequest, ConversationId, Message, Sampling, ToolChoice, UserMessage,
};
use lectern_local::LocalModel;
use lectern_test_gguf::QuotingModel;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::other::{Peer, number};
use crate::ours::{DESCRIPTION, Timed, ask, result, tool};
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

/// Seconds until the second turn begins to be answered.
#[derive(Default)]
pub struct SecondTurn {
    /// The message came in one piece, as from the clipboard, and was sent at once.
    pub pasted: Option<f64>,
    /// It was typed, and sent with the last letter.
    pub typed: Option<f64>,
    /// It was typed, and sent after a moment.
    pub looked_at: Option<f64>,
    /// The peer's.
    pub theirs: Option<f64>,
}

pub async fn second_turn(model: &LocalModel, peer: Option<&mut Peer>, words: &Words<'_>) -> SecondTurn {
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
    request.messages.push(reply.message());
    request.sampling = greedy(2);
    let with = |text: &str| {
        let messages = request.messages.iter().cloned().chain([user(text)]).collect();
        ChatRequest { messages, ..request.clone() }
    };
    let pasted = ask(model, &with(&next)).await;
    // What the window tells: each word when it ends, and all of it when the user pauses.
    let type_words = async |text: &str| {
        for (end, _) in text.match_indices(' ') {
            model.prepare(with(&text[..=end]), CancellationToken::new()).await;
        }
    };
    let text = words.other(12, 32);
    type_words(&text).await;
    let typed = ask(model, &with(&text)).await;
    let text = words.other(19, 32);
    type_words(&text).await;
    model.prepare(with(&text), CancellationToken::new()).await;
    let looked_at = ask(model, &with(&text)).await;
    let read = |timed: &Timed| timed.usage.prompt_tokens - timed.usage.reused_tokens;
    println!("second turn: {}, {} and {} tokens read", read(&pasted), read(&typed), read(&looked_at));
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
    let theirs = theirs.map(|answer| number(&answer, "first"));
    SecondTurn { pasted: first(&pasted), typed: first(&typed), looked_at: first(&looked_at), theirs }
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

/// A step that calls a tool, and what the tool gives back.
pub struct Step {
    name: &'static str,
    system: String,
    question: String,
    schema: Value,
    result: String,
}

impl Step {
    /// A long call, a short result: a note is written.
    pub fn writes(words: &Words<'_>) -> Self {
        let schema = json!({
            "type": "object",
            "properties": { "folder": { "enum": ["inbox", "archive"] }, "text": { "type": "string" } },
            "required": ["folder", "text"],
        });
        let result = format!("created {}", words.other(6, 6));
        Self {
            name: "notes__create",
            system: words.other(4, 200),
            question: words.other(5, 40),
            schema,
            result,
        }
    }

    /// A short call, a long result: notes are searched.
    pub fn searches(words: &Words<'_>) -> Self {
        let schema = json!({
            "type": "object", "properties": { "query": { "enum": [words.other(17, 3)] } }, "required": ["query"],
        });
        let (system, question) = (words.other(15, 600), words.other(16, 24));
        Self { name: "notes__search", system, question, schema, result: words.other(18, 60) }
    }

    fn ours(&self, words: &Words<'_>) -> ChatRequest {
        ChatRequest {
            conversation: words.conversation(self.name),
            system: Some(self.system.clone()),
            messages: vec![user(&self.question)],
            tools: vec![tool(self.name, self.schema.clone())],
            tool_choice: ToolChoice::Required,
            sampling: greedy(600),
            ..ChatRequest::default()
        }
    }

    fn theirs(&self, peer: &mut Peer) -> Result<Value, String> {
        let tools = json!([{ "type": "function", "function": {
            "name": self.name, "description": DESCRIPTION, "parameters": self.schema,
        } }]);
        let mut messages = vec![
            json!({ "role": "system", "content": self.system }),
            json!({ "role": "user", "content": self.question }),
        ];
        let forced = json!({ "type": "function", "function": { "name": self.name } });
        let reply = peer.chat(
            json!({ "messages": messages, "tools": tools, "tool_choice": forced, "max_tokens": 600 }),
        )?;
        let call = reply["calls"].get(0).ok_or("the peer made no call")?;
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": [{
            "id": call["id"], "type": "function",
            "function": { "name": self.name, "arguments": call["arguments"] },
        }] }));
        messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": self.result }));
        peer.chat(json!({ "messages": messages, "tools": tools, "tool_choice": "auto", "max_tokens": 2 }))
    }
}

/// Seconds until the step after a call that the model wrote begins to be answered: ours, theirs.
pub async fn second_step(
    model: &LocalModel,
    peer: Option<&mut Peer>,
    words: &Words<'_>,
    step: &Step,
) -> [Option<f64>; 2] {
    let mut request = step.ours(words);
    let reply = ask(model, &request).await;
    let Some(call) = reply.calls.first() else { return [None, None] };
    request.messages.extend([reply.message(), result(call, &step.result)]);
    request.tool_choice = ToolChoice::Auto;
    request.sampling = greedy(2);
    let second = ask(model, &request).await;
    let read = second.usage.prompt_tokens - second.usage.reused_tokens;
    println!("after `{}`: {} tokens written, {read} read", step.name, reply.usage.generated_tokens);
    let theirs = asked(peer, |peer| step.theirs(peer));
    [Some(second.first.as_secs_f64()), theirs.map(|answer| number(&answer, "first"))]
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
