//! The body of `POST /v1/chat/completions`.

use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

use super::message::RequestMessage;
use super::tool::{RequestTool, ToolChoice};

/// A conversation that a model goes on with. Fields that are null count as absent; fields that are not described here are
/// refused.
#[derive(ToSchema)]
pub struct ChatRequest {
    /// The model's id, as `GET /v1/models` lists it. The model that answers by itself when it is left out.
    #[schema(example = "starter")]
    model: Option<String>,
    /// What was said so far. Each call of a tool has to be followed by its result.
    #[schema(min_items = 1, max_items = 2048)]
    messages: Vec<RequestMessage>,
    /// Tools that the model may call: functions of the client, and servers of the user.
    #[schema(max_items = 128)]
    tools: Option<Vec<RequestTool>>,
    /// Whether the model may, must or must not call.
    tool_choice: Option<ToolChoice>,
    /// Whether an answer may have more than one call; yes when it is left out.
    parallel_tool_calls: Option<bool>,
    /// Tokens of the answer at most; the older name.
    #[schema(minimum = 1, maximum = 4294967295u64)]
    max_tokens: Option<i64>,
    /// Tokens of the answer at most.
    #[schema(minimum = 1, maximum = 4294967295u64)]
    max_completion_tokens: Option<i64>,
    /// 0 always takes the likeliest token.
    #[schema(minimum = 0, maximum = 2)]
    temperature: Option<f64>,
    /// Of the likeliest tokens, so many that their chances add up to this.
    #[schema(minimum = 0, maximum = 1)]
    top_p: Option<f64>,
    /// So many of the likeliest tokens. Not OpenAI's.
    #[schema(minimum = 0, maximum = 1000000)]
    top_k: Option<i64>,
    /// No token below this share of the likeliest. Not OpenAI's.
    #[schema(minimum = 0, maximum = 1)]
    min_p: Option<f64>,
    /// The same seed gives the same answer, as far as the model can.
    seed: Option<i64>,
    /// Texts that end the answer, four at most; they are not part of it.
    #[schema(schema_with = stop)]
    stop: Option<Value>,
    /// Makes a token unlikelier for each time that it was said.
    #[schema(minimum = -2, maximum = 2)]
    frequency_penalty: Option<f64>,
    /// Makes a token unlikelier once it was said.
    #[schema(minimum = -2, maximum = 2)]
    presence_penalty: Option<f64>,
    /// The form of the answer. Local models are bound to it by a grammar.
    response_format: Option<ResponseFormat>,
    /// `none` and `minimal` switch thinking off, the others on.
    reasoning_effort: Option<ReasoningEffort>,
    /// Whether the answer comes in pieces, as server-sent events.
    stream: Option<bool>,
    /// Only for requests with `stream`.
    stream_options: Option<StreamOptions>,
    /// One answer is given to a request.
    #[schema(minimum = 1, maximum = 1)]
    n: Option<i64>,
    /// Log probabilities are not given.
    #[schema(schema_with = never)]
    logprobs: Option<bool>,
    /// Log probabilities are not given.
    #[schema(minimum = 0, maximum = 0)]
    top_logprobs: Option<i64>,
    /// Tokens can't be weighted.
    #[schema(schema_with = empty)]
    logit_bias: Option<Value>,
    /// Answers are text.
    modalities: Option<Vec<Modality>>,
    /// A hint that is passed over.
    metadata: Option<Value>,
    /// A hint that is passed over.
    moderation: Option<Value>,
    /// A hint that is passed over.
    prediction: Option<Value>,
    /// A hint that is passed over.
    prompt_cache_key: Option<Value>,
    /// A hint that is passed over.
    prompt_cache_options: Option<Value>,
    /// A hint that is passed over.
    prompt_cache_retention: Option<Value>,
    /// A hint that is passed over.
    safety_identifier: Option<Value>,
    /// A hint that is passed over.
    service_tier: Option<Value>,
    /// A hint that is passed over; nothing is kept.
    store: Option<Value>,
    /// A hint that is passed over.
    user: Option<Value>,
    /// A hint that is passed over.
    verbosity: Option<Value>,
}

/// The form of an answer.
#[derive(ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Any text.
    Text {},
    /// Any JSON object.
    JsonObject {},
    /// JSON of a schema.
    JsonSchema {
        /// The schema.
        json_schema: JsonSchemaFormat,
    },
}

/// A form by its JSON Schema.
#[derive(ToSchema)]
pub struct JsonSchemaFormat {
    /// What to call it.
    #[schema(pattern = "^[a-zA-Z0-9_-]+$", max_length = 64)]
    name: String,
    /// What it is for.
    description: Option<String>,
    /// The schema; any JSON when it is left out.
    #[schema(value_type = Option<Object>)]
    schema: Option<Value>,
    /// Taken and not used: what can be bound is always bound.
    strict: Option<bool>,
}

/// How much a model thinks.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

/// What a stream tells.
#[derive(ToSchema)]
pub struct StreamOptions {
    /// The last chunk but the end tells what the answer cost.
    include_usage: Option<bool>,
    /// Taken and not used.
    include_obfuscation: Option<bool>,
}

/// What an answer is made of.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Modality {
    Text,
}

fn stop() -> Schema {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let texts = ArrayBuilder::new().items(text()).max_items(Some(4));
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(text()).item(texts).item(null).into()
}

fn empty() -> Schema {
    let object = ObjectBuilder::new().schema_type(Type::Object).max_properties(Some(0));
    OneOfBuilder::new().item(object).item(ObjectBuilder::new().schema_type(Type::Null)).into()
}

fn never() -> Schema {
    ObjectBuilder::new()
        .schema_type([Type::Boolean, Type::Null].into_iter().collect::<utoipa::openapi::schema::SchemaType>())
        .enum_values(Some([Value::Bool(false), Value::Null]))
        .into()
}
