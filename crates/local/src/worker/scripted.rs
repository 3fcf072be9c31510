//! For tests: a model that wants to write a given text, and what becomes of it under the grammar of its prompt.

use std::io::{Read, Seek};
use std::sync::{Arc, LazyLock};

use lectern_core::Delta;
use lectern_test_gguf::Recipe;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::token::LlamaToken;
use serde_json::{Value, json};

use super::ABORT;
use super::output::Output;
use super::session::Session;
use crate::deltas::Deltas;
use crate::messages::Form;
use crate::protocol::{Choice, Event, Finish, Generate, Load, SamplingOptions};
use crate::speed::{Lookup, SpeedOptions};

mod pythonic;
mod thinking;
mod triggers;

pub(super) static BACKEND: LazyLock<LlamaBackend> = LazyLock::new(|| {
    let backend = LlamaBackend::init().unwrap();
    // What it says is no part of what a test prints.
    crate::native::capture_log();
    backend
});

/// Tokens that the model wants to write. Where the grammar refuses one, it is free from there on.
#[derive(Debug, Default)]
pub(super) struct Script {
    tokens: Vec<LlamaToken>,
    at: usize,
    lost: bool,
}

impl Script {
    pub(super) fn favour(&self, logits: &mut [f32]) {
        let next = self.tokens.get(self.at).filter(|_| !self.lost);
        let logit = next.and_then(|token| logits.get_mut(usize::try_from(token.0).ok()?));
        if let Some(logit) = logit {
            *logit += 10_000.0;
        }
    }

    pub(super) fn push(&mut self, token: LlamaToken) {
        self.lost |= self.tokens.get(self.at).is_some_and(|wanted| *wanted != token);
        self.at += 1;
    }
}

/// How a text becomes the tokens of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    /// With special tokens where there are some.
    Special,
    /// Letter by letter.
    Letters,
}

/// What was written.
#[derive(Debug, Default, PartialEq)]
struct Written {
    text: String,
    thinking: String,
    calls: Vec<(String, Value)>,
    finish: Option<Finish>,
    raw: String,
    /// Whether the script was written to its end.
    followed: bool,
    tokens: u32,
    notes: Vec<String>,
}

/// A model with random weights behind a template.
struct Scene {
    model: LlamaModel,
    template: String,
}

impl Scene {
    fn new(template: &str) -> Self {
        // What real templates have as tokens of their own.
        let more = [
            "<|eot_id|>",
            "</s>",
            "<end_of_turn>",
            "<|end|>",
            "<|call|>",
            "<|python_tag|>",
            "[TOOL_CALLS]",
            "[ARGS]",
            "<|channel|>",
            "<|message|>",
            "<|start|>",
            "<|return|>",
            "<|constrain|>",
            "[THINK]",
            "[/THINK]",
            "<|tool_call_start|>",
            "<|tool_call_end|>",
        ];
        let recipe =
            Recipe { context: 16384, more_tokens: more.map(str::to_owned).to_vec(), ..Recipe::default() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scripted.gguf");
        std::fs::write(&path, recipe.template(template).bytes()).unwrap();
        let params = LlamaModelParams::default().with_use_mmap(false);
        let model = LlamaModel::load_from_file(&BACKEND, &path, &params).unwrap();
        Self { model, template: template.to_owned() }
    }

    /// Asks, and lets the model want to write a text and then to end.
    fn write(&self, request: &Generate, script: &str, spelling: Spelling) -> Result<Written, String> {
        let load = Load {
            job: 1,
            path: "scripted".into(),
            context: 8192,
            speed: SpeedOptions { lookup: Lookup::Off, threads: Some(1), ..SpeedOptions::default() },
            format: crate::FormatOptions { template: Some(self.template.clone()), ..Default::default() },
            cache: crate::CacheOptions::default(),
            projector: None,
        };
        let mut file = tempfile::tempfile().unwrap();
        let output = Arc::new(Output::to(file.try_clone().unwrap()));
        let mut session =
            Session::new(&self.model, None, &load, &ABORT, &output).map_err(|error| error.to_string())?;
        let vocab = self.model.vocab();
        let mut tokens = vocab.tokenize(script.as_bytes(), false, spelling == Spelling::Special);
        tokens.push(vocab.eos());
        session.script = Some(Script { tokens, ..Script::default() });
        let done = session.reply(request, &output).map_err(|error| error.to_string())?;
        let followed = session
            .script
            .as_ref()
            .is_some_and(|script| !script.lost && script.at + 1 >= script.tokens.len());
        let mut lines = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut lines).unwrap();
        let names =
            crate::parse::names(if request.tools.is_empty() { &request.described } else { &request.tools });
        let form = if request.tools.is_empty() { Form::Prompted(request.form) } else { Form::Native };
        let mut deltas = Deltas::new(form, names, Arc::default());
        let mut all = Vec::new();
        for line in lines.lines() {
            if let Event::Pieces { pieces, .. } = serde_json::from_str(line).unwrap() {
                all.extend(pieces.into_iter().flat_map(|piece| deltas.piece(piece)));
            }
        }
        all.extend(deltas.finish(done.unread.as_deref()));
        let mut out = Written {
            finish: Some(done.finish),
            raw: done.raw,
            followed,
            tokens: done.usage.generated,
            notes: done.notes,
            ..Written::default()
        };
        let mut calls: Vec<(String, String)> = Vec::new();
        for delta in all {
            match delta {
                Delta::Text(text) => out.text.push_str(&text),
                Delta::Thinking(text) => out.thinking.push_str(&text),
                Delta::ToolCallStarted { tool, .. } => calls.push((tool.0, String::new())),
                Delta::ToolCallArguments { index, fragment } => calls[index as usize].1.push_str(&fragment),
                _ => {}
            }
        }
        let read = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
        out.calls = calls.into_iter().map(|(name, text)| (name, read(text))).collect();
        Ok(out)
    }
}

pub(super) fn asked(tools: &[Value]) -> Generate {
    Generate {
        job: 2,
        conversation: "one".into(),
        side: false,
        messages: vec![json!({ "role": "user", "content": "Hello" })],
        images: Vec::new(),
        tools: tools.to_vec(),
        choice: Choice::Auto,
        described: Vec::new(),
        form: crate::CallForm::default(),
        tools_last: false,
        answer: Default::default(),
        thinking: Default::default(),
        sampling: SamplingOptions {
            seed: Some(5),
            temperature: Some(1.0),
            max_tokens: Some(400),
            ..SamplingOptions::default()
        },
    }
}

fn tool(name: &str, schema: Value) -> Value {
    let function = json!({ "name": name, "description": "Does it", "parameters": schema });
    json!({ "type": "function", "function": function })
}
