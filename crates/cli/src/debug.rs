//! `lectern debug parse` and `lectern debug validate`: one JSON object for each line of standard input; `lectern debug
//! decode`: one for all of it.
//!
//! Invariant: a line that can't be read gives a line that says so; the next line is read all the same.

use std::io::{self, BufRead, Read};

use lectern_app::Home;
use lectern_app::debug::{Parser, RemoteProvider, TemplateSource, validate as check};
use lectern_app::view::Problem;
use serde_json::{Value, json};

use crate::args::{Decode, Parse, ProviderName};
use crate::exit::Exit;
use crate::output::data;

/// Lines of `{"schema": …, "arguments": …}` to `{"valid": …, "errors": […]}`.
pub async fn validate() -> Result<Exit, Problem> {
    each_line(async |value: &Value| {
        let part = |name: &str| value.get(name).ok_or_else(|| format!("the line has no `{name}`"));
        check(part("schema")?, part("arguments")?)
    })
    .await
}

/// A recorded answer of a remote model, as one line of JSON.
pub fn decode(asked: &Decode) -> Result<Exit, Problem> {
    let mut body = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut body);
    read.map_err(|error| Problem::new("no_input", format!("read standard input: {error}")))?;
    let provider = match asked.provider {
        ProviderName::Gemini => RemoteProvider::Gemini,
        ProviderName::Openai => RemoteProvider::Openai,
    };
    let chunk = asked.chunk.and_then(|chunk| usize::try_from(chunk).ok()).unwrap_or(0);
    data(&lectern_app::debug::decode(provider, &body, chunk).to_string());
    Ok(Exit::Done)
}

/// A message of the protocol that was cut in its event, as one line of JSON. Nothing is started.
pub fn message(home: &Home, id: &str) -> Result<Exit, Problem> {
    data(&lectern_app::debug::long_message(home, &id.into())?.to_string());
    Ok(Exit::Done)
}

/// Lines of `{"text": …}` to `{"content": …, "reasoning": …, "tool_calls": […]}`.
pub async fn parse(parse: &Parse) -> Result<Exit, Problem> {
    let source = match (&parse.template, &parse.model) {
        (Some(template), _) => TemplateSource::Template(template),
        (None, Some(model)) => TemplateSource::Model(model),
        (None, None) => return Err(Problem::new("bad_template", "name a template or a model")),
    };
    let mut parser = Parser::open(source, parse.tools.as_deref())?;
    each_line(async |value: &Value| {
        let text = value.get("text").and_then(Value::as_str).ok_or("the line has no `text`")?;
        parser.parse(text, parse.partial).await
    })
    .await
}

async fn each_line(mut answer: impl AsyncFnMut(&Value) -> Result<Value, String>) -> Result<Exit, Problem> {
    for line in io::stdin().lock().split(b'\n') {
        let line = line.map_err(|error| Problem::new("no_input", format!("read standard input: {error}")))?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let read: Result<Value, String> =
            serde_json::from_slice(&line).map_err(|error| format!("the line is not JSON: {error}"));
        let answered = match read {
            Ok(value) => answer(&value).await,
            Err(error) => Err(error),
        };
        let out = answered.unwrap_or_else(|error| json!({ "error": error }));
        if !data(&out.to_string()) {
            break;
        }
    }
    Ok(Exit::Done)
}
