//! Prints a turn for people: the answer on standard output, everything else on standard error.
//!
//! Invariant: text of models, tools and notes never reaches the terminal with control characters in it.

use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};

use lectern_app::view::Price;
use lectern_core::{
    Event, EventKind, FinishReason, Progress, StepStats, Timestamp, ToolCall, ToolCallId, ToolName,
    ToolOutcome, ToolResult, TurnOutcome,
};

/// Characters of arguments and results that one line shows.
const SHOWN: usize = 160;

/// Prints the events of one turn.
pub struct Printer<O, E> {
    answer: O,
    aside: E,
    style: Style,
    /// Whether a line of progress stands there that the next line replaces.
    transient: bool,
    /// Whether the answer's last line is still open.
    open_line: bool,
    /// Only a load that takes its time is worth a line.
    loading_since: Option<Timestamp>,
    loading_said: bool,
    running: HashMap<ToolCallId, ToolName>,
    steps: Vec<StepStats>,
    /// Why the last reply ended.
    end: Option<FinishReason>,
    /// What the user says that the model costs.
    price: Option<Price>,
}

/// How the terminal may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Lines may be coloured.
    pub colour: bool,
    /// Lines may be overwritten.
    pub rewrite: bool,
}

impl Style {
    /// As standard error and the environment allow it.
    pub fn of_stderr() -> Self {
        let terminal = io::stderr().is_terminal();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Self { colour: terminal && !plain && !dumb, rewrite: terminal && !dumb }
    }
}

const DIM: &str = "2";
const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";

impl<O: Write, E: Write> Printer<O, E> {
    /// A printer for one turn.
    pub fn new(answer: O, aside: E, style: Style) -> Self {
        Self {
            answer,
            aside,
            style,
            transient: false,
            open_line: false,
            loading_since: None,
            loading_said: false,
            running: HashMap::new(),
            steps: Vec::new(),
            end: None,
            price: None,
        }
    }

    /// With what the model costs.
    pub fn priced(mut self, price: Option<Price>) -> Self {
        self.price = price;
        self
    }

    /// Prints what one event says. An error means that nobody reads any more.
    pub fn event(&mut self, event: &Event) -> io::Result<()> {
        match &event.kind {
            EventKind::ModelLoading { fraction } => self.loading(*fraction, event.at),
            EventKind::PromptProgress { done, total, .. } => self.prompt(*done, *total),
            EventKind::TextDelta { text } => self.text(text),
            EventKind::StepFinished { stats, finish, .. } => {
                self.steps.push(*stats);
                self.end = Some(*finish);
                self.close_line()
            }
            EventKind::ToolStarted { call } => self.started(call),
            EventKind::ToolProgress { call, progress } => self.progress(call, progress),
            EventKind::ToolFinished { result, .. } => self.finished(result),
            EventKind::SampleFinished { message, stats, .. } => {
                let model = message.model.as_ref().map_or("the model", |model| model.as_str());
                let (read, written) = (stats.usage.prompt_tokens, stats.usage.generated_tokens);
                self.line(DIM, &format!("← {model} wrote a reply for the server ({read} + {written} tokens)"))
            }
            EventKind::Retrying { after_ms, message, .. } => {
                let seconds = after_ms.div_ceil(1_000);
                self.line(YELLOW, &format!("! {}; again in {seconds} s", one_line(message, SHOWN)))
            }
            EventKind::Notice { message, .. } => {
                self.line(YELLOW, &format!("! {}", one_line(message, SHOWN)))
            }
            EventKind::TurnFinished { outcome } => self.outcome(outcome),
            EventKind::TurnStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolCallDelta { .. }
            | EventKind::PermissionRequested { .. }
            | EventKind::PermissionAnswered { .. }
            | EventKind::QuestionAsked { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::ToolWire { .. }
            | EventKind::ToolLog { .. } => Ok(()),
        }
    }

    /// One line beside the answer, in the colour of a warning.
    pub fn remark(&mut self, text: &str) -> io::Result<()> {
        self.line(YELLOW, text)
    }

    fn loading(&mut self, fraction: f32, at: Timestamp) -> io::Result<()> {
        let begin = *self.loading_since.get_or_insert(at);
        if at.duration_since(begin).as_millis() < 300 {
            return Ok(());
        }
        if self.style.rewrite {
            return self.passing(&format!("loading the model: {:.0} %", fraction * 100.0));
        }
        if std::mem::replace(&mut self.loading_said, true) {
            return Ok(());
        }
        self.line(DIM, "loading the model")
    }

    fn prompt(&mut self, done: u32, total: u32) -> io::Result<()> {
        if self.style.rewrite && done < total {
            return self.passing(&format!("reading: {done} of {total} tokens"));
        }
        self.clear()
    }

    fn text(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        let text = printable(text);
        if let Some(last) = text.chars().last() {
            self.open_line = last != '\n';
        }
        self.answer.write_all(text.as_bytes())?;
        self.answer.flush()
    }

    fn started(&mut self, call: &ToolCall) -> io::Result<()> {
        self.running.insert(call.id.clone(), call.tool.clone());
        self.line(DIM, &format!("→ {}", described(call)))
    }

    fn progress(&mut self, call: &ToolCallId, progress: &Progress) -> io::Result<()> {
        let tool = self.running.get(call).map_or("", |tool| tool.as_str());
        let total = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = progress.message.as_deref().map(|text| format!(": {}", one_line(text, SHOWN)));
        let line = format!("  {tool} {}{total}{}", progress.done, message.unwrap_or_default());
        if self.style.rewrite { self.passing(&line) } else { self.line(DIM, &line) }
    }

    fn finished(&mut self, result: &ToolResult) -> io::Result<()> {
        self.running.remove(&result.call);
        let text = one_line(&result.text(), SHOWN);
        let tool = one_line(result.tool.as_str(), SHOWN);
        match result.outcome {
            ToolOutcome::Succeeded => self.line(GREEN, &format!("✓ {tool}: {text}")),
            ToolOutcome::Failed => self.line(RED, &format!("✗ {tool} failed: {text}")),
            ToolOutcome::Denied => self.line(YELLOW, &format!("✗ {tool} was denied")),
            ToolOutcome::Cancelled => self.line(YELLOW, &format!("✗ {tool} was cancelled")),
        }
    }

    fn outcome(&mut self, outcome: &TurnOutcome) -> io::Result<()> {
        self.clear()?;
        self.close_line()?;
        match outcome {
            TurnOutcome::Completed => {
                self.way_out()?;
                self.line(DIM, &self.cost())
            }
            TurnOutcome::Cancelled => self.line(YELLOW, "cancelled"),
            TurnOutcome::StepLimit => {
                let said = format!("stopped after {} steps; --max-steps allows more", self.steps.len());
                self.line(RED, &said)
            }
            TurnOutcome::Failed { error } => {
                self.line(RED, &format!("error: {}", one_line(&error.message, 2_000)))?;
                match &error.hint {
                    Some(hint) => self.line("", &format!("hint: {}", one_line(hint, 2_000))),
                    None => Ok(()),
                }
            }
        }
    }

    /// What can be done about an answer that is not whole.
    fn way_out(&mut self) -> io::Result<()> {
        match self.end {
            Some(FinishReason::Length) => {
                self.line(YELLOW, "! the answer was cut at the limit of tokens")?;
                self.line("", "hint: ask it to go on, or allow more with --max-tokens")
            }
            // What was withheld, and why, was told when it happened.
            Some(FinishReason::Filtered) => {
                self.line("", "hint: ask in other words, or choose another model")
            }
            Some(
                FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled | FinishReason::Failed,
            )
            | None => Ok(()),
        }
    }

    /// E.g. `3 steps, 1,204 tokens read (82 % reused), 96 written, 1.4 s`.
    fn cost(&self) -> String {
        let sum = |of: fn(&StepStats) -> u32| self.steps.iter().map(of).map(u64::from).sum::<u64>();
        let prompt = sum(|stats| stats.usage.prompt_tokens);
        let reused = sum(|stats| stats.usage.reused_tokens);
        let written = sum(|stats| stats.usage.generated_tokens);
        let seconds = sum(|stats| stats.total_ms) as f64 / 1000.0;
        let steps = self.steps.len();
        let plural = if steps == 1 { "" } else { "s" };
        let share = (reused * 100).checked_div(prompt).unwrap_or(0);
        let thinking = sum(|stats| stats.usage.thinking_tokens.unwrap_or(0));
        let thinking = if thinking > 0 { format!(" ({thinking} thinking)") } else { String::new() };
        let money = self.price.as_ref().map(|price| {
            let amount: f64 = self.steps.iter().map(|stats| price.of(&stats.usage)).sum();
            format!(", {amount:.4} {}", one_line(&price.currency, 8))
        });
        format!(
            "{steps} step{plural}, {prompt} tokens read ({share} % reused), {written} written{thinking}, {seconds:.1} s{}",
            money.unwrap_or_default()
        )
    }

    fn close_line(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.open_line, false) {
            self.answer.write_all(b"\n")?;
            self.answer.flush()?;
        }
        Ok(())
    }

    fn line(&mut self, colour: &str, text: &str) -> io::Result<()> {
        self.clear()?;
        self.close_line()?;
        if self.style.colour && !colour.is_empty() {
            writeln!(self.aside, "\x1b[{colour}m{text}\x1b[0m")
        } else {
            writeln!(self.aside, "{text}")
        }
    }

    fn passing(&mut self, text: &str) -> io::Result<()> {
        // An answer that streams on the same terminal must not be overwritten.
        if self.open_line {
            return Ok(());
        }
        self.transient = true;
        write!(self.aside, "\r\x1b[K{}", one_line(text, 78))?;
        self.aside.flush()
    }

    fn clear(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.transient, false) {
            write!(self.aside, "\r\x1b[K")?;
            self.aside.flush()?;
        }
        Ok(())
    }
}

/// An error and its way out, on standard error.
pub fn complain(message: &str, hint: Option<&str>) {
    let mut err = io::stderr().lock();
    // There is nowhere else to tell it.
    let _ = writeln!(err, "error: {}", printable(message));
    if let Some(hint) = hint {
        let _ = writeln!(err, "hint: {}", printable(hint));
    }
}

/// A line beside the data, on standard error.
pub fn aside(line: &str) {
    // There is nowhere else to tell it.
    let _ = writeln!(io::stderr().lock(), "{}", printable(line));
}

/// A line of data on standard output. False when nobody reads any more.
pub fn data(line: &str) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}

/// A call on one line: its tool and its arguments.
pub fn described(call: &ToolCall) -> String {
    let arguments = match &call.malformed {
        Some(text) => text.clone(),
        None => serde_json::to_string(&call.arguments).unwrap_or_default(),
    };
    format!("{} {}", one_line(call.tool.as_str(), SHOWN), one_line(&arguments, SHOWN))
}

/// Text without anything that steers a terminal or turns the direction of writing; line breaks and tabs stay.
pub fn printable(text: &str) -> String {
    let steers = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if steers(c) { '\u{fffd}' } else { c }).collect()
}

/// Printable text on one line, cut after `limit` characters.
pub fn one_line(text: &str, limit: usize) -> String {
    let line = printable(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(limit) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use lectern_core::Content;
    use serde_json::json;

    use super::*;

    fn event(kind: serde_json::Value) -> Event {
        let mut value = json!({"conversation": "c", "turn": "t", "seq": 0, "at": "2026-11-20T22:30:00Z"});
        value.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        serde_json::from_value(value).unwrap()
    }

    fn printed(events: &[serde_json::Value], style: Style) -> (String, String) {
        let (mut answer, mut aside) = (Vec::new(), Vec::new());
        let mut printer = Printer::new(&mut answer, &mut aside, style);
        for kind in events {
            printer.event(&event(kind.clone())).unwrap();
        }
        (String::from_utf8(answer).unwrap(), String::from_utf8(aside).unwrap())
    }

    #[test]
    fn the_answer_alone_is_on_standard_output() {
        let call = json!({"id": "1", "tool": "notes__read_note", "arguments": {"path": "A.md"}});
        let text = Content::Text { text: "one\ntwo".to_owned() };
        let result =
            json!({"call": "1", "tool": "notes__read_note", "outcome": "succeeded", "content": [text]});
        let (answer, aside) = printed(
            &[
                json!({"kind": "tool_started", "call": call}),
                json!({"kind": "tool_progress", "call": "1", "progress": {"done": 1.0, "total": 4.0, "message": "x"}}),
                json!({"kind": "tool_finished", "message_id": "m", "result": result}),
                json!({"kind": "text_delta", "text": "It is "}),
                json!({"kind": "text_delta", "text": "two."}),
                json!({"kind": "turn_finished", "outcome": {"type": "cancelled"}}),
            ],
            Style::default(),
        );
        assert_eq!(answer, "It is two.\n");
        let lines = "→ notes__read_note {\"path\":\"A.md\"}\n  notes__read_note 1 of 4: x\n✓ notes__read_note: one two\ncancelled\n";
        assert_eq!(aside, lines);
    }

    #[test]
    fn nothing_a_model_writes_steers_the_terminal() {
        let hostile = "\u{1b}[2Jhi\r\u{9b}x\u{202e}y\n\tz";
        let (answer, _) = printed(&[json!({"kind": "text_delta", "text": hostile})], Style::default());
        assert_eq!(answer, "\u{fffd}[2Jhi\u{fffd}\u{fffd}x\u{fffd}y\n\tz");
        assert_eq!(one_line("a\n\n b\u{7}c", 3), "a b…");
    }
}
