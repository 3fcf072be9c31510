//! How the answer is written: its form, its length, how tokens are chosen.

use lectern_core::{AnswerForm, Sampling};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::fields::{Fields, wrong_type};

/// Texts that end an answer, at most (OpenAI's limit).
const MOST_STOPS: usize = 4;

/// `response_format`.
pub fn answer_form(fields: &mut Fields) -> Result<AnswerForm, ApiError> {
    let Some(mut format) = fields.object("response_format")? else { return Ok(AnswerForm::Free) };
    let kinds = ["text", "json_object", "json_schema"];
    let kind = format.word("type", &kinds)?.ok_or_else(|| crate::fields::missing(format.at("type")))?;
    let form = match kind {
        "json_object" => AnswerForm::JsonSchema(json!({"type": "object"})),
        "json_schema" => AnswerForm::JsonSchema(schema(format.required_object("json_schema")?)?),
        _ => AnswerForm::Free,
    };
    format.end()?;
    Ok(form)
}

fn schema(mut fields: Fields) -> Result<Value, ApiError> {
    let name = fields.required_string("name")?;
    super::tools::check_name(&fields.at("name"), &name)?;
    fields.string("description")?;
    fields.boolean("strict")?;
    let at = fields.at("schema");
    let schema = match fields.value("schema") {
        None => json!({}),
        Some(schema @ Value::Object(_)) => schema,
        Some(other) => return Err(wrong_type(at, "a JSON Schema, which is an object", &other)),
    };
    fields.end()?;
    Ok(schema)
}

/// How tokens are chosen. `max_completion_tokens` is the newer name of `max_tokens` and wins over it.
pub fn sampling(fields: &mut Fields) -> Result<Sampling, ApiError> {
    let older = fields.integer("max_tokens", 1..=i64::from(u32::MAX))?;
    let newer = fields.integer("max_completion_tokens", 1..=i64::from(u32::MAX))?;
    Ok(Sampling {
        temperature: narrow(fields.number("temperature", 0.0..=2.0)?),
        top_p: narrow(fields.number("top_p", 0.0..=1.0)?),
        top_k: fields.integer("top_k", 0..=1_000_000)?.and_then(|k| u32::try_from(k).ok()),
        min_p: narrow(fields.number("min_p", 0.0..=1.0)?),
        repeat_penalty: None,
        frequency_penalty: narrow(fields.number("frequency_penalty", -2.0..=2.0)?),
        presence_penalty: narrow(fields.number("presence_penalty", -2.0..=2.0)?),
        seed: fields.integer("seed", i64::MIN..=i64::MAX)?.map(seed),
        max_tokens: newer.or(older).and_then(|tokens| u32::try_from(tokens).ok()),
        stop: stop(fields)?,
    })
}

fn stop(fields: &mut Fields) -> Result<Vec<String>, ApiError> {
    let at = fields.at("stop");
    let texts = match fields.value("stop") {
        None => return Ok(Vec::new()),
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => {
            let texts = items.into_iter().enumerate().map(|(index, item)| match item {
                Value::String(text) => Ok(text),
                other => Err(wrong_type(format!("{at}[{index}]"), "a string", &other)),
            });
            texts.collect::<Result<_, _>>()?
        }
        Some(other) => return Err(wrong_type(at, "a string or an array of strings", &other)),
    };
    if texts.len() > MOST_STOPS {
        let message = format!("`stop` can have {MOST_STOPS} texts, and has {}", texts.len());
        return Err(ApiError::invalid("array_above_max_length", at, message));
    }
    // An empty text would end every answer before it began.
    Ok(texts.into_iter().filter(|text| !text.is_empty()).collect())
}

#[expect(clippy::cast_possible_truncation, reason = "the models calculate with this precision")]
fn narrow(number: Option<f64>) -> Option<f32> {
    number.map(|number| number as f32)
}

/// Seeds here have 32 bits; other bits are mixed in, so that different seeds stay different.
fn seed(wide: i64) -> u32 {
    let bits = wide.cast_unsigned();
    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    if bits > u64::from(u32::MAX) { (bits ^ (bits >> 32)) as u32 } else { bits as u32 }
}
