//! Permission rules as people write them: `all`, `server:ID`, `tool:NAME`, or just a tool's public name.
//!
//! Invariant: what can't be read is refused; a rule is never guessed wider than it was written.

use lectern_core::{Rule, permission::RuleEffect, permission::RuleMatch};

use crate::view::Problem;

/// Reads what `--allow` is given.
pub fn parse_allow(text: &str) -> Result<Rule, Problem> {
    let matches = match text.split_once(':') {
        None if text == "all" => RuleMatch::Everything,
        None if is_name(text) => RuleMatch::Tool { tool: text.into() },
        Some(("server", id)) if is_name(id) => RuleMatch::Server { server: id.into() },
        Some(("tool", name)) if is_name(name) => RuleMatch::Tool { tool: name.into() },
        None | Some(_) => {
            return Err(Problem::new("bad_rule", format!("`{text}` is no permission rule")).hint(
                "Write all, server:ID, tool:NAME, or a tool's public name such as notes__create_note.",
            ));
        }
    };
    Ok(Rule { matches, effect: RuleEffect::Allow })
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_is_read_and_nothing_else() {
        let matches = |text| parse_allow(text).unwrap().matches;
        assert_eq!(matches("all"), RuleMatch::Everything);
        assert_eq!(matches("server:notes"), RuleMatch::Server { server: "notes".into() });
        assert_eq!(matches("tool:notes__create_note"), RuleMatch::Tool { tool: "notes__create_note".into() });
        assert_eq!(matches("notes__create_note"), RuleMatch::Tool { tool: "notes__create_note".into() });
        for wrong in ["", "server:", "tool:", "tools:x", "server:a b", "notes *", "all:", "tool:a:b"] {
            assert_eq!(parse_allow(wrong).unwrap_err().code, "bad_rule", "{wrong}");
        }
    }
}
