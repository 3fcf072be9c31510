//! `GET /api/events`.

use utoipa::ToSchema;

/// One thing that happened in a turn: the data of one event, whose id is `TURN:SEQ`. Each kind has fields of its own beside
/// these, as docs/events.md describes. `data: [DONE]` ends the stream.
#[derive(ToSchema)]
pub struct SessionEvent {
    /// The session's conversation.
    conversation: String,
    /// The turn.
    turn: String,
    /// Counts from 0 in each turn.
    #[schema(minimum = 0)]
    seq: i64,
    /// When it happened.
    #[schema(format = DateTime)]
    at: String,
    /// What happened.
    #[schema(example = "text_delta")]
    kind: String,
}
