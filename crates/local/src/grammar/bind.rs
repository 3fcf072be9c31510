//! Puts the rules of tools into the grammar that llama.cpp made for a chat format.
//!
//! llama.cpp writes `tool-NAME` for a call and `tool-NAME-schema` for its arguments. The second is replaced by our
//! rule; the first, which is the same for all tools but for the name, becomes one rule with the names as a tree:
//! then the sampler follows one path, however many tools there are, and the rules of a tool are met only after its
//! name. Invariant: pure; names that are not offered cannot be written.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::gbnf::{Rules, literal, one_of};
use super::schema::{any_object, compile};

/// A grammar with the rules of the tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The whole text (GBNF).
    pub(crate) text: String,
    /// Where arguments may be written that the schema of a tool does not allow: the tool, and why.
    pub(crate) open: BTreeMap<String, BTreeSet<String>>,
    /// Tools whose schema no grammar can be made of: any object is taken.
    pub(crate) loose: BTreeSet<String>,
}

/// The tools that a grammar is made for.
pub(super) struct Callable<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
}

pub(super) fn callables(tools: &[Value]) -> Vec<Callable<'_>> {
    let mut seen = HashSet::new();
    tools
        .iter()
        .filter_map(name_and_schema)
        // Of tools with the same name the first is called.
        .filter(|(name, _)| seen.insert(*name))
        .map(|(name, schema)| Callable { name, schema })
        .collect()
}

fn name_and_schema(tool: &Value) -> Option<(&str, &Value)> {
    let function = tool.get("function")?;
    Some((function.get("name")?.as_str()?, function.get("parameters").unwrap_or(&Value::Null)))
}

impl Bound {
    /// The rule for the arguments of a tool.
    pub(super) fn arguments(&mut self, tool: &Callable<'_>, rules: &mut Rules) -> String {
        let room = rules.has_room();
        match compile(tool.schema, rules) {
            Some(_) if !room => {
                self.loose.insert(tool.name.to_owned());
                any_object(rules)
            }
            Some(compiled) => {
                if !compiled.open.is_empty() {
                    self.open.insert(tool.name.to_owned(), compiled.open);
                }
                compiled.rule
            }
            None => {
                self.loose.insert(tool.name.to_owned());
                any_object(rules)
            }
        }
    }
}

/// A grammar for one call as a JSON object with `name` and `arguments`, under the rule that is named first.
fn json_call(tools: &[Value], bound: &mut Bound, rules: &mut Rules) -> Option<String> {
    let space = rules.space();
    let end = rules.add(format!("{space} \"}}\""));
    let between = rules.add(format!("\",\" {space} \"\\\"arguments\\\":\" {space}"));
    let mut names = BTreeMap::new();
    for tool in callables(tools) {
        let arguments = bound.arguments(&tool, rules);
        names.insert(Value::String(tool.name.to_owned()).to_string(), format!("{between} {arguments} {end}"));
    }
    let names = one_of(rules, &names)?;
    let names = rules.add(names);
    Some(rules.add(format!("\"{{\" {space} \"\\\"name\\\":\" {space} {names}")))
}

/// Holds a reply to one call as JSON.
pub(crate) fn one_json_call(tools: &[Value]) -> Option<Bound> {
    let (mut bound, mut rules) = (Bound::default(), Rules::default());
    let call = json_call(tools, &mut bound, &mut rules)?;
    bound.text = format!("root ::= {call}\n{}", rules.text());
    Some(bound)
}

/// Holds a reply, from the tag of a call on, to calls as JSON in tags.
pub(crate) fn tagged_json_calls(tools: &[Value], open: &str, close: &str) -> Option<Bound> {
    let (mut bound, mut rules) = (Bound::default(), Rules::default());
    let call = json_call(tools, &mut bound, &mut rules)?;
    let space = rules.space();
    let tagged = rules.add(format!("{} {space} {call} {space} {}", literal(open), literal(close)));
    bound.text = format!("root ::= {tagged} ({space} {tagged})* {space}\n{}", rules.text());
    Some(bound)
}

/// Binds the arguments in a grammar of llama.cpp to the tools. None when it is not of a kind that has one rule for
/// all arguments of a tool, or when the names of two tools give the same rule.
pub(crate) fn bind(grammar: &str, tools: &[Value]) -> Option<Bound> {
    let tools = callables(tools);
    let mut lines: Vec<(String, String)> =
        grammar.lines().filter_map(|line| line.split_once(" ::=")).map(owned).collect();
    let place: HashMap<String, usize> =
        lines.iter().enumerate().map(|(place, (name, _))| (name.clone(), place)).collect();
    let names: Vec<String> = tools.iter().map(|tool| format!("tool-{}", rule_name(tool.name))).collect();
    if tools.is_empty() || names.iter().collect::<HashSet<_>>().len() < names.len() {
        return None;
    }
    let (mut bound, mut rules) = (Bound::default(), Rules::default());
    let mut arguments = Vec::new();
    for (tool, rule) in tools.iter().zip(&names) {
        let schema = *place.get(&format!("{rule}-schema"))?;
        let own = bound.arguments(tool, &mut rules);
        lines[schema].1 = format!(" {own}");
        arguments.push(own);
    }
    if let Some(call) = calls_as_tree(&lines, &place, &tools, &names, &arguments, &mut rules) {
        let list = names.join(" | ");
        for (_, body) in &mut lines {
            if body.contains(&list) {
                *body = body.replace(&list, &call);
            }
        }
    }
    let own = rules.text();
    lines.extend(own.lines().filter_map(|line| line.split_once(" ::=")).map(owned));
    bound.text = reachable(&lines);
    Some(bound)
}

pub(super) fn owned((name, body): (&str, &str)) -> (String, String) {
    (name.to_owned(), body.to_owned())
}

/// One rule for a call of any tool. None when the rules of the tools differ in more than name and arguments.
fn calls_as_tree(
    lines: &[(String, String)],
    place: &HashMap<String, usize>,
    tools: &[Callable<'_>],
    names: &[String],
    arguments: &[String],
    rules: &mut Rules,
) -> Option<String> {
    const NAME: &str = "\u{1}";
    const SCHEMA: &str = "\u{2}";
    let mut shape: Option<Vec<String>> = None;
    for (tool, rule) in tools.iter().zip(names) {
        let (name, schema) = (literal(tool.name), format!("{rule}-schema"));
        let turned = |token: &str| match token {
            token if token == name => NAME.to_owned(),
            token if token == schema => SCHEMA.to_owned(),
            token => token.to_owned(),
        };
        let own: Vec<String> = tokens(&lines[*place.get(rule)?].1).into_iter().map(turned).collect();
        match &shape {
            Some(shape) if *shape != own => return None,
            Some(_) => {}
            None => shape = Some(own),
        }
    }
    let shape = shape?;
    let count = |wanted: &str| shape.iter().filter(|token| *token == wanted).count();
    if (count(NAME), count(SCHEMA)) != (1, 1) || has_choices(&shape) {
        return None;
    }
    let shape = without_groups_around(shape, NAME)?;
    let at = shape.iter().position(|token| token == NAME)?;
    let schema = shape.iter().position(|token| token == SCHEMA).filter(|schema| *schema > at)?;
    let (before, between, end) = (&shape[..at], &shape[at + 1..schema], &shape[schema + 1..]);
    let between = rules.add(format!("\"\" {}", between.join(" ")));
    let end = rules.add(format!("\"\" {}", end.join(" ")));
    let entries: BTreeMap<String, String> = tools
        .iter()
        .zip(arguments)
        .map(|(tool, arguments)| (tool.name.to_owned(), format!("{between} {arguments} {end}")))
        .collect();
    let tree = one_of(rules, &entries)?;
    let tree = rules.add(tree);
    Some(rules.add(format!("{} {tree}", before.join(" "))))
}

/// Whether there are choices outside of all groups.
fn has_choices(shape: &[String]) -> bool {
    let mut depth = 0;
    shape.iter().any(|token| {
        match token.as_str() {
            "(" => depth += 1,
            ")" => depth -= 1,
            _ => {}
        }
        token == "|" && depth == 0
    })
}

/// Takes the brackets away that stand around the name, when they are nothing but brackets.
fn without_groups_around(mut shape: Vec<String>, name: &str) -> Option<Vec<String>> {
    loop {
        let at = shape.iter().position(|token| token == name)?;
        let mut depth = 0;
        let open = shape[..at].iter().rposition(|token| match token.as_str() {
            ")" => {
                depth += 1;
                false
            }
            "(" if depth == 0 => true,
            "(" => {
                depth -= 1;
                false
            }
            _ => false,
        });
        let Some(open) = open else { return Some(shape) };
        let mut depth = 0;
        let mut close = None;
        for (place, token) in shape.iter().enumerate().skip(open) {
            match token.as_str() {
                "(" => depth += 1,
                ")" => depth -= 1,
                "|" if depth == 1 => return None,
                _ => {}
            }
            if depth == 0 {
                close = Some(place);
                break;
            }
        }
        let close = close?;
        if shape.get(close + 1).is_some_and(|next| next.starts_with(['*', '+', '?', '{'])) {
            return None;
        }
        shape.remove(close);
        shape.remove(open);
    }
}

/// The parts of a rule's body.
pub(super) fn tokens(body: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = body.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => closing(rest, '"'),
            '[' => closing(rest, ']'),
            '{' => rest.find('}').map_or(rest.len(), |at| at + 1),
            letter if letter.is_ascii_alphanumeric() || letter == '-' => rest
                .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-')
                .unwrap_or(rest.len()),
            letter => letter.len_utf8(),
        };
        let (token, more) = rest.split_at(end);
        out.push(token);
        rest = more.trim_start();
    }
    out
}

/// The end of a literal or a class.
fn closing(text: &str, close: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == close => return at + letter.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The rules that are of use, `root` first.
pub(super) fn reachable(lines: &[(String, String)]) -> String {
    let bodies: HashMap<&str, &str> =
        lines.iter().map(|(name, body)| (name.as_str(), body.as_str())).collect();
    let (mut seen, mut open) = (HashSet::from(["root"]), vec!["root"]);
    let mut out = String::new();
    while let Some(name) = open.pop() {
        let Some(body) = bodies.get(name) else { continue };
        out.push_str(name);
        out.push_str(" ::=");
        out.push_str(body);
        out.push('\n');
        for token in tokens(body) {
            if let Some((known, _)) = bodies.get_key_value(token)
                && seen.insert(known)
            {
                open.push(known);
            }
        }
    }
    out
}

/// As llama.cpp writes a name into its grammars.
pub(crate) fn rule_name(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        let kept = if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '-' };
        if kept != '-' || letter == '-' || !out.ends_with('-') {
            out.push(kept);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Value {
        let schema =
            json!({ "type": "object", "properties": { "n": { "enum": [1, 2] } }, "required": ["n"] });
        json!({ "type": "function", "function": { "name": name, "parameters": schema } })
    }

    const OF_TWO: &str = "root ::= tool-call\n\
        space ::= | \" \"\n\
        tool-call ::= \"<tool_call>\" space (tool-a-b | tool-c) space \"</tool_call>\"\n\
        tool-a-b ::= \"{\" space \"\\\"name\\\"\" (\"\\\"\" \"a_b\" \"\\\"\") space \":\" tool-a-b-schema space \"}\"\n\
        tool-a-b-schema ::= \"{\" \"}\"\n\
        tool-c ::= \"{\" space \"\\\"name\\\"\" (\"\\\"\" \"c\" \"\\\"\") space \":\" tool-c-schema space \"}\"\n\
        tool-c-schema ::= \"{\" \"}\"\n\
        unused ::= \"x\"\n";

    #[test]
    fn arguments_are_bound_and_names_become_a_tree() {
        let bound = bind(OF_TWO, &[tool("a_b"), tool("c")]).unwrap();
        assert!(bound.open.is_empty() && bound.loose.is_empty());
        assert!(!bound.text.contains("unused") && !bound.text.contains("tool-a-b"), "{}", bound.text);
        assert!(bound.text.contains("\"a_b\" ") && bound.text.contains("\"c\" "), "{}", bound.text);
    }

    #[test]
    fn names_that_fall_together_are_left_alone() {
        assert_eq!(bind(OF_TWO, &[tool("a_b"), tool("a.b")]), None);
        assert_eq!(bind(OF_TWO, &[tool("a_b"), tool("unknown")]), None);
        assert!(bind(OF_TWO, &[tool("a_b"), tool("c"), tool("c")]).is_some());
    }
}
