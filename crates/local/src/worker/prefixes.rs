//! Calls from a public collection, each in three forms, as they look while they are written: at every place where a
//! reply can be cut, and in every piece in which it can come.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lectern_core::Delta;
use lectern_test_gguf::{CHATML, CHATML_TOOLS};
use serde_json::{Value, json};

use super::pieces::PieceStream;
use super::text::TextStream;
use crate::deltas::Deltas;
use crate::format::CallForm;
use crate::messages::Form;
use crate::native::{Applied, Format, Templates};
use crate::parse::{ParsedText, format_with, names, read_with};

/// Set to read every case with every template; else every case with the first two and some with the others.
const ALL_VARIABLE: &str = "LECTERN_EVERY_PREFIX";
/// Of the cases, one in so many is read with each real template.
const SHARE: usize = 100;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The same file as in `tests/it/fixtures.rs`.
fn cases() -> Vec<Value> {
    let path = std::env::var_os("LECTERN_TOOL_CALL_CASES")
        .map_or_else(|| repository().join("../shared/fixtures/tool-calls/cases.jsonl"), Into::into);
    let Ok(text) = std::fs::read_to_string(path) else {
        println!("SKIPPED: no tool-call cases here (set LECTERN_TOOL_CALL_CASES)");
        return Vec::new();
    };
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn real_templates() -> Vec<(String, String)> {
    let folder = std::env::var_os("LECTERN_CHAT_TEMPLATES")
        .map_or_else(|| repository().join("target/chat-templates"), PathBuf::from);
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "jinja")).collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// One case, one form, one template.
struct Reading<'a> {
    templates: &'a Templates,
    applied: Applied,
    format: Format,
    thinking: (String, Vec<String>),
    /// Whether the reply begins within the model's thinking.
    begins_thinking: bool,
    tools: &'a [Value],
    text: &'a str,
    whole: ParsedText,
}

impl<'a> Reading<'a> {
    fn new(templates: &'a Templates, tools: &'a [Value], text: &'a str) -> Self {
        let (applied, format) = format_with(templates, tools).unwrap();
        let start = applied.thinking_start_tag.trim();
        let begins_thinking = !start.is_empty() && applied.generation_prompt.trim_end().ends_with(start);
        let thinking = (applied.thinking_start_tag.trim().to_owned(), applied.thinking_end_tags.clone());
        let whole = read_with(templates, (&applied, &format), tools, text, false);
        Self { templates, applied, format, thinking, begins_thinking, tools, text, whole }
    }

    /// What a stream says that gets the reply in these pieces.
    fn streamed(&self, chunks: &[&[u8]]) -> Result<ParsedText, String> {
        let form =
            if self.templates.knows_tools() { Form::Native } else { Form::Prompted(CallForm::default()) };
        let mut deltas = Deltas::new(form, names(self.tools), std::sync::Arc::default());
        let (mut text, mut pieces) =
            (TextStream::new([]), PieceStream::new(names(self.tools), self.thinking.clone()));
        let mut said = ParsedText::default();
        for chunk in chunks {
            text.push(chunk);
            for piece in pieces.read(&self.format, text.text()) {
                self.listen(&mut said, deltas.piece(piece))?;
            }
        }
        text.finish();
        let parsed = self.format.parse(text.text(), false);
        let (last, unread) = pieces.end(parsed.as_ref().ok(), Some(&self.format), text.text());
        for piece in last {
            self.listen(&mut said, deltas.piece(piece))?;
        }
        self.listen(&mut said, deltas.finish(unread.as_deref()))?;
        for call in &mut said.tool_calls {
            let arguments = call.arguments.as_str().unwrap_or_default();
            call.arguments = serde_json::from_str(arguments).map_err(|error| error.to_string())?;
        }
        Ok(said)
    }

    /// Every delta has to be a part of what the reply is in the end.
    fn listen(&self, said: &mut ParsedText, deltas: Vec<Delta>) -> Result<(), String> {
        for delta in deltas {
            match delta {
                Delta::Text(text) => {
                    said.content.push_str(&text);
                    // White space before a call is a part of the call, or not.
                    if !self.whole.content.starts_with(said.content.trim_end()) {
                        return Err(format!("shows {:?} of {:?}", said.content, self.whole));
                    }
                }
                Delta::Thinking(text) => {
                    said.reasoning.push_str(&text);
                    if !self.whole.reasoning.starts_with(&said.reasoning) {
                        return Err(format!("thinks {:?}", said.reasoning));
                    }
                }
                Delta::ToolCallStarted { tool, .. } => {
                    let wanted = self.whole.tool_calls.get(said.tool_calls.len());
                    if wanted.is_none_or(|wanted| wanted.name != tool.as_str()) {
                        return Err(format!("calls {tool}"));
                    }
                    let arguments = Value::String(String::new());
                    said.tool_calls.push(crate::ParsedToolCall { name: tool.0, arguments });
                }
                Delta::ToolCallArguments { index, fragment } => {
                    let call = said.tool_calls.get_mut(index as usize).ok_or("arguments without a call")?;
                    let Value::String(text) = &mut call.arguments else {
                        unreachable!("only text is put in")
                    };
                    text.push_str(&fragment);
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
        Ok(())
    }

    /// What every beginning of the reply is read as, by itself: never less than what a shorter one was read as.
    fn every_beginning(&self) -> Result<(), String> {
        let mut before = ParsedText::default();
        for (at, _) in self.text.char_indices().skip(1) {
            let now =
                read_with(self.templates, (&self.applied, &self.format), self.tools, &self.text[..at], true);
            let fault = if !self.whole.content.starts_with(&now.content) {
                Some(format!("shows {:?}", now.content))
            } else if !now.content.starts_with(&before.content) {
                Some(format!("takes {:?} back", before.content))
            } else if now.tool_calls.len() < before.tool_calls.len() {
                Some("takes a call back".to_owned())
            } else if now.tool_calls.iter().zip(&self.whole.tool_calls).any(|(now, whole)| {
                // The last name may not be whole yet.
                !whole.name.starts_with(&now.name)
            }) || now.tool_calls.len() > self.whole.tool_calls.len()
            {
                Some(format!("calls {:?}", now.tool_calls))
            } else {
                None
            };
            if let Some(fault) = fault {
                return Err(format!("at {at} it {fault}"));
            }
            before = now;
        }
        Ok(())
    }

    fn check(&self, dice: &mut Dice) -> Result<(), String> {
        let bytes = self.text.as_bytes();
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let mut random: Vec<&[u8]> = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (head, tail) = rest.split_at((1 + dice.roll(9)).min(rest.len()));
            random.push(head);
            rest = tail;
        }
        for chunks in [single, random, vec![bytes]] {
            let mut said = self.streamed(&chunks)?;
            let mut whole = ParsedText { error: None, ..self.whole.clone() };
            for text in [&mut said.content, &mut whole.content] {
                text.truncate(text.trim_end().len());
            }
            if said != whole {
                return Err(format!("in {} pieces it is {said:?}", chunks.len()));
            }
        }
        self.every_beginning()
    }
}

/// What is read with one template.
struct Round<'a> {
    name: &'a str,
    source: &'a str,
    cases: Vec<&'a Value>,
    /// Every form of every case, or one of them.
    every_form: bool,
    /// Whether the calls have to be those of the case: a format may read another form than its own as text.
    wanted: bool,
}

impl Round<'_> {
    fn faults(&self) -> Vec<String> {
        let began = std::time::Instant::now();
        let templates = Templates::of_text(self.source, "", "").unwrap();
        let (mut dice, mut faults, mut read) = (Dice(7), Vec::new(), 0);
        for (number, case) in self.cases.iter().enumerate() {
            let texts = case["text"].as_object().unwrap().iter();
            let texts = texts.filter_map(|(form, text)| Some((form, text.as_str()?)));
            for (place, (form, text)) in texts.enumerate() {
                if !self.every_form && number % 3 != place {
                    continue;
                }
                let tools = case["tools"].as_array().unwrap();
                let reading = Reading::new(&templates, tools, text);
                let mut fault = self.fault(&reading, case, &mut dice);
                if number % 5 == 0 {
                    let thinks = number / 5 % 2 == 1 && !reading.begins_thinking;
                    let more = if thinks { "<think>\nWhy?\n</think>\n\n" } else { "Let me see [it]: {a}.\n" };
                    let text = format!("{more}{text}");
                    fault = fault.or_else(|| Reading::new(&templates, tools, &text).check(&mut dice).err());
                }
                faults.extend(
                    fault.map(|fault| format!("{}, {} as {form}: {fault}\n  {text}", self.name, case["id"])),
                );
                read += 1;
            }
        }
        println!("{read} texts with {}: {:?}", self.name, began.elapsed());
        faults
    }

    fn fault(&self, reading: &Reading<'_>, case: &Value, dice: &mut Dice) -> Option<String> {
        let calls = reading.whole.tool_calls.iter();
        let calls: Vec<_> =
            calls.map(|call| json!({ "name": call.name, "arguments": call.arguments })).collect();
        if self.wanted && Value::Array(calls.clone()) != case["expect"] {
            return Some(format!("the whole is {calls:?}"));
        }
        reading.check(dice).err()
    }
}

#[test]
fn every_prefix_of_a_call_is_a_beginning_of_it() {
    let (cases, real) = (cases(), real_templates());
    let all = std::env::var_os(ALL_VARIABLE).is_some();
    let round =
        |name, source| Round { name, source, cases: cases.iter().collect(), every_form: all, wanted: true };
    let mut rounds =
        vec![round("tags", CHATML_TOOLS), Round { every_form: true, ..round("described", CHATML) }];
    for (number, (name, source)) in real.iter().enumerate() {
        let step = if all { 1 } else { SHARE };
        let some = cases.iter().skip(number % step).step_by(step).collect();
        rounds.push(Round { cases: some, every_form: true, wanted: false, ..round(name, source) });
    }
    // Two at a time: the first two take longest.
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(round) = rounds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    faults.lock().unwrap().extend(round.faults());
                }
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    let mut told = BTreeMap::<&str, usize>::new();
    for fault in &faults {
        let count = told.entry(fault.split(',').next().unwrap_or_default()).or_default();
        *count += 1;
        if *count <= 3 {
            println!("{fault}");
        }
    }
    assert!(faults.is_empty(), "{} texts are not read right: {told:?}", faults.len());
}
