//! Guesses how many tokens a request is, for models that can't count.
//!
//! Invariant: pure; it rather guesses too many than too few.

use crate::message::{Content, Message, Part};
use crate::model::ChatRequest;

/// Tokens that a template adds to a message, at most.
const PER_MESSAGE: usize = 16;

/// Tokens that a template adds to a conversation, at most.
const OVERHEAD: usize = 256;

/// Tokens of an image, about; most models take fewer.
const IMAGE: usize = 1_024;

/// Tokens that an image has at most: 4,096 places where images may be of any size, and what stands around and between
/// the pieces of others. How many they are only the model itself can say, which looks at the image for it.
const LARGEST_IMAGE: usize = 4_608;

/// More tokens than the request can have: one for each byte. What fits by this needs no counting.
pub(crate) fn at_most(request: &ChatRequest) -> u32 {
    measured(request, str::len, LARGEST_IMAGE)
}

/// About so many tokens.
pub(crate) fn about(request: &ChatRequest) -> u32 {
    measured(request, tokens, IMAGE)
}

/// Latin letters go three to a token at least, as a rule; of other scripts each character may be one.
pub(crate) fn tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let other = text.chars().filter(|c| !c.is_ascii()).count();
    ascii.div_ceil(3) + other
}

fn measured(request: &ChatRequest, of: impl Fn(&str) -> usize, image: usize) -> u32 {
    let texts = request.system.iter().chain(&request.tail).map(|text| of(text)).sum::<usize>();
    let tools: usize = request
        .tools
        .iter()
        .map(|spec| {
            of(spec.name.as_str()) + of(&spec.description) + of(&spec.input_schema.to_string()) + PER_MESSAGE
        })
        .sum();
    let messages: usize =
        request.messages.iter().map(|message| of_message(message, &of, image) + PER_MESSAGE).sum();
    u32::try_from(texts + tools + messages + OVERHEAD).unwrap_or(u32::MAX)
}

fn of_message(message: &Message, of: &impl Fn(&str) -> usize, image: usize) -> usize {
    match message {
        Message::User(user) => {
            user.parts.iter().map(|part| of_part(part, of, image)).sum::<usize>()
                + user.context.as_deref().map_or(0, of)
        }
        Message::Assistant(reply) => reply.parts.iter().map(|part| of_part(part, of, image)).sum(),
        Message::Tool(result) => {
            let content = |content: &Content| match content {
                Content::Text { text } => of(text),
                Content::Resource(resource) => of(&resource.uri) + resource.text.as_deref().map_or(0, of),
                Content::Image(_) | Content::Audio(_) => image,
            };
            result.content.iter().map(content).sum::<usize>()
                + result.structured.as_ref().map_or(0, |value| of(&value.to_string()))
        }
    }
}

fn of_part(part: &Part, of: &impl Fn(&str) -> usize, image: usize) -> usize {
    match part {
        Part::Text { text } => of(text),
        Part::Thinking(thinking) => of(&thinking.text),
        Part::ToolCall(call) => {
            of(call.tool.as_str())
                + of(&serde_json::Value::Object(call.arguments.clone()).to_string())
                + call.malformed.as_deref().map_or(0, of)
        }
        Part::Image(_) => image,
        Part::Resource(resource) => of(&resource.uri) + resource.text.as_deref().map_or(0, of),
    }
}
