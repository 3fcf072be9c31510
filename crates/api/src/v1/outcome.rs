//! How an answer ends, in OpenAI's words; and what a model's error is to a client.

use axum::http::StatusCode;
use lectern_app::view::Problem;
use lectern_core::{FinishReason, ModelError, ModelErrorCode, TurnError, TurnErrorCode, Usage};
use serde_json::{Value, json};

use crate::error::{ApiError, ErrorKind};

/// `finish_reason`. What was cancelled or failed has none: it ends with an error.
pub fn finish_reason(finish: FinishReason, called: bool) -> Option<&'static str> {
    match finish {
        FinishReason::Stop | FinishReason::ToolCalls if called => Some("tool_calls"),
        FinishReason::Stop | FinishReason::ToolCalls => Some("stop"),
        FinishReason::Length => Some("length"),
        FinishReason::Filtered => Some("content_filter"),
        FinishReason::Cancelled | FinishReason::Failed => None,
    }
}

/// `usage`.
pub fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.generated_tokens,
        "total_tokens": usage.prompt_tokens.saturating_add(usage.generated_tokens),
        "prompt_tokens_details": {
            "cached_tokens": usage.reused_tokens, "audio_tokens": 0,
            "image_tokens": usage.image_tokens.unwrap_or_default(),
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.thinking_tokens.unwrap_or_default(), "audio_tokens": 0,
            "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
        },
    })
}

/// Two replies of one answer.
pub fn sum(one: Usage, other: Usage) -> Usage {
    let optional = |a: Option<u32>, b: Option<u32>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or_default().saturating_add(b.unwrap_or_default())),
    };
    Usage {
        prompt_tokens: one.prompt_tokens.saturating_add(other.prompt_tokens),
        reused_tokens: one.reused_tokens.saturating_add(other.reused_tokens),
        generated_tokens: one.generated_tokens.saturating_add(other.generated_tokens),
        thinking_tokens: optional(one.thinking_tokens, other.thinking_tokens),
        image_tokens: optional(one.image_tokens, other.image_tokens),
        prompt_ms: optional(one.prompt_ms, other.prompt_ms),
        generation_ms: optional(one.generation_ms, other.generation_ms),
        guessed_tokens: optional(one.guessed_tokens, other.guessed_tokens),
        right_guesses: optional(one.right_guesses, other.right_guesses),
        // It is said of one prompt.
        changed_at: None,
    }
}

/// What a model's error is to a client.
pub fn of_model(error: ModelError) -> ApiError {
    of_code(error.code, &error.message)
}

/// Whether the limit of tokens came before any word. Clients are told so by the reason of the end, which is no error to them.
pub fn ran_out(finish: Option<FinishReason>, error: &TurnError) -> bool {
    let empty = error.code == TurnErrorCode::Model(ModelErrorCode::EmptyAnswer);
    empty && finish == Some(FinishReason::Length)
}

/// Why a turn ended.
pub fn of_turn(error: &TurnError) -> ApiError {
    match error.code {
        TurnErrorCode::Model(code) => of_code(code, &error.message),
        TurnErrorCode::Store | TurnErrorCode::Panic | TurnErrorCode::Interrupted => {
            ApiError::failed(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", error.message.clone())
        }
    }
}

/// Why the engine could not begin.
pub fn of_problem(problem: &Problem) -> ApiError {
    match problem.code.as_str() {
        "unknown_model" => ApiError::not_found("model_not_found", problem.message.clone()).at("model"),
        "model_cannot_see" | "cannot_read_pdf" => {
            ApiError::invalid("unsupported_content", "messages", problem.message.clone())
        }
        _ => ApiError::failed(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", problem.message.clone()),
    }
}

fn of_code(code: ModelErrorCode, message: &str) -> ApiError {
    let failed = |status, code| ApiError::failed(status, code, message);
    let provider = |code| failed(StatusCode::BAD_GATEWAY, code);
    let limited =
        |code| ApiError::new(StatusCode::TOO_MANY_REQUESTS, ErrorKind::RateLimitError, code, message);
    match code {
        ModelErrorCode::ContextFull => ApiError::invalid("context_length_exceeded", "messages", message),
        ModelErrorCode::BadRequest => ApiError::invalid("model_refused_request", "messages", message),
        ModelErrorCode::Blocked => ApiError::invalid("content_filter", "messages", message),
        ModelErrorCode::ModelNotFound => ApiError::not_found("model_not_found", message).at("model"),
        ModelErrorCode::BadModelFile => failed(StatusCode::INTERNAL_SERVER_ERROR, "bad_model_file"),
        ModelErrorCode::ModelCrashed => failed(StatusCode::INTERNAL_SERVER_ERROR, "model_crashed"),
        ModelErrorCode::RateLimited => limited("provider_rate_limited").retry_after(10),
        ModelErrorCode::QuotaExhausted => limited("insufficient_quota"),
        ModelErrorCode::Unauthorized => provider("provider_unauthorized"),
        ModelErrorCode::NotEnabled | ModelErrorCode::NotAvailableHere => provider("provider_unavailable"),
        ModelErrorCode::Unreachable => provider("provider_unreachable"),
        ModelErrorCode::Incomplete => provider("answer_broke_off"),
        ModelErrorCode::MalformedCall => provider("malformed_call"),
        ModelErrorCode::EmptyAnswer => provider("empty_answer"),
        ModelErrorCode::Provider => provider("provider_error"),
    }
}
