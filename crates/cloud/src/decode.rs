//! Reads a recorded answer as if it came from the network, for tests and for those who look into a provider.
//!
//! Invariant: the same bytes give the same result however they are cut. Never fails: what can't be read is said in
//! `error`.

use lectern_core::{Delta, FinishReason, arguments_of};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::fault::{Fault, FaultKind};
use crate::gemini;
use crate::names::{Alphabet, Names};
use crate::openai;
use crate::outcome::BlockReason;
use crate::problem::code_of;
use crate::reply::{Body, Reader, Verdict};

/// Whose answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Gemini, at Vertex AI or the developer API.
    Gemini,
    /// An OpenAI-compatible endpoint.
    OpenAi,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decoded {
    /// The answer's text.
    pub text: String,
    /// The thoughts.
    pub thinking: String,
    /// The calls, in order.
    pub calls: Vec<DecodedCall>,
    /// Why it ended, in the provider's word.
    pub finish: Option<String>,
    /// Why the prompt was blocked, in the provider's word.
    pub block: Option<String>,
    /// The provider's own counts.
    pub usage: Option<Map<String, Value>>,
    /// The provider's error, or why the answer can't be read.
    pub error: Option<DecodedError>,
    /// The model that answered, as the provider says.
    pub model: Option<String>,
    /// How the turn would take it: `stop`, `tool_calls`, `length`, `filtered`, or the code of a failure.
    pub outcome: String,
}

/// A call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecodedCall {
    /// The provider's id, when it gave one.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments; a text where they are no JSON object.
    pub args: Value,
    /// Whether it has a signature.
    pub signed: bool,
}

/// An error.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecodedError {
    /// The provider's number.
    pub code: Option<i64>,
    /// The provider's word.
    pub status: Option<String>,
    /// The provider's sentence.
    pub message: Option<String>,
    /// What we take it for.
    pub kind: Value,
    /// Whether it is a page of HTML.
    pub html: bool,
}

/// Where a call keeps its signature.
const SIGNATURES: [&str; 2] = ["/gemini/signature", "/openai/extra_content/google/thought_signature"];

/// Reads an answer in pieces of `chunk` bytes; 0 for the whole at once.
pub fn recorded(provider: Provider, bytes: &[u8], chunk: usize) -> Decoded {
    let size = if chunk == 0 { bytes.len().max(1) } else { chunk };
    pieces(provider, bytes.chunks(size))
}

/// Reads an answer that comes in these pieces.
pub fn pieces<'a>(provider: Provider, pieces: impl Iterator<Item = &'a [u8]>) -> Decoded {
    match provider {
        Provider::Gemini => {
            let (reader, mut decoded) = read(gemini_reader(), pieces);
            decoded.finish = reader.finish_word.clone();
            decoded.block = reader.block().map(BlockReason::as_str).map(str::to_owned);
            decoded.usage = (!reader.usage.is_empty()).then_some(reader.usage);
            decoded.model = reader.model_version;
            decoded
        }
        Provider::OpenAi => {
            let (reader, mut decoded) = read(openai_reader(), pieces);
            decoded.finish = reader.finish_word.clone();
            decoded.usage = (!reader.usage.is_empty()).then_some(reader.usage);
            decoded.model = reader.model;
            decoded
        }
    }
}

/// Reads a stream and keeps nothing of it, as one does who passes everything on.
pub struct Watch(Box<dyn Push>);

trait Push {
    fn push(&mut self, bytes: &[u8]) -> Result<usize, Fault>;
}

struct Watched<R> {
    body: Body<R>,
    deltas: Vec<Delta>,
}

impl<R: Reader> Push for Watched<R> {
    fn push(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let pushed = self.body.push(bytes, &mut self.deltas);
        let count = self.deltas.len();
        self.deltas.clear();
        pushed.map(|()| count)
    }
}

impl Watch {
    /// Nothing is read yet.
    pub fn new(provider: Provider) -> Self {
        let deltas = Vec::new();
        Self(match provider {
            Provider::Gemini => Box::new(Watched { body: Body::new(gemini_reader()), deltas }),
            Provider::OpenAi => Box::new(Watched { body: Body::new(openai_reader()), deltas }),
        })
    }

    /// Reads on; gives how many things were said.
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        self.0.push(bytes)
    }
}

fn gemini_reader() -> gemini::reply::Reply {
    gemini::reply::Reply::new("recorded", Names::new(Alphabet::Gemini, &[], &[]))
}

fn openai_reader() -> openai::reply::Reply {
    openai::reply::Reply::new(Names::new(Alphabet::OpenAi, &[], &[]), "recorded")
}

fn read<'a, R: Reader>(reader: R, pieces: impl Iterator<Item = &'a [u8]>) -> (R, Decoded) {
    let mut body = Body::new(reader);
    let mut deltas = Vec::new();
    for piece in pieces {
        // The body itself remembers what ended it.
        if body.push(piece, &mut deltas).is_err() {
            break;
        }
    }
    let (reader, mut verdict) = body.finish(&mut deltas);
    deltas.append(&mut verdict.held);
    deltas.append(&mut verdict.unmade);
    (reader, collected(deltas, verdict))
}

fn collected(deltas: Vec<Delta>, verdict: Verdict) -> Decoded {
    let mut out = Decoded {
        text: String::new(),
        thinking: String::new(),
        calls: Vec::new(),
        finish: None,
        block: None,
        usage: None,
        error: None,
        model: None,
        outcome: String::new(),
    };
    let mut arguments: Vec<(u32, String)> = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Text(text) => out.text.push_str(&text),
            Delta::Thinking(text) => out.thinking.push_str(&text),
            Delta::ToolCallStarted { index, id, tool, provider_data } => {
                let signed = provider_data
                    .is_some_and(|data| SIGNATURES.iter().any(|place| data.pointer(place).is_some()));
                let id = Some(id.0).filter(|id| !id.is_empty());
                out.calls.push(DecodedCall { id, name: tool.0, args: Value::Null, signed });
                arguments.push((index, String::new()));
            }
            Delta::ToolCallArguments { index, fragment } => {
                if let Some((_, text)) = arguments.iter_mut().find(|(known, _)| *known == index) {
                    text.push_str(&fragment);
                }
            }
            Delta::Loading(_)
            | Delta::PromptProgress { .. }
            | Delta::ProviderData(_)
            | Delta::Retrying { .. }
            | Delta::Notice { .. }
            | Delta::Usage(_)
            | Delta::Finished(_) => {}
        }
    }
    for (call, (_, text)) in out.calls.iter_mut().zip(arguments) {
        call.args = parsed(text);
    }
    match verdict.end {
        Ok(finish) => outcome(finish).clone_into(&mut out.outcome),
        Err(fault) => {
            // The prompt itself was refused: an error in place of an answer.
            if matches!(fault.kind, FaultKind::Filtered { .. }) {
                out.block = fault.said.as_ref().and_then(|said| said.status.clone());
            }
            out.outcome = serde_json::to_value(code_of(&fault)).map_or_else(|_| String::new(), word);
            out.error = error(fault);
        }
    }
    out
}

fn word(value: Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn parsed(text: String) -> Value {
    arguments_of(&text).map_or(Value::String(text), Value::Object)
}

fn outcome(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::Filtered => "filtered",
        FinishReason::Cancelled => "cancelled",
        FinishReason::Failed => "failed",
    }
}

/// What was an error of the provider, or can't be read. That a reply is blocked, empty or without an end stands elsewhere,
/// unless the provider itself said so with an error.
fn error(fault: Fault) -> Option<DecodedError> {
    let is_answer = matches!(
        fault.kind,
        FaultKind::Empty
            | FaultKind::Blocked { .. }
            | FaultKind::Withheld { .. }
            | FaultKind::Filtered { .. }
            | FaultKind::MalformedCall { .. }
            | FaultKind::UnknownEnd { .. }
            | FaultKind::Broken { .. }
    );
    let said = fault.said.as_deref();
    let told = said.is_some_and(|said| said.code.is_some() || said.status.is_some() || said.html);
    if is_answer && !told {
        return None;
    }
    let kind = serde_json::to_value(&fault.kind).unwrap_or_default()["kind"].clone();
    let said = fault.said.unwrap_or_default();
    Some(DecodedError { code: said.code, status: said.status, message: said.message, kind, html: said.html })
}
