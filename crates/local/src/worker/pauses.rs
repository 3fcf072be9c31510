//! Where a model that cannot forget a part stops while it reads a prompt, so that its state can be copied.
//!
//! Invariant: places only; a place that is missing or early costs time, never truth.

use serde_json::Value;

use super::prompt::{Prompt, Renderer};
use crate::protocol::Generate;

/// How much of a message is looked for in the prompt.
const LOOKED_FOR: usize = 60;

impl Renderer<'_> {
    /// Tokens behind which a copy is worth having, in order: where the history ends and the last question begins, which
    /// may be rendered otherwise next time or be edited; and the end of the prompt, before what opens the reply.
    pub(super) fn pauses(&self, request: &Generate, prompt: &Prompt) -> Vec<usize> {
        let last_user = request.messages.iter().rev().find(|message| message["role"] == "user");
        let question = last_user.and_then(|message| begin_of(message, &prompt.base));
        let mut out: Vec<usize> = question
            .into_iter()
            .chain([prompt.base.len()])
            .map(|bytes| self.tokens_within(prompt, bytes))
            .filter(|tokens| (1..prompt.tokens.len()).contains(tokens))
            .collect();
        out.dedup();
        out
    }

    /// How many tokens stand within so many bytes of the text.
    fn tokens_within(&self, prompt: &Prompt, bytes: usize) -> usize {
        let vocab = self.model.vocab();
        let mut read = 0;
        prompt
            .tokens
            .iter()
            .take_while(|token| {
                read += vocab.token_to_piece(**token, true, None).len();
                read <= bytes
            })
            .count()
    }
}

/// Where a message begins in the text.
fn begin_of(message: &Value, text: &str) -> Option<usize> {
    let content = message["content"].as_str()?.trim();
    let start: String = content.chars().take(LOOKED_FOR).collect();
    if start.is_empty() { None } else { text.rfind(&start) }
}
