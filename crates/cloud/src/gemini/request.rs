//! From a request of the core to the body of `streamGenerateContent`.
//!
//! Invariant: pure. What the user did not set is not sent; a tool whose schema can't be brought to the provider costs
//! itself, not the others, and every loss is told.

use lectern_core::{
    AnswerForm, ChatRequest, Sampling, ThinkingOptions, ToolChoice, ToolMode, ToolSpec, validate,
};
use serde_json::{Map, Value, json};

use super::contents::{self, contents};
use super::schema::reduce;
use super::{GeminiOptions, Thinks};
use crate::fault::{Fault, FaultKind};
use crate::names::{Alphabet, Names};

/// How tools' schemas are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `parametersJsonSchema`: as they are.
    JsonSchema,
    /// `parameters`: the subset that every endpoint knows.
    Subset,
}

/// What of a tool could not be sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Loss {
    /// These keywords of its schema.
    Keywords {
        /// The tool.
        tool: String,
        /// Each once.
        keywords: Vec<String>,
    },
    /// The whole tool.
    Tool {
        /// The tool.
        tool: String,
        /// Why.
        why: String,
    },
}

/// A body, and what was lost on the way to it.
pub(super) struct Prepared {
    pub body: Value,
    pub names: Names,
    pub losses: Vec<Loss>,
}

pub(super) struct Asked<'a> {
    pub model: &'a str,
    pub options: &'a GeminiOptions,
    pub dialect: Dialect,
    pub thinks: Thinks,
}

pub(super) fn prepare(request: &ChatRequest, asked: &Asked<'_>) -> Result<Prepared, Fault> {
    let names = Names::new(Alphabet::Gemini, &request.tools, &request.messages);
    let reader = contents::Reader { model: asked.model, names: &names, signs: asked.thinks.signs() };
    let mut body = Map::new();
    body.insert("contents".to_owned(), Value::Array(contents(request, reader)));
    if let Some(system) = request.system.as_deref().filter(|system| !system.trim().is_empty()) {
        body.insert("systemInstruction".to_owned(), json!({ "parts": [{ "text": system }] }));
    }
    let mut losses = Vec::new();
    let declarations = match request.tool_mode {
        ToolMode::Off => Vec::new(),
        ToolMode::Native | ToolMode::Prompted => declare(&request.tools, &names, asked.dialect, &mut losses),
    };
    if !declarations.is_empty() {
        if let Some(config) = choice(&request.tool_choice, &names) {
            body.insert("toolConfig".to_owned(), json!({ "functionCallingConfig": config }));
        }
        body.insert("tools".to_owned(), json!([{ "functionDeclarations": declarations }]));
    }
    let generation = generation(request, asked)?;
    if !generation.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(generation));
    }
    if !asked.options.safety.is_empty() {
        let one =
            |(category, threshold): (&String, &String)| json!({"category": category, "threshold": threshold});
        body.insert("safetySettings".to_owned(), asked.options.safety.iter().map(one).collect());
    }
    Ok(Prepared { body: Value::Object(body), names, losses })
}

fn declare(tools: &[ToolSpec], names: &Names, dialect: Dialect, losses: &mut Vec<Loss>) -> Vec<Value> {
    let mut out = Vec::new();
    for spec in tools {
        let tool = spec.name.as_str().to_owned();
        let mut declaration = json!({ "name": names.alias(&spec.name), "description": spec.description });
        match dialect {
            Dialect::JsonSchema => match whole_schema(&spec.input_schema) {
                Ok(Some(schema)) => declaration["parametersJsonSchema"] = schema,
                Ok(None) => {}
                Err(why) => {
                    losses.push(Loss::Tool { tool, why });
                    continue;
                }
            },
            Dialect::Subset => match reduce(&spec.input_schema) {
                Ok(reduced) => {
                    if let Some(schema) = reduced.schema {
                        declaration["parameters"] = schema;
                    }
                    if !reduced.lost.is_empty() {
                        losses.push(Loss::Keywords { tool, keywords: reduced.lost });
                    }
                }
                Err(why) => {
                    losses.push(Loss::Tool { tool, why: why.to_string() });
                    continue;
                }
            },
        }
        out.push(declaration);
    }
    out
}

/// The schema as it is, if a provider can take it at all.
fn whole_schema(schema: &Value) -> Result<Option<Value>, String> {
    let fields = match schema {
        Value::Object(fields) => fields,
        Value::Null | Value::Bool(true) => return Ok(None),
        Value::Bool(false) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err("its arguments are no object".to_owned());
        }
    };
    validate::check_schema(schema).map_err(|fault| fault.to_string())?;
    let mut whole = fields.clone();
    match fields.get("type") {
        None => {
            whole.insert("type".to_owned(), json!("object"));
        }
        Some(kind) if kind == "object" => {}
        Some(_) => return Err("its arguments are no object".to_owned()),
    }
    let says_nothing = whole.iter().all(|(name, value)| match name.as_str() {
        "properties" => value.as_object().is_some_and(Map::is_empty),
        other => matches!(other, "type" | "$schema" | "title" | "additionalProperties" | "required"),
    });
    Ok((!says_nothing).then_some(Value::Object(whole)))
}

/// Whether the model may, must or must not call (`FunctionCallingConfig`).
fn choice(choice: &ToolChoice, names: &Names) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "mode": "NONE" })),
        ToolChoice::Required => Some(json!({ "mode": "ANY" })),
        ToolChoice::Tool(tool) => Some(json!({ "mode": "ANY", "allowedFunctionNames": [names.alias(tool)] })),
    }
}

fn generation(request: &ChatRequest, asked: &Asked<'_>) -> Result<Map<String, Value>, Fault> {
    let Sampling {
        temperature,
        top_p,
        top_k,
        // Gemini has neither.
        min_p: _,
        repeat_penalty: _,
        frequency_penalty,
        presence_penalty,
        seed,
        max_tokens,
        stop,
    } = &request.sampling;
    let mut out = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            out.insert(name.to_owned(), value);
        }
    };
    set("temperature", temperature.map(decimal));
    set("topP", top_p.map(decimal));
    set("topK", top_k.filter(|k| *k > 0).map(Value::from));
    set("maxOutputTokens", max_tokens.map(Value::from));
    set("stopSequences", (!stop.is_empty()).then(|| json!(stop)));
    // Gemini's seed has a sign.
    set("seed", seed.map(|seed| Value::from(seed & 0x7fff_ffff)));
    set("presencePenalty", presence_penalty.map(decimal));
    set("frequencyPenalty", frequency_penalty.map(decimal));
    set("thinkingConfig", thinking(request.thinking, asked));
    match &request.answer {
        AnswerForm::Free => {}
        AnswerForm::JsonSchema(schema) => {
            set("responseMimeType", Some(json!("application/json")));
            match asked.dialect {
                Dialect::JsonSchema => set("responseJsonSchema", Some(schema.clone())),
                Dialect::Subset => {
                    set("responseSchema", reduce(schema).ok().and_then(|reduced| reduced.schema))
                }
            }
        }
        AnswerForm::Grammar(_) => {
            let why = format!("`{}` takes no grammar for its answers", asked.model);
            return Err(Fault::of(FaultKind::CannotAsk { why }));
        }
    }
    Ok(out)
}

/// As the user wrote it: 0.7, not 0.699999988079071.
pub(crate) fn decimal(number: f32) -> Value {
    number.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// `thinkingConfig`: a budget or a level, never both.
fn thinking(wanted: ThinkingOptions, asked: &Asked<'_>) -> Option<Value> {
    let level = asked.options.thinking_level.as_deref().map(str::to_ascii_uppercase);
    let usual = asked.thinks != Thinks::Unknown;
    let shown = asked.options.thoughts.unwrap_or(usual) && wanted.enabled != Some(false);
    let mut config = Map::new();
    match asked.thinks {
        Thinks::No => return None,
        Thinks::Budget => {
            let budget = match wanted {
                ThinkingOptions { enabled: Some(false), .. } => Some(0),
                ThinkingOptions { budget, .. } => budget,
            };
            if let Some(budget) = budget {
                config.insert("thinkingBudget".to_owned(), json!(budget));
            }
        }
        Thinks::Unknown => {
            if let Some(level) = level {
                config.insert("thinkingLevel".to_owned(), json!(level));
            } else if let Some(budget) = wanted.budget {
                config.insert("thinkingBudget".to_owned(), json!(budget));
            }
        }
        Thinks::Level => {
            // These can't be told not to think; the lowest level is the nearest.
            let level = level.or_else(|| (wanted.enabled == Some(false)).then(|| "LOW".to_owned()));
            if let Some(level) = level {
                config.insert("thinkingLevel".to_owned(), json!(level));
            } else if let Some(budget) = wanted.budget {
                config.insert("thinkingBudget".to_owned(), json!(budget));
            }
        }
    }
    if shown {
        config.insert("includeThoughts".to_owned(), json!(true));
    }
    (!config.is_empty()).then_some(Value::Object(config))
}
