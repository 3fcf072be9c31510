//! How a model writes, as flags: each is one setting of this run.
//!
//! Invariant: no ranges here; the engine checks and says what is wrong.

use std::path::{Path, PathBuf};

use clap::Args;
use lectern_app::Engine;
use lectern_app::generation::{Entry, check};
use lectern_app::view::{GenerationView, Problem, SettingKey, SettingOrigin, SettingView};
use lectern_core::ModelId;
use serde_json::{Value, json};

use crate::output::{aside, data, one_line};

/// How the model writes in this run.
#[derive(Clone, Debug, Args, Default)]
#[command(next_help_heading = "How the model writes")]
pub struct Generation {
    /// Values of several settings under a name: precise, balanced, creative, or one of yours
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// 0 always takes the likeliest token
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub temperature: Option<f64>,
    /// The likeliest tokens that together have this share, 0 to 1
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub top_p: Option<f64>,
    /// The k likeliest tokens; 0 does not cut
    #[arg(long, value_name = "N")]
    pub top_k: Option<u32>,
    /// Tokens with at least this share of the likeliest one's, 0 to 1
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub min_p: Option<f64>,
    /// Above 1, words that were written become unlikelier
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub repeat_penalty: Option<f64>,
    /// Subtracted for each time that a word was written, -2 to 2
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub frequency_penalty: Option<f64>,
    /// Subtracted once when a word was written, -2 to 2
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    pub presence_penalty: Option<f64>,
    /// The same seed gives the same answer
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,
    /// Tokens in one step at most
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u32>,
    /// A text that ends the reply; can be given more than once
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Whether the model thinks before it answers
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub thinking: Option<bool>,
    /// Tokens of thinking at most
    #[arg(long, value_name = "N")]
    pub thinking_budget: Option<u32>,
    /// Tokens of context
    #[arg(long, value_name = "N")]
    pub context: Option<u32>,
    /// When the model gets to see tools: always, deciding, last-user, relevant, relevant=K or off
    #[arg(long, value_name = "WHEN")]
    pub tools: Option<String>,
    /// Ask the model first whether it needs a tool
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub gate: Option<bool>,
    /// A tool that is always shown in full; can be given more than once
    #[arg(long, value_name = "TOOL")]
    pub pin: Vec<String>,
    /// A JSON Schema that the answer fits
    #[arg(long, value_name = "FILE", conflicts_with = "grammar")]
    pub json_schema: Option<PathBuf>,
    /// A grammar (GBNF) that the answer fits
    #[arg(long, value_name = "FILE")]
    pub grammar: Option<PathBuf>,
    /// Instructions in place of Lectern's own
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Any other setting, as `lectern models set` takes them; can be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl Generation {
    /// The settings that were typed.
    pub fn entry(&self) -> Result<Entry, Problem> {
        let mut entry = pairs(&self.set)?;
        let mut put = |key: SettingKey, value: Option<Value>| {
            if let Some(value) = value {
                entry.insert(key.name(), value);
            }
        };
        put(SettingKey::Preset, self.preset.as_ref().map(|name| json!(name)));
        put(SettingKey::Temperature, self.temperature.map(Value::from));
        put(SettingKey::TopP, self.top_p.map(Value::from));
        put(SettingKey::TopK, self.top_k.map(Value::from));
        put(SettingKey::MinP, self.min_p.map(Value::from));
        put(SettingKey::RepeatPenalty, self.repeat_penalty.map(Value::from));
        put(SettingKey::FrequencyPenalty, self.frequency_penalty.map(Value::from));
        put(SettingKey::PresencePenalty, self.presence_penalty.map(Value::from));
        put(SettingKey::Seed, self.seed.map(Value::from));
        put(SettingKey::MaxTokens, self.max_tokens.map(Value::from));
        put(SettingKey::Stop, (!self.stop.is_empty()).then(|| json!(self.stop)));
        put(SettingKey::Thinking, self.thinking.map(Value::from));
        put(SettingKey::ThinkingBudget, self.thinking_budget.map(Value::from));
        put(SettingKey::ContextLength, self.context.map(Value::from));
        put(SettingKey::Gate, self.gate.map(Value::from));
        put(SettingKey::PinnedTools, (!self.pin.is_empty()).then(|| json!(self.pin)));
        put(SettingKey::System, self.system.as_ref().map(|text| json!(text)));
        put(SettingKey::JsonSchema, self.json_schema.as_deref().map(json_file).transpose()?);
        put(SettingKey::Grammar, self.grammar.as_deref().map(text_file).transpose()?.map(Value::String));
        let (tools, relevant) = match self.tools.as_deref().and_then(|tools| tools.split_once('=')) {
            Some((tools, count)) => {
                (Some(json!(tools)), Some(check::typed(SettingKey::RelevantTools, count)))
            }
            None => (self.tools.as_ref().map(|tools| json!(tools)), None),
        };
        put(SettingKey::Tools, tools);
        put(SettingKey::RelevantTools, relevant);
        Ok(entry)
    }
}

/// `key=value` pairs. An empty value is null, which unsets.
pub fn pairs(typed: &[String]) -> Result<Entry, Problem> {
    let mut entry = Entry::new();
    for pair in typed {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| Problem::new("bad_setting", format!("`{pair}` is not of the form key=value")))?;
        let key = SettingKey::named(name).ok_or_else(|| check::unknown(name))?;
        let value = if value.is_empty() { Value::Null } else { typed_value(key, value)? };
        entry.insert(key.name(), value);
    }
    Ok(entry)
}

/// A value that was typed. Long texts may stand in a file, `@FILE`: none of them begins like that. The path of a
/// template's file is no template, so it is taken as the file.
fn typed_value(key: SettingKey, text: &str) -> Result<Value, Problem> {
    let from_file = matches!(key, SettingKey::Template | SettingKey::Grammar | SettingKey::JsonSchema);
    let named = text.strip_prefix('@').filter(|_| from_file).map(Path::new);
    let path = named.or_else(|| {
        let path = Path::new(text);
        (key == SettingKey::Template && !check::is_template(text) && path.is_file()).then_some(path)
    });
    match path {
        Some(path) if key == SettingKey::Template => template_file(path).map(Value::String),
        Some(path) => Ok(check::typed(key, &text_file(path)?)),
        None => Ok(check::typed(key, text)),
    }
}

/// A template's file: its text, or what stands in the `tokenizer_config.json` of a repository.
fn template_file(path: &Path) -> Result<String, Problem> {
    let text = text_file(path)?;
    let config = serde_json::from_str::<Value>(&text).ok();
    let within = config.and_then(|config| Some(config.get("chat_template")?.as_str()?.to_owned()));
    let text = within.unwrap_or(text);
    if check::is_template(&text) {
        return Ok(text);
    }
    let said = format!("{} holds no chat template (Jinja): there is no {{{{ or {{% in it", path.display());
    Err(Problem::new("bad_setting", said))
}

fn text_file(path: &Path) -> Result<String, Problem> {
    std::fs::read_to_string(path)
        .map_err(|error| Problem::new("bad_file", format!("read {}: {error}", path.display())))
}

fn json_file(path: &Path) -> Result<Value, Problem> {
    serde_json::from_str(&text_file(path)?)
        .map_err(|error| Problem::new("bad_file", format!("{} is not JSON: {error}", path.display())))
}

/// Changes how a model writes, and shows it.
pub async fn set(engine: &Engine, id: &ModelId, typed: &[String], as_json: bool) -> Result<bool, Problem> {
    let view = engine.set_model_generation(id, &pairs(typed)?).await?;
    if as_json { json_line(&view) } else { Ok(lines(&view, |setting| setting.set_here)) }
}

/// Forgets all that was set for a model, and shows what holds now.
pub fn reset(engine: &Engine, id: &ModelId, as_json: bool) -> Result<bool, Problem> {
    let view = engine.reset_model_generation(id)?;
    if as_json { json_line(&view) } else { Ok(lines(&view, |_| true)) }
}

fn json_line(view: &GenerationView) -> Result<bool, Problem> {
    let text = serde_json::to_string(view).map_err(|error| Problem::new("defect", error.to_string()))?;
    Ok(data(&text))
}

/// Shows how a model writes.
pub fn show(engine: &Engine, id: &ModelId, as_json: bool) -> Result<bool, Problem> {
    let view = engine.generation(Some(id), None)?;
    if as_json {
        return json_line(&view);
    }
    for problem in &view.problems {
        aside(&format!("! {}", problem.message));
    }
    Ok(lines(&view, |_| true))
}

fn lines(view: &GenerationView, shown: impl Fn(&SettingView) -> bool) -> bool {
    view.settings.iter().filter(|setting| shown(setting)).all(|setting| {
        let value = match &setting.value {
            Value::Null => "-".to_owned(),
            Value::String(text) => one_line(text, 60),
            other => one_line(&other.to_string(), 60),
        };
        data(&format!("{:<18} {value:<24} {}", setting.key.name(), origin(&setting.origin)))
    })
}

fn origin(origin: &SettingOrigin) -> String {
    match origin {
        SettingOrigin::Usual => "usual".to_owned(),
        SettingOrigin::File => "the model's file".to_owned(),
        SettingOrigin::ModelPreset { name } => format!("preset {}", one_line(name, 60)),
        SettingOrigin::Model => "set for the model".to_owned(),
        SettingOrigin::ConversationPreset { name } => {
            format!("preset {} of the conversation", one_line(name, 60))
        }
        SettingOrigin::Conversation => "set for the conversation".to_owned(),
        SettingOrigin::Run => "this run".to_owned(),
    }
}
