//! Questions about a file or a template that need llama.cpp's chat formats, asked in a worker.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::child::{Child, WorkerCommand};
use crate::gguf::{FileFault, ModelFileError, ModelFileInfo, read_info};
use crate::names::Writing;
use crate::parse::{ParseError, ParsedText};
use crate::protocol::{Event, Parse, Request, TemplateSource};

/// How a model takes tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSupport {
    /// Its template knows them.
    Native,
    /// They are described in the instructions.
    Prompted,
}

/// What is known about a model file without loading it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// What the file says of itself.
    #[serde(flatten)]
    pub info: ModelFileInfo,
    /// How the model takes tools.
    pub tools: ToolSupport,
    /// Whether one message may hold several calls.
    pub parallel_calls: bool,
    /// Whether the template knows reasoning.
    pub thinking: bool,
    /// Why the template cannot be used, when it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_error: Option<String>,
    /// How calls in the template's own form write their arguments.
    #[serde(skip)]
    pub(crate) writing: Writing,
}

/// Looks at a model file: header first, then its template, in a worker.
pub async fn inspect(path: &Path, command: &WorkerCommand) -> Result<Inspection, ModelFileError> {
    inspect_with(path, None, command).await.map(|(inspection, _)| inspection)
}

/// The same, with another template than the file's; the worker may be used on.
pub(crate) async fn inspect_with(
    path: &Path,
    template: Option<&str>,
    command: &WorkerCommand,
) -> Result<(Inspection, Child), ModelFileError> {
    let fault = |fault: FileFault| ModelFileError::new(path, fault);
    let owned = path.to_owned();
    let info = tokio::task::spawn_blocking(move || read_info(&owned))
        .await
        .map_err(|error| fault(FileFault::Refused(error.to_string())))??;
    let start = || Child::start(command).map_err(|error| fault(FileFault::Io(error)));
    let mut child = start()?;
    let template = template.map(str::to_owned).or_else(|| info.template.clone());
    let mut out = Inspection {
        info,
        tools: ToolSupport::Prompted,
        parallel_calls: false,
        thinking: false,
        template_error: None,
        writing: Writing::Json,
    };
    let Some(template) = template else { return Ok((out, child)) };
    loop {
        let job = child.next_job();
        let template = TemplateSource::Text(template.clone());
        child.send(&Request::Describe { job, template }).await;
        match child.event_of(job).await {
            Some(Event::Described { tools, parallel, thinking, writing, .. }) => {
                out.tools = if tools { ToolSupport::Native } else { ToolSupport::Prompted };
                (out.parallel_calls, out.thinking, out.writing) = (parallel, thinking, writing);
            }
            Some(Event::Failed { error, .. }) => out.template_error = Some(error.to_string()),
            Some(_) => {}
            None => {
                let death = child.autopsy().await;
                child = start()?;
                if death.unfit.is_some() {
                    continue;
                }
                out.template_error = Some(format!("it crashes llama.cpp ({})", death.status));
            }
        }
        return Ok((out, child));
    }
}

/// A template that is tried has ended long before, unless it never ends.
const LONGEST_TRIAL: Duration = Duration::from_secs(30);

/// Why a chat template cannot be used, as a fragment that goes on behind "the template".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// The worker could not be started.
    #[error("cannot be tried: {0}")]
    NotTried(String),
    /// It is no template, or refuses a plain chat.
    #[error("does not render a plain chat: {0}")]
    Refused(String),
    /// What the user says is not in the prompt.
    #[error("leaves out what the user says")]
    Deaf,
    /// llama.cpp died of it.
    #[error("crashes llama.cpp ({0})")]
    Crash(String),
    /// It did not end.
    #[error("does not come to an end")]
    Endless,
}

/// Renders a plain chat with a template once, in a worker.
pub async fn try_template(template: &str, command: &WorkerCommand) -> Result<(), TemplateFault> {
    command.retried(|| tried(template, command)).await
}

async fn tried(template: &str, command: &WorkerCommand) -> Result<(), TemplateFault> {
    let mut child = Child::start(command).map_err(|error| TemplateFault::NotTried(error.to_string()))?;
    let job = child.next_job();
    let template = TemplateSource::Text(template.to_owned());
    child.send(&Request::Describe { job, template }).await;
    let Ok(event) = tokio::time::timeout(LONGEST_TRIAL, child.event_of(job)).await else {
        child.kill().await;
        return Err(TemplateFault::Endless);
    };
    match event {
        Some(Event::Described { says: true, .. }) => Ok(()),
        Some(Event::Described { says: false, .. }) => Err(TemplateFault::Deaf),
        Some(Event::Failed { error, .. }) => Err(TemplateFault::Refused(error.to_string())),
        Some(other) => Err(TemplateFault::NotTried(format!("the worker answered {other:?}"))),
        None => Err(TemplateFault::Crash(child.autopsy().await.status)),
    }
}

/// Parses texts as replies of a model, in a worker: a text that crashes the parser costs one answer.
pub struct TextParser {
    command: WorkerCommand,
    template: String,
    tools: Vec<Value>,
    child: Option<Child>,
}

impl TextParser {
    /// A parser for a template, and tools in OpenAI's shape.
    pub fn new(command: WorkerCommand, template: String, tools: Vec<Value>) -> Self {
        Self { command, template, tools, child: None }
    }

    /// Parses a text; with `partial` it is the beginning of a reply.
    pub async fn parse(&mut self, text: &str, partial: bool) -> Result<ParsedText, ParseError> {
        let mut child = match self.child.take() {
            Some(child) => child,
            None => {
                Child::start(&self.command).map_err(|error| ParseError(format!("start a worker: {error}")))?
            }
        };
        let job = child.next_job();
        child
            .send(&Request::Parse(Box::new(Parse {
                job,
                template: TemplateSource::Text(self.template.clone()),
                tools: self.tools.clone(),
                text: text.to_owned(),
                partial,
            })))
            .await;
        let result = match child.event_of(job).await {
            Some(Event::Parsed { message, .. }) => Ok(message),
            Some(Event::Failed { error, .. }) => Err(ParseError(error.to_string())),
            Some(_) => Err(ParseError("the worker answered something else".to_owned())),
            None => {
                let death = child.autopsy().await;
                return Err(ParseError(format!("the parser crashed ({})", death.status)));
            }
        };
        self.child = Some(child);
        result
    }
}
