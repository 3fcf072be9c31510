//! What `/v1` answers.

use utoipa::ToSchema;

use super::message::CallKind;

/// The models that can be asked.
#[derive(ToSchema)]
pub struct ModelList {
    object: ListObject,
    /// The model that answers by itself is the first.
    data: Vec<Model>,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ListObject {
    List,
}

/// A model.
#[derive(ToSchema)]
pub struct Model {
    /// Names it in requests.
    id: String,
    object: ModelObject,
    /// When its file was made, or the server was started; seconds since 1970.
    #[schema(minimum = 0)]
    created: i64,
    /// Who has it.
    owned_by: String,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModelObject {
    Model,
}

/// A whole answer.
#[derive(ToSchema)]
pub struct ChatCompletion {
    /// Names the answer.
    id: String,
    object: CompletionObject,
    /// Seconds since 1970.
    created: i64,
    /// The model that answered.
    model: String,
    /// The answer, one.
    #[schema(min_items = 1, max_items = 1)]
    choices: Vec<CompletionChoice>,
    usage: Usage,
}

#[derive(ToSchema)]
pub enum CompletionObject {
    #[serde(rename = "chat.completion")]
    Completion,
}

#[derive(ToSchema)]
pub struct CompletionChoice {
    #[schema(minimum = 0, maximum = 0)]
    index: i64,
    message: AnswerMessage,
    /// Always null.
    #[schema(required = true)]
    logprobs: Option<String>,
    finish_reason: FinishReason,
}

/// Why an answer ended: it was whole, it was too long, the client has to run tools, or its provider held it back.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    Stop,
    Length,
    ToolCalls,
    ContentFilter,
}

#[derive(ToSchema)]
pub struct AnswerMessage {
    role: AnswerRole,
    /// The words; null when there are calls alone.
    #[schema(required = true)]
    content: Option<String>,
    /// Always null.
    #[schema(required = true)]
    refusal: Option<String>,
    /// What the model thought, as far as it tells. Not OpenAI's.
    #[schema(nullable = false)]
    reasoning_content: Option<String>,
    /// What the client has to run.
    #[schema(nullable = false)]
    tool_calls: Option<Vec<AnswerCall>>,
}

#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum AnswerRole {
    Assistant,
}

/// A call of a function of the client.
#[derive(ToSchema)]
pub struct AnswerCall {
    /// The result names it.
    id: String,
    r#type: CallKind,
    function: AnswerFunctionCall,
}

#[derive(ToSchema)]
pub struct AnswerFunctionCall {
    name: String,
    /// JSON text.
    arguments: String,
}

/// What an answer cost, in tokens.
#[derive(ToSchema)]
pub struct Usage {
    #[schema(minimum = 0)]
    prompt_tokens: i64,
    #[schema(minimum = 0)]
    completion_tokens: i64,
    #[schema(minimum = 0)]
    total_tokens: i64,
    prompt_tokens_details: PromptTokens,
    completion_tokens_details: CompletionTokens,
}

#[derive(ToSchema)]
pub struct PromptTokens {
    /// What was evaluated for an earlier request already.
    #[schema(minimum = 0)]
    cached_tokens: i64,
    #[schema(minimum = 0)]
    audio_tokens: i64,
    #[schema(minimum = 0)]
    image_tokens: i64,
}

#[derive(ToSchema)]
pub struct CompletionTokens {
    #[schema(minimum = 0)]
    reasoning_tokens: i64,
    #[schema(minimum = 0)]
    audio_tokens: i64,
    #[schema(minimum = 0)]
    accepted_prediction_tokens: i64,
    #[schema(minimum = 0)]
    rejected_prediction_tokens: i64,
}

/// A piece of an answer: the data of one event. After the last one comes `data: [DONE]`; an error in the middle is an event
/// with an `ErrorBody`, and the last one. Comments tell what the user's servers do.
#[derive(ToSchema)]
pub struct ChatCompletionChunk {
    /// The same in all chunks of an answer.
    id: String,
    object: ChunkObject,
    created: i64,
    model: String,
    /// Empty in the chunk that tells the usage.
    #[schema(max_items = 1)]
    choices: Vec<ChunkChoice>,
    /// Only with `stream_options.include_usage`; null in all chunks but the last.
    usage: Option<Usage>,
}

#[derive(ToSchema)]
pub enum ChunkObject {
    #[serde(rename = "chat.completion.chunk")]
    Chunk,
}

#[derive(ToSchema)]
pub struct ChunkChoice {
    #[schema(minimum = 0, maximum = 0)]
    index: i64,
    delta: Delta,
    /// Always null.
    #[schema(required = true)]
    logprobs: Option<String>,
    /// Null in all chunks but the last.
    #[schema(required = true)]
    finish_reason: Option<FinishReason>,
}

/// What is new.
#[derive(ToSchema)]
pub struct Delta {
    /// In the first chunk.
    #[schema(nullable = false)]
    role: Option<AnswerRole>,
    #[schema(nullable = false)]
    content: Option<String>,
    refusal: Option<String>,
    #[schema(nullable = false)]
    reasoning_content: Option<String>,
    /// One at most: a call that begins, with its id and name, or more of the arguments of one.
    #[schema(nullable = false, max_items = 1)]
    tool_calls: Option<Vec<DeltaCall>>,
}

#[derive(ToSchema)]
pub struct DeltaCall {
    #[schema(minimum = 0)]
    index: i64,
    #[schema(nullable = false)]
    id: Option<String>,
    #[schema(nullable = false)]
    r#type: Option<CallKind>,
    function: DeltaFunctionCall,
}

#[derive(ToSchema)]
pub struct DeltaFunctionCall {
    #[schema(nullable = false)]
    name: Option<String>,
    /// A piece of JSON text.
    arguments: String,
}
