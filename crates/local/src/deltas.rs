//! From the worker's pieces to the core's deltas: ids for calls, and calls that stand in the text.
//!
//! Invariant: pure; what was given out is never taken back.

use std::mem::take;
use std::sync::Arc;

use lectern_core::{Delta, ToolCallId, ToolName};
use serde_json::{Map, Value};

use crate::messages::{Form, Spoken};
use crate::names::Names;
use crate::prompted::{FreeText, FreeTextPiece, TextCall, parse_free_text};
use crate::protocol::Piece;

/// Makes deltas out of pieces.
pub(crate) struct Deltas {
    reader: Reader,
    /// Names by which tools may be called.
    tools: Vec<String>,
    names: Arc<Names>,
    spoken: Spoken,
    /// Of the native calls: their place among all calls.
    native: Vec<u32>,
    /// Arguments that the model knows by other names wait until they are whole, with the place of their call.
    renamed: Option<(u32, String)>,
}

/// What happens to text.
enum Reader {
    /// It goes out as it comes.
    Plain,
    /// Calls are read out of it.
    Prompted(FreeText),
    /// A model that knows a format may write a call in another one. Held back while it may be nothing but calls.
    Rescue { free: FreeText, held: String, calls: Vec<TextCall> },
}

impl Deltas {
    /// For a reply in which these tools may be called.
    pub(crate) fn new(form: Form, tools: Vec<String>, names: Arc<Names>) -> Self {
        // A model that is told an alias may have read the true name elsewhere.
        let aliases: Vec<String> = tools.iter().map(|tool| names.alias(tool).to_owned()).collect();
        let tools: Vec<String> = tools.into_iter().chain(aliases).collect();
        let free = || FreeText::new(tools.iter().cloned());
        let reader = match form {
            _ if tools.is_empty() => Reader::Plain,
            Form::Prompted(_) => Reader::Prompted(free()),
            Form::Native => Reader::Rescue { free: free(), held: String::new(), calls: Vec::new() },
        };
        Self { reader, tools, names, spoken: Spoken::default(), native: Vec::new(), renamed: None }
    }

    /// What the reply said so far.
    pub(crate) fn spoken(&self) -> &Spoken {
        &self.spoken
    }

    /// Takes a piece.
    pub(crate) fn piece(&mut self, piece: Piece) -> Vec<Delta> {
        let mut out = Vec::new();
        match piece {
            Piece::Text(text) => self.text(&text, &mut out),
            Piece::Thinking(text) => {
                self.spoken.thinking.push_str(&text);
                out.push(Delta::Thinking(text));
            }
            Piece::Call { index, name } => {
                self.release(&mut out);
                let place = self.start(&name, &mut out);
                debug_assert_eq!(index as usize, self.native.len(), "native calls come in order");
                self.native.push(place);
            }
            Piece::Arguments { index, fragment } => {
                if let Some(place) = self.native.get(index as usize).copied() {
                    self.arguments(place, fragment, &mut out);
                }
            }
        }
        out
    }

    /// The end of the reply, with what the template's parser could not read.
    pub(crate) fn finish(&mut self, unread: Option<&str>) -> Vec<Delta> {
        let mut out = Vec::new();
        self.tell_renamed(&mut out);
        match std::mem::replace(&mut self.reader, Reader::Plain) {
            Reader::Plain => {}
            Reader::Prompted(mut free) => {
                for piece in free.finish() {
                    self.free_piece(piece, &mut out);
                }
            }
            // What could not be read begins with what was held back.
            Reader::Rescue { held, .. } if unread.is_some() => {
                self.unread(&format!("{held}{}", unread.unwrap_or_default()), &mut out);
                return out;
            }
            Reader::Rescue { mut free, held, mut calls } => {
                let rest = free.finish();
                let only_calls = !rest.iter().any(is_words);
                calls.extend(rest.into_iter().filter_map(call_of));
                if only_calls && !calls.is_empty() && self.native.is_empty() {
                    calls.into_iter().for_each(|call| self.whole_call(call, &mut out));
                } else {
                    self.say(held, &mut out);
                }
            }
        }
        if let Some(unread) = unread {
            self.unread(unread, &mut out);
        }
        out
    }

    fn unread(&mut self, text: &str, out: &mut Vec<Delta>) {
        let (content, calls) = parse_free_text(text, self.tools.iter().cloned(), false);
        if !calls.is_empty() && !self.tools.is_empty() {
            self.say(content, out);
            calls.into_iter().for_each(|call| self.whole_call(call, out));
        } else {
            self.say(text.to_owned(), out);
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<Delta>) {
        match &mut self.reader {
            Reader::Plain => self.say(text.to_owned(), out),
            Reader::Prompted(free) => {
                for piece in free.push(text) {
                    self.free_piece(piece, out);
                }
            }
            Reader::Rescue { free, held, calls } => {
                held.push_str(text);
                let pieces = free.push(text);
                let words = pieces.iter().any(is_words);
                calls.extend(pieces.into_iter().filter_map(call_of));
                if words {
                    self.release(out);
                }
            }
        }
    }

    /// Gives out what was held back as text; from here on text goes out as it comes.
    fn release(&mut self, out: &mut Vec<Delta>) {
        if let Reader::Rescue { held, .. } = &mut self.reader {
            let held = take(held);
            self.reader = Reader::Plain;
            self.say(held, out);
        }
    }

    fn free_piece(&mut self, piece: FreeTextPiece, out: &mut Vec<Delta>) {
        match piece {
            FreeTextPiece::Text(text) => self.say(text, out),
            FreeTextPiece::Call(call) => self.whole_call(call, out),
        }
    }

    fn say(&mut self, text: String, out: &mut Vec<Delta>) {
        if !text.is_empty() {
            self.spoken.text.push_str(&text);
            out.push(Delta::Text(text));
        }
    }

    fn whole_call(&mut self, call: TextCall, out: &mut Vec<Delta>) {
        let place = self.start(&call.name, out);
        self.arguments(place, Value::Object(call.arguments).to_string(), out);
        self.tell_renamed(out);
    }

    fn start(&mut self, name: &str, out: &mut Vec<Delta>) -> u32 {
        self.tell_renamed(out);
        let name = self.names.tool(name).to_owned();
        let index = u32::try_from(self.spoken.calls.len()).unwrap_or(u32::MAX);
        self.spoken.calls.push((name.clone(), String::new()));
        out.push(Delta::ToolCallStarted {
            index,
            id: ToolCallId::fresh(),
            tool: ToolName(name),
            provider_data: None,
        });
        index
    }

    fn arguments(&mut self, index: u32, fragment: String, out: &mut Vec<Delta>) {
        let tool = self.spoken.calls.get(index as usize).map(|(name, _)| name.as_str());
        if tool.is_some_and(|tool| self.names.renames(tool)) {
            let (_, waiting) = self.renamed.get_or_insert_with(|| (index, String::new()));
            waiting.push_str(&fragment);
        } else {
            self.told(index, fragment, out);
        }
    }

    /// Gives out arguments that were waiting, by their true names. What is no object is left to the core to refuse.
    fn tell_renamed(&mut self, out: &mut Vec<Delta>) {
        let Some((index, text)) = self.renamed.take() else { return };
        let tool = self.spoken.calls.get(index as usize).map(|(name, _)| name.clone()).unwrap_or_default();
        let text = match serde_json::from_str::<Map<String, Value>>(&text) {
            Ok(arguments) => Value::Object(self.names.read(&tool, arguments)).to_string(),
            Err(_) => text,
        };
        self.told(index, text, out);
    }

    fn told(&mut self, index: u32, fragment: String, out: &mut Vec<Delta>) {
        if let Some((_, arguments)) = self.spoken.calls.get_mut(index as usize) {
            arguments.push_str(&fragment);
        }
        out.push(Delta::ToolCallArguments { index, fragment });
    }
}

fn is_words(piece: &FreeTextPiece) -> bool {
    matches!(piece, FreeTextPiece::Text(text) if !text.trim().is_empty())
}

fn call_of(piece: FreeTextPiece) -> Option<TextCall> {
    match piece {
        FreeTextPiece::Call(call) => Some(call),
        FreeTextPiece::Text(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::CallForm;

    fn run(form: Form, texts: &[&str]) -> (Vec<String>, Spoken) {
        let mut deltas = Deltas::new(form, vec!["search".into(), "now".into()], Arc::default());
        let mut said: Vec<String> = Vec::new();
        let mut note = |deltas: Vec<Delta>| {
            said.extend(deltas.into_iter().filter_map(|delta| match delta {
                Delta::Text(text) => Some(text),
                Delta::ToolCallStarted { tool, .. } => Some(format!("call {tool}")),
                _ => None,
            }));
        };
        for text in texts {
            note(deltas.piece(Piece::Text((*text).to_owned())));
        }
        note(deltas.finish(None));
        (said, deltas.spoken().clone())
    }

    #[test]
    fn a_call_in_another_form_is_rescued() {
        let (said, spoken) = run(Form::Native, &["[sear", "ch(q='x'), ", "now()]", "\n"]);
        assert_eq!(said, ["call search", "call now"]);
        assert_eq!(spoken.calls[0], ("search".to_owned(), "{\"q\":\"x\"}".to_owned()));
    }

    #[test]
    fn text_with_a_call_in_it_stays_text_for_a_model_that_knows_better() {
        let (said, _) = run(Form::Native, &["[search(q='x')]", " was my call", ", see"]);
        assert_eq!(said.concat(), "[search(q='x')] was my call, see");
    }

    #[test]
    fn a_prompted_model_may_speak_first() {
        let (said, _) =
            run(Form::Prompted(CallForm::Json), &["I look.\n<tool", "_call>{\"name\": \"now\"}</tool_call>"]);
        assert_eq!(said, ["I look.", "call now"]);
    }

    #[test]
    fn what_could_not_be_read_is_kept() {
        let mut deltas = Deltas::new(Form::Native, vec!["search".into()], Arc::default());
        assert_eq!(deltas.finish(Some("<odd>text")), [Delta::Text("<odd>text".into())]);
        let mut deltas = Deltas::new(Form::Native, vec!["search".into()], Arc::default());
        let rescued = deltas.finish(Some("<tool_call>{\"name\": \"nothing\"}</tool_call>"));
        assert!(matches!(&rescued[0], Delta::ToolCallStarted { tool, .. } if tool.as_str() == "nothing"));
    }
}
