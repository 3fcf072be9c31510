//! Calls as Python writes them: `[f(a=1, b='x'), g()]`, with the arguments held to the schemas of the tools.
//!
//! Invariant: pure; every text of these rules is read by `prompted::pythonic` as calls of tools that exist. It may say
//! less than a schema allows: arguments that a schema does not declare are not written beside those that it does.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::bind::{Bound, callables};
use super::gbnf::{Rules, literal, one_of};
use super::schema::Compiler;
use crate::prompted::written_value;

/// A keyword that no schema declares.
const KEYWORD: &str = "[a-zA-Z_] [a-zA-Z0-9_]{0,30}";
/// What may close a list of calls: the end of a tag, or of a block of code, that stands before it.
const CLOSING: [&str; 3] = ["</tool_call>", "<|tool_call_end|>", "```"];
/// What may stand before it, beside the beginning of a line.
const OPENING: &str = r"<tool_call>|<\|tool_call_start\|>|\[TOOL_CALLS\]|<\|python_tag\|>";

/// Holds a reply, from the beginning of a list of calls on, to such a list. None when there is nothing to call.
pub(crate) fn pythonic_calls(tools: &[Value]) -> Option<Bound> {
    let (mut bound, mut rules) = (Bound::default(), Rules::pythonic());
    let mut names = BTreeMap::new();
    for tool in callables(tools) {
        let arguments = bound.arguments(&tool, &mut rules);
        names.insert(tool.name.to_owned(), arguments);
    }
    let names = one_of(&mut rules, &names)?;
    let (call, space) = (rules.add(names), rules.space());
    let closing = CLOSING.map(literal).join(" | ");
    let list =
        format!("\"[\" {space} {call} ({space} \",\" {space} {call})* {space} \"]\" ({space} ({closing}))?");
    bound.text = format!("root ::= {list} {space}\n{}", rules.text());
    Some(bound)
}

/// What begins such a list: a bracket and the name of a tool, as far as no word of a text looks like it. An expression
/// (ECMAScript) whose first group the grammar begins with.
pub(crate) fn pythonic_trigger(tools: &[Value]) -> String {
    let beginning = |name: &str| match name.split_once("__") {
        // Tools of a server have its name before theirs.
        Some((server, _)) if !server.is_empty() => escaped(&format!("{server}__")),
        Some(_) | None => format!(r"{}\(", escaped(name)),
    };
    let mut names: Vec<String> = callables(tools).iter().map(|tool| beginning(tool.name)).collect();
    names.sort();
    names.dedup();
    format!(r"(?:^|\n|{OPENING})[ \t\n]{{0,8}}(\[ ?(?:{}))", names.join("|"))
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        if letter.is_ascii_punctuation() && letter != '_' && letter != '-' {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

/// Any keyword arguments.
pub(super) fn any_keywords(compiler: &mut Compiler<'_>) -> String {
    let (value, space) = (compiler.any(2), compiler.rules.space());
    let one = compiler.rules.add(format!("{KEYWORD} \"=\" {value}"));
    compiler.rules.add(format!("\"(\" {space} ({one} (\",\" {space} {one})*)? {space} \")\""))
}

/// One keyword argument that is not declared, or none where none need be.
pub(super) fn one_keyword(rules: &mut Rules, value: &str, needed: bool) -> String {
    let space = rules.space();
    let often = if needed { "" } else { "?" };
    rules.add(format!("\"(\" {space} ({KEYWORD} \"=\" {value}){often} {space} \")\""))
}

/// A keyword argument.
pub(super) fn keyword(name: &str, value: &str) -> String {
    format!("{} {value}", literal(&format!("{name}=")))
}

/// The ways to write a value that stands for itself.
pub(super) fn written(value: &Value) -> Vec<String> {
    let mut ways = vec![written_value(value)];
    if value.is_string() {
        ways.push(value.to_string());
    }
    ways
}

/// Arguments that a schema lists as a whole.
pub(super) fn written_arguments(fields: &Map<String, Value>) -> String {
    let one = |(name, value): (&String, &Value)| format!("{name}={}", written_value(value));
    format!("({})", fields.iter().map(one).collect::<Vec<_>>().join(", "))
}
