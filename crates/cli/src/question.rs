//! Answers the questions of servers: asks the person at the terminal, or does as it was told.
//!
//! Invariant: without a person nothing is accepted but what `--elicitation` allows; no address is ever opened here.

use std::io;

use futures::future::{BoxFuture, FutureExt};
use lectern_core::form::{self, FieldKind, FormChoice, FormField};
use lectern_core::{
    Asker, AssistantMessage, FinishReason, JsonObject, Message, Part, Question, QuestionAnswer,
    SampleRequest, ServerId,
};
use rustyline::config::{Behavior, Config};
use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use serde_json::{Number, Value};
use tokio_util::sync::CancellationToken;

use crate::output::{one_line, printable};
use crate::permit;

/// What is done about questions when nobody is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Elicitation {
    /// Answer forms with their defaults, if these are enough
    AcceptDefaults,
    /// Decline every question
    Decline,
}

/// Who answers servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answerer {
    /// Somebody at the terminal.
    Person,
    /// Nobody; the defaults of a form count as an answer.
    Defaults,
    /// Nobody.
    Nobody,
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The answer, and a remark about it when nobody was asked.
    Answer(QuestionAnswer, Option<String>),
    /// The person wants the whole turn to end.
    Stop,
}

impl Answerer {
    /// As it was told, else a person, if there is one.
    pub fn of(told: Option<Elicitation>) -> Self {
        match told {
            Some(Elicitation::AcceptDefaults) => Self::Defaults,
            Some(Elicitation::Decline) => Self::Nobody,
            None if permit::Asker::at_terminal() == permit::Asker::Person => Self::Person,
            None => Self::Nobody,
        }
    }

    /// Answers one question.
    pub async fn answer(self, server: &ServerId, question: &Question) -> Answered {
        match self {
            Self::Person => {
                let (server, question) = (server.clone(), question.clone());
                let asked = tokio::task::spawn_blocking(move || ask_person(&server, &question)).await;
                asked.unwrap_or(Answered::Answer(QuestionAnswer::Cancelled, None))
            }
            Self::Defaults => with_defaults(server, question),
            Self::Nobody => declined(server, "nobody to ask; --elicitation accept-defaults answers forms"),
        }
    }
}

/// Questions outside of a turn.
impl Asker for Answerer {
    fn ask(
        &self,
        server: ServerId,
        question: Question,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, lectern_core::Reply> {
        let answerer = *self;
        async move {
            let answered = tokio::select! {
                answered = answerer.answer(&server, &question) => answered,
                () = cancel.cancelled() => Answered::Stop,
            };
            lectern_core::Reply::Answer(match (&question, answered) {
                // There is no turn whose model could answer.
                (Question::Sampling { .. } | Question::SamplingReply { .. }, _) => QuestionAnswer::Declined,
                (_, Answered::Answer(answer, _)) => answer,
                (_, Answered::Stop) => QuestionAnswer::Cancelled,
            })
        }
        .boxed()
    }
}

fn declined(server: &ServerId, why: &str) -> Answered {
    let remark = format!("! a question of {server} was declined: {why}");
    Answered::Answer(QuestionAnswer::Declined, Some(remark))
}

fn with_defaults(server: &ServerId, question: &Question) -> Answered {
    match question {
        Question::Form { fields, .. } => match form::without_default(fields).next() {
            None => {
                let content = Some(form::defaults(fields));
                Answered::Answer(QuestionAnswer::Accepted { content }, None)
            }
            Some(field) => declined(server, &format!("`{}` has no default", field.name)),
        },
        Question::Url { url, .. } => declined(server, &format!("nobody to visit {url}")),
        Question::Sampling { .. } => declined(server, "nobody to allow the use of the model"),
        Question::SamplingReply { .. } => declined(server, "nobody to look at the model's reply"),
    }
}

/// The questions, one after the other, on a thread of their own.
fn ask_person(server: &ServerId, question: &Question) -> Answered {
    let mut terminal = match Terminal::open() {
        Ok(terminal) => terminal,
        Err(_) => return Answered::Answer(QuestionAnswer::Cancelled, None),
    };
    let answer = match question {
        Question::Form { message, fields, .. } => terminal.form(server, message, fields),
        Question::Url { message, url, .. } => terminal.agrees(&visit(server, message, url)),
        Question::Sampling { request, model } => {
            let model = model.as_ref().map_or("the model", |model| model.as_str());
            terminal.agrees(&sampling(server, request, model))
        }
        Question::SamplingReply { message, model, finish } => {
            terminal.agrees(&reply(server, message, model.as_str(), *finish))
        }
    };
    match answer {
        Ok(answer) => Answered::Answer(answer, None),
        Err(ReadlineError::Interrupted) => Answered::Stop,
        Err(_) => Answered::Answer(QuestionAnswer::Cancelled, None),
    }
}

/// The whole address, with its host set apart: that is what a person has to judge.
fn visit(server: &ServerId, message: &str, url: &str) -> String {
    let host = host_of(url);
    let mut text =
        format!("{server} asks: {}\nOpen this address yourself:\n  {}\n", printable(message), printable(url));
    text.push_str(&format!("It leads to: {}\n", printable(host)));
    if host.split('.').any(|label| label.starts_with("xn--")) || !host.is_ascii() {
        text.push_str("! This name has letters that may only look like others.\n");
    }
    if host.contains('@') {
        text.push_str("! What stands before the @ is no part of the host.\n");
    }
    text.push_str("Will you visit it? [y]es, [n]o: ");
    text
}

fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

fn sampling(server: &ServerId, request: &SampleRequest, model: &str) -> String {
    let mut text = format!("{server} wants to ask {model}");
    if let Some(tokens) = request.sampling.max_tokens {
        text.push_str(&format!(" (at most {tokens} tokens of answer)"));
    }
    text.push_str(":\n");
    if let Some(system) = &request.system {
        text.push_str(&format!("  [system] {}\n", one_line(system, 400)));
    }
    for message in &request.messages {
        let (who, said) = match message {
            Message::User(user) => ("user", lectern_core::message::text_of(&user.parts)),
            Message::Assistant(assistant) => ("assistant", assistant.text()),
            Message::Tool(result) => ("tool", result.text()),
        };
        text.push_str(&format!("  [{who}] {}\n", one_line(&said, 400)));
    }
    text.push_str("May it? [y]es, [n]o: ");
    text
}

/// The whole of what would leave: a part that is not shown can't be judged.
fn reply(server: &ServerId, message: &AssistantMessage, model: &str, finish: FinishReason) -> String {
    let cut = match finish {
        FinishReason::Length => ", cut at the limit of tokens",
        FinishReason::Filtered => ", cut by a filter",
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Cancelled | FinishReason::Failed => "",
    };
    let mut text = format!("{model} answers {server}{cut}:\n");
    for part in &message.parts {
        match part {
            Part::Text { text: said } => {
                said.lines().for_each(|line| text.push_str(&format!("  {}\n", printable(line))));
            }
            Part::ToolCall(call) => {
                let arguments = Value::Object(call.arguments.clone()).to_string();
                text.push_str(&format!(
                    "  [calls {}] {}\n",
                    printable(call.tool.as_str()),
                    printable(&arguments)
                ));
            }
            Part::Image(blob) => text.push_str(&format!("  [{}]\n", printable(&blob.mime))),
            // These are not sent to a server.
            Part::Thinking(_) | Part::Resource(_) => {}
        }
    }
    text.push_str(&format!("Send it to {server}? [y]es, [n]o: "));
    text
}

struct Terminal(rustyline::Editor<(), MemHistory>);

impl Terminal {
    fn open() -> rustyline::Result<Self> {
        // The question is no part of the answer on standard output.
        let config = Config::builder().behavior(Behavior::PreferTerm).build();
        rustyline::Editor::with_history(config, MemHistory::new()).map(Self)
    }

    fn yes(&mut self, prompt: &str) -> rustyline::Result<bool> {
        loop {
            match self.0.readline(prompt)?.trim().to_lowercase().as_str() {
                "y" | "yes" => return Ok(true),
                "n" | "no" => return Ok(false),
                _ => {}
            }
        }
    }

    fn agrees(&mut self, prompt: &str) -> rustyline::Result<QuestionAnswer> {
        let yes = self.yes(prompt)?;
        Ok(if yes { QuestionAnswer::Accepted { content: None } } else { QuestionAnswer::Declined })
    }

    fn form(
        &mut self,
        server: &ServerId,
        message: &str,
        fields: &[FormField],
    ) -> rustyline::Result<QuestionAnswer> {
        let asked = format!("{server} asks: {}\n", printable(message));
        if !self.yes(&format!("{asked}Answer? [y]es, [n]o: "))? {
            return Ok(QuestionAnswer::Declined);
        }
        let mut content = JsonObject::new();
        for field in fields {
            if let Some(value) = self.field(field)? {
                content.insert(field.name.clone(), value);
            }
        }
        Ok(QuestionAnswer::Accepted { content: Some(content) })
    }

    /// One field, until what is typed fits. Nothing typed is the default, or nothing.
    fn field(&mut self, field: &FormField) -> rustyline::Result<Option<Value>> {
        let prompt = prompt(field);
        loop {
            let line = self.0.readline(&prompt)?;
            match read(field, &line) {
                Ok(value) => return Ok(value),
                Err(why) => {
                    use io::Write;
                    let _ = writeln!(io::stderr(), "! {}", printable(&why));
                }
            }
        }
    }
}

fn prompt(field: &FormField) -> String {
    let mut text = printable(field.label());
    if let Some(description) = &field.description {
        text.push_str(&format!(" ({})", one_line(description, 200)));
    }
    let options = |options: &[FormChoice]| {
        let numbered = (1..).zip(options);
        let lines: Vec<String> =
            numbered.map(|(n, option)| format!("\n  {n}  {}", one_line(&option.title, 100))).collect();
        lines.concat()
    };
    match &field.kind {
        FieldKind::Text { format: Some(format), .. } => {
            text.push_str(&format!(" [{}]", one_line(format, 20)))
        }
        FieldKind::Text { format: None, .. } => {}
        FieldKind::Number { integer: true, .. } => text.push_str(" [whole number]"),
        FieldKind::Number { integer: false, .. } => text.push_str(" [number]"),
        FieldKind::Toggle => text.push_str(" [y/n]"),
        FieldKind::Choice { options: all } => text.push_str(&format!("{}\n number", options(all))),
        FieldKind::Choices { options: all, .. } => {
            text.push_str(&format!("{}\n numbers, with commas", options(all)));
        }
    }
    match (&field.default, field.required) {
        (Some(default), _) => text.push_str(&format!(" (default: {})", one_line(&default.to_string(), 80))),
        (None, true) => text.push_str(" (required)"),
        (None, false) => text.push_str(" (optional)"),
    }
    text.push_str(": ");
    text
}

/// What a line means in a field; nothing when it is left out.
fn read(field: &FormField, line: &str) -> Result<Option<Value>, String> {
    let typed = line.trim();
    if typed.is_empty() {
        return match (&field.default, field.required) {
            (Some(default), _) => Ok(Some(default.clone())),
            (None, false) => Ok(None),
            (None, true) => Err("this one is required".to_owned()),
        };
    }
    let value = match &field.kind {
        FieldKind::Text { .. } => Value::String(typed.to_owned()),
        FieldKind::Number { .. } => Value::Number(typed.parse::<Number>().map_err(|_| "that is no number")?),
        FieldKind::Toggle => match typed.to_lowercase().as_str() {
            "y" | "yes" | "true" => Value::Bool(true),
            "n" | "no" | "false" => Value::Bool(false),
            _ => return Err("y or n".to_owned()),
        },
        FieldKind::Choice { options } => Value::String(choice(options, typed)?),
        FieldKind::Choices { options, .. } => {
            let chosen = typed.split(',').map(|one| choice(options, one.trim()).map(Value::String));
            Value::Array(chosen.collect::<Result<_, _>>()?)
        }
    };
    match field.faults(&value).into_iter().next() {
        None => Ok(Some(value)),
        Some(fault) => Err(format!("expected {}", fault.expected)),
    }
}

/// A choice by its number, its value or its title.
fn choice(options: &[FormChoice], typed: &str) -> Result<String, String> {
    let by_number = typed.parse::<usize>().ok().and_then(|n| options.get(n.checked_sub(1)?));
    let by_name = || options.iter().find(|option| option.value == typed || option.title == typed);
    let found = by_name().or(by_number);
    found.map(|option| option.value.clone()).ok_or_else(|| format!("`{typed}` is none of the choices"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields() -> Vec<FormField> {
        form::read(&json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "default": 30},
            "sure": {"type": "boolean"},
            "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
            "days": {"type": "array", "items": {"type": "string", "enum": ["mon", "tue", "wed"]}}
        }}))
        .unwrap()
    }

    #[test]
    fn what_is_typed_becomes_a_value_or_a_reason() {
        let fields = fields();
        assert_eq!(read(&fields[0], " Ada "), Ok(Some(json!("Ada"))));
        assert!(read(&fields[0], "A").is_err() && read(&fields[0], "").is_err());
        assert_eq!(read(&fields[1], ""), Ok(Some(json!(30))));
        assert!(read(&fields[1], "1.5").is_err() && read(&fields[1], "x").is_err());
        assert_eq!((read(&fields[2], "Y"), read(&fields[2], "")), (Ok(Some(json!(true))), Ok(None)));
        assert_eq!(read(&fields[3], "2"), Ok(Some(json!("l"))));
        assert_eq!(read(&fields[3], "Small"), Ok(Some(json!("s"))));
        assert!(read(&fields[3], "0").is_err() && read(&fields[3], "3").is_err());
        assert_eq!(read(&fields[4], "1, wed"), Ok(Some(json!(["mon", "wed"]))));
    }

    #[test]
    fn defaults_are_accepted_only_when_they_are_enough() {
        let server = ServerId::from("s");
        let form = |fields: Vec<FormField>| Question::Form { message: "?".into(), fields, schema: json!({}) };
        let Answered::Answer(QuestionAnswer::Declined, Some(remark)) =
            with_defaults(&server, &form(fields()))
        else {
            panic!("accepted without a name")
        };
        assert!(remark.contains("`name`"), "{remark}");
        let accepted = with_defaults(&server, &form(fields().split_off(1)));
        let Answered::Answer(QuestionAnswer::Accepted { content: Some(content) }, None) = accepted else {
            panic!("{accepted:?}")
        };
        assert_eq!(Value::Object(content), json!({"age": 30}));
        let url = Question::Url { message: "?".into(), url: "https://a.b".into(), elicitation_id: None };
        assert!(matches!(with_defaults(&server, &url), Answered::Answer(QuestionAnswer::Declined, Some(_))));
    }

    #[test]
    fn an_address_is_shown_whole_with_its_host() {
        let text = visit(&"s".into(), "Sign in", "https://xn--pple-43d.com/a?b=c\u{1b}[2J");
        assert!(
            text.contains("https://xn--pple-43d.com/a?b=c") && text.contains("leads to: xn--pple-43d.com")
        );
        assert!(text.contains("look like others") && !text.contains('\u{1b}'));
    }
}
