//! For tests: the templates of real models, and what they write of calls.

use serde_json::{Value, json};

use super::{Applied, Format, Templates};

/// The templates of real models, by name: the same folder as in `tests/it/templates.rs`.
pub(crate) fn real_templates() -> Vec<(String, String)> {
    let usual = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/chat-templates");
    let folder = std::env::var_os("LECTERN_CHAT_TEMPLATES").map_or(usual, Into::into);
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let read = |path: std::path::PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        Some((name, std::fs::read_to_string(path).ok()?))
    };
    let jinja = files.filter(|path| path.extension().is_some_and(|end| end == "jinja"));
    let mut out: Vec<_> = jinja.filter_map(read).collect();
    out.sort();
    out
}

/// What a template writes of calls.
pub(crate) struct Sample {
    pub(crate) applied: Applied,
    pub(crate) format: Format,
    /// The text of the calls alone.
    pub(crate) calls: String,
}

impl Sample {
    /// Whether the reply begins inside of thinking.
    pub(crate) fn begins_thinking(&self) -> bool {
        let start = self.applied.thinking_start_tag.trim();
        !start.is_empty() && self.applied.generation_prompt.trim_end().ends_with(start)
    }
}

/// The ends of messages that a model would write as a token.
const ENDS: [&str; 20] = [
    "<|eot|>",
    "</assistant>",
    "<sep>",
    "<｜hy_eos:opensource｜>",
    "<|begin|>assistant",
    "<|calls|>",
    "<|return|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "</s>",
    "<|end|>",
    "<|call|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_turn>",
    "<seed:eos>",
    "[e~[",
    "<｜end▁of▁sentence｜>",
];

/// Calls as a template writes them. None where it cannot be told what of its text is the calls.
pub(crate) fn sample(templates: &Templates, tools: &[Value], calls: &[(&str, Value)]) -> Option<Sample> {
    let user = json!({ "role": "user", "content": "Hello" });
    let one = |(place, (name, arguments)): (usize, &(&str, Value))| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "id": format!("call{place:05}"), "type": "function", "function": function })
    };
    let told: Vec<Value> = calls.iter().enumerate().map(one).collect();
    let reply = json!({ "role": "assistant", "content": "", "tool_calls": told });
    let ask = json!({ "messages": [user], "tools": tools, "parallel_tool_calls": calls.len() > 1 });
    let (applied, format) = templates.apply(&ask).ok()?;
    let whole = json!({ "messages": [user, reply], "tools": tools, "add_generation_prompt": false });
    let rendered = templates.apply(&whole).ok()?.0.prompt;
    let base = applied.prompt.strip_suffix(&applied.generation_prompt)?;
    let rest = rendered.strip_prefix(base)?;
    let shared = rest.bytes().zip(applied.generation_prompt.bytes()).take_while(|(a, b)| a == b).count();
    let shared = rest.get(..shared).map_or(0, |same| {
        let whole = same.len() == applied.generation_prompt.len();
        if whole { same.len() } else { same.rfind(['>', '\n']).map_or(0, |at| at + 1) }
    });
    let rest = rest.get(shared..)?;
    // An empty thought is no part of the call.
    let rest = applied
        .thinking_end_tags
        .iter()
        .find_map(|end| {
            let (thought, rest) = rest.split_once(end.trim()).filter(|_| !end.trim().is_empty())?;
            thought
                .trim()
                .trim_start_matches(applied.thinking_start_tag.trim())
                .trim()
                .is_empty()
                .then_some(rest)
        })
        .unwrap_or(rest);
    let text = rest.trim();
    let mut text = text;
    while let Some(before) = ENDS.iter().find_map(|end| text.strip_suffix(end)) {
        text = before.trim_end();
    }
    let named = calls.iter().all(|(name, _)| text.contains(name));
    named.then(|| Sample { calls: text.to_owned(), applied, format })
}
