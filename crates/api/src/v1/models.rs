//! `GET /v1/models` and `GET /v1/models/{id}`.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::shape::answer::{Model, ModelList};
use crate::backend::ModelCard;
use crate::body::Name;
use crate::document::Failures;
use crate::error::ApiError;
use crate::fields::shortened;
use crate::state::Api;

/// All models that can be asked.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "list_models",
    tag = "OpenAI",
    responses((status = 200, body = ModelList), Failures),
)]
pub async fn list(State(api): State<Api>) -> Response {
    let cards = api.backend.models();
    let data: Vec<Value> = cards.iter().map(|card| view(&api, card)).collect();
    Json(json!({"object": "list", "data": data})).into_response()
}

/// One model.
///
/// Ids of providers have a slash, so the rest of the path is the id.
#[utoipa::path(
    get,
    path = "/v1/models/{id}",
    operation_id = "get_model",
    tag = "OpenAI",
    params(("id" = String, Path, description = "Its id", min_length = 1)),
    responses((status = 200, body = Model), Failures),
)]
pub async fn one(State(api): State<Api>, Name(id): Name) -> Result<Response, ApiError> {
    let cards = api.backend.models();
    match cards.iter().find(|card| card.id.as_str() == id) {
        Some(card) => Ok(Json(view(&api, card)).into_response()),
        None => Err(unknown(&id)),
    }
}

/// There is no such model.
pub fn unknown(id: &str) -> ApiError {
    let message = format!("there is no model `{}`; GET /v1/models lists them", shortened(id));
    ApiError::not_found("model_not_found", message).at("model")
}

fn view(api: &Api, card: &ModelCard) -> Value {
    let created = card.created.unwrap_or(api.started);
    json!({"id": card.id, "object": "model", "created": created, "owned_by": card.owned_by})
}
