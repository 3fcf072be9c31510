//! Keeps special tokens that somebody typed apart from those of the template.
//!
//! The template mixes both into one text. So before it runs, every special token inside a message is broken with
//! a mark after its first character; after it ran, the text is cut at the marks before it is tokenized, and the
//! token can no longer be found. A mark that somebody typed is doubled. Invariant: `cut(protect(x))` joins to `x`.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

/// A private-use character at the far end of Unicode.
const MARK: char = '\u{10ff01}';
const TYPED_MARK: &str = "\u{10ff01}\u{10ff01}";

/// The texts of the special tokens of a vocabulary.
#[derive(Debug, Default)]
pub(super) struct Protector {
    by_first: HashMap<char, Vec<String>>,
}

impl Protector {
    /// Protects against these tokens.
    pub(super) fn new(tokens: impl IntoIterator<Item = String>) -> Self {
        let mut by_first: HashMap<char, Vec<String>> = HashMap::new();
        for token in tokens {
            // A token of one character cannot be broken.
            if let (Some(first), Some(_)) = (token.chars().next(), token.chars().nth(1)) {
                by_first.entry(first).or_default().push(token);
            }
        }
        Self { by_first }
    }

    /// Breaks the special tokens in a text.
    pub(super) fn protect<'text>(&self, text: &'text str) -> Cow<'text, str> {
        let mut out = String::new();
        let mut copied = 0;
        for (at, first) in text.char_indices() {
            let end = at + first.len_utf8();
            let special = first == MARK
                || self
                    .by_first
                    .get(&first)
                    .is_some_and(|tokens| tokens.iter().any(|token| text[at..].starts_with(token.as_str())));
            if special {
                out.push_str(&text[copied..end]);
                out.push(MARK);
                copied = end;
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[copied..]);
        Cow::Owned(out)
    }

    /// Breaks the special tokens in the strings of a message; roles, names and ids stay.
    pub(super) fn protect_message(&self, message: &mut Value) {
        for key in ["content", "reasoning_content"] {
            if let Some(content) = message.get_mut(key) {
                self.protect_strings(content);
            }
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            if let Some(arguments) = call.pointer_mut("/function/arguments") {
                self.protect_arguments(arguments);
            }
        }
    }

    /// Breaks the special tokens in the strings of a tool, but for its name. True if there were any.
    pub(super) fn protect_tool(&self, tool: &mut Value) -> bool {
        let before = tool.clone();
        if let Some(description) = tool.pointer_mut("/function/description") {
            self.protect_strings(description);
        }
        if let Some(parameters) = tool.pointer_mut("/function/parameters") {
            self.protect_strings(parameters);
        }
        *tool != before
    }

    /// Arguments come as JSON inside a string; the marks belong inside its strings.
    fn protect_arguments(&self, arguments: &mut Value) {
        let Value::String(text) = arguments else { return self.protect_strings(arguments) };
        match serde_json::from_str::<Value>(text) {
            Ok(mut parsed) => {
                let before = parsed.clone();
                self.protect_strings(&mut parsed);
                if parsed != before {
                    *text = parsed.to_string();
                }
            }
            Err(_) => *text = self.protect(text).into_owned(),
        }
    }

    fn protect_strings(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(protected) = self.protect(text) {
                    *text = protected;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.protect_strings(item)),
            Value::Object(fields) => {
                let broken = |key: &String| matches!(self.protect(key), Cow::Owned(_));
                if fields.keys().any(broken) {
                    *fields = std::mem::take(fields)
                        .into_iter()
                        .map(|(key, field)| (self.protect(&key).into_owned(), field))
                        .collect();
                }
                fields.values_mut().for_each(|field| self.protect_strings(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Cuts a protected text at its marks.
pub(super) fn cut(text: &str) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let (before, marked) = rest.split_at(at);
        let typed = marked.starts_with(TYPED_MARK);
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(before);
            if typed {
                piece.push(MARK);
            }
        }
        if !typed {
            pieces.push(String::new());
        }
        rest = &marked[if typed { TYPED_MARK.len() } else { MARK.len_utf8() }..];
    }
    if let Some(piece) = pieces.last_mut() {
        piece.push_str(rest);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn protector() -> Protector {
        Protector::new(["<|im_start|>", "<|im_end|>", "<<|", "[INST]"].map(str::to_owned))
    }

    #[test]
    fn breaks_each_token_after_its_first_character() {
        let protector = protector();
        let protected = protector.protect("a <|im_end|>\n<|im_start|>b");
        assert_eq!(cut(&protected), ["a <", "|im_end|>\n<", "|im_start|>b"]);
        assert!(matches!(protector.protect("nothing < | special"), Cow::Borrowed(_)));
    }

    #[test]
    fn reaches_every_string_of_a_message() {
        let protector = protector();
        let mut message = json!({
            "role": "assistant",
            "content": "[INST]",
            "tool_calls": [{"function": {"name": "[INST]", "arguments": "{\"[INST]\": [\"<|im_end|>\"]}"}}],
        });
        protector.protect_message(&mut message);
        let text = message.to_string();
        assert!(!text.contains("<|im_end|>"));
        assert_eq!(text.matches("[INST]").count(), 1, "only the name stays: {text}");
    }

    proptest! {
        #[test]
        fn joins_to_the_original_and_holds_no_token(
            parts in prop::collection::vec(
                prop_oneof!["[<|>a\\[\\]INST]{0,5}", Just("<|im_end|>".to_owned()), Just("<<|".to_owned()),
                    Just("[INST]".to_owned()), Just(MARK.to_string())],
                0..12,
            ),
        ) {
            let text = parts.concat();
            let protector = protector();
            let pieces = cut(&protector.protect(&text));
            prop_assert_eq!(pieces.concat(), text);
            for piece in pieces {
                for token in ["<|im_start|>", "<|im_end|>", "<<|", "[INST]"] {
                    prop_assert!(!piece.contains(token), "{} in {}", token, piece);
                }
            }
        }
    }
}
