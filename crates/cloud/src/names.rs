//! Names of tools in the alphabet of a provider, and back.
//!
//! Gemini: first a letter or `_`, then `[A-Za-z0-9_.-]`, at most 64. OpenAI: `[A-Za-z0-9_-]`, at most 64.
//!
//! Invariant: an alias depends on its name alone, so that it is the same in every step and in every conversation.

use std::collections::HashMap;

use lectern_core::{Message, ToolName, ToolSpec};
use sha2::{Digest, Sha256};

const LONGEST: usize = 64;

/// Whose alphabet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alphabet {
    Gemini,
    OpenAi,
}

/// The names of one request.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    alphabet: Alphabet,
    /// Only those that are not their own alias.
    back: HashMap<String, ToolName>,
}

impl Names {
    pub(crate) fn new(alphabet: Alphabet, tools: &[ToolSpec], messages: &[Message]) -> Self {
        let mut names = Self { alphabet, back: HashMap::new() };
        for spec in tools {
            names.learn(&spec.name);
        }
        for message in messages {
            match message {
                Message::Assistant(said) => said.tool_calls().for_each(|call| names.learn(&call.tool)),
                Message::User(_) | Message::Tool(_) => {}
            }
        }
        names
    }

    fn learn(&mut self, name: &ToolName) {
        let alias = self.alias(name);
        if alias != name.as_str() {
            self.back.entry(alias).or_insert_with(|| name.clone());
        }
    }

    /// The name as the provider takes it.
    pub(crate) fn alias(&self, name: &ToolName) -> String {
        let name = name.as_str();
        if self.is_allowed(name) {
            return name.to_owned();
        }
        let clean = |c: char| if self.may_stand(c) { c } else { '_' };
        let mut alias: String = name.chars().map(clean).take(LONGEST - 8).collect();
        if alias.chars().next().is_none_or(|first| !self.may_begin(first)) {
            alias.insert(0, '_');
            alias.truncate(LONGEST - 8);
        }
        let digest = Sha256::digest(name.as_bytes());
        format!("{alias}_{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2])
    }

    /// The tool that the provider means.
    pub(crate) fn tool(&self, alias: &str) -> ToolName {
        self.back.get(alias).cloned().unwrap_or_else(|| alias.into())
    }

    fn is_allowed(&self, name: &str) -> bool {
        let first = name.chars().next();
        name.len() <= LONGEST
            && first.is_some_and(|first| self.may_begin(first))
            && name.chars().all(|c| self.may_stand(c))
    }

    fn may_begin(&self, c: char) -> bool {
        match self.alphabet {
            Alphabet::Gemini => c.is_ascii_alphabetic() || c == '_',
            Alphabet::OpenAi => self.may_stand(c),
        }
    }

    fn may_stand(&self, c: char) -> bool {
        c.is_ascii_alphanumeric()
            || c == '_'
            || c == '-'
            || match self.alphabet {
                Alphabet::Gemini => c == '.',
                Alphabet::OpenAi => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_fit() {
        let long = "x".repeat(70);
        for alphabet in [Alphabet::Gemini, Alphabet::OpenAi] {
            let mut names = Names::new(alphabet, &[], &[]);
            for name in ["notes__read", "7zip", "-x", "größe", "a.b", "a b", "", &long] {
                let name = ToolName::from(name);
                names.learn(&name);
                let alias = names.alias(&name);
                assert!(names.is_allowed(&alias), "{alias}");
                assert_eq!(names.tool(&alias), name);
            }
            assert_eq!(names.alias(&"notes__read".into()), "notes__read");
            assert_ne!(names.alias(&"a b".into()), names.alias(&"a_b".into()));
        }
    }
}
