//! The tools of one server.
//!
//! Invariant: tools are read one by one. A bad one is left out with a reason, and costs none of the others.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use lectern_core::validate::{SchemaFault, ValidationError, check_schema, validate};
use lectern_core::{ToolAnnotations, ToolName, ToolSpec};
use serde_json::{Value, json};

use crate::cache::time_to_live;
use crate::config::ServerConfig;
use crate::handshake::Session;
use crate::naming::public_names;
use crate::peer::{Peer, PeerError};
use crate::trust::{Approval, ToolDefinition, ToolReview, review};

/// Pages of one list; more are a loop.
const MOST_PAGES: usize = 200;
/// How long a server that declared no tools may think about them.
const UNDECLARED: Duration = Duration::from_secs(3);

/// The tools of one server, by public name.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    pub(crate) specs: Arc<[ToolSpec]>,
    /// How long the list holds by the word of a server that declares its tools; none when it does not say.
    pub(crate) holds: Option<Duration>,
    entries: HashMap<ToolName, Arc<Tool>>,
    /// Those that the user has not seen as they are now; most of these are not among `specs`.
    pub(crate) unseen: Arc<[ToolReview]>,
    /// Why some were left out.
    pub(crate) dropped: Vec<String>,
}

/// One tool.
#[derive(Debug, PartialEq)]
pub(crate) struct Tool {
    pub(crate) spec: ToolSpec,
    /// Whether it may be called as a task (MCP 2025-11-25, `execution.taskSupport`).
    pub(crate) as_task: bool,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    #[error("it refused `tools/list`: {0}")]
    Refused(#[from] PeerError),
    #[error("its answer to `tools/list` has no list of tools")]
    NoList,
    #[error("its list of tools has no end")]
    Endless,
}

/// What is known about a server before its tools are read.
pub(crate) struct Listing<'a> {
    pub(crate) config: &'a ServerConfig,
    pub(crate) approval: Option<&'a dyn Approval>,
    pub(crate) most: usize,
}

impl Listing<'_> {
    /// Asks for all tools.
    pub(crate) async fn fetch(&self, peer: &Peer, session: &Session) -> Result<Tools, ListError> {
        if session.can("/tools") {
            let (raw, holds) = self.pages(peer, session).await?;
            return Ok(Tools { holds, ..self.read(raw) });
        }
        // Some servers forget to declare what they have. Those that really have none may refuse or say nothing.
        let asked = tokio::time::timeout(UNDECLARED, self.pages(peer, session)).await;
        let (raw, _) = asked.ok().and_then(Result::ok).unwrap_or_default();
        Ok(self.read(raw))
    }

    /// All entries, and how long the page holds that holds the shortest time.
    async fn pages(
        &self,
        peer: &Peer,
        session: &Session,
    ) -> Result<(Vec<Value>, Option<Duration>), ListError> {
        let mut raw = Vec::new();
        let mut holds: Option<Duration> = None;
        let mut cursor: Option<Value> = None;
        for _ in 0..MOST_PAGES {
            let params = cursor.take().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
            let mut answer = peer.ask("tools/list", session.params(params)).await?;
            let Some(Value::Array(tools)) = answer.get_mut("tools").map(Value::take) else {
                return Err(ListError::NoList);
            };
            raw.extend(tools);
            holds = holds.into_iter().chain(time_to_live(&answer)).min();
            cursor = answer.get_mut("nextCursor").map(Value::take).filter(Value::is_string);
            // What is over the limit is not even asked for.
            if cursor.is_none() || raw.len() > self.most {
                return Ok((raw, holds));
            }
        }
        Err(ListError::Endless)
    }

    fn read(&self, mut raw: Vec<Value>) -> Tools {
        let mut dropped = Vec::new();
        if raw.len() > self.most {
            dropped.push(format!("more than {} tools: the rest is left out", self.most));
            raw.truncate(self.most);
        }
        let mut seen = HashSet::new();
        let mut specs = Vec::new();
        let mut tasks = HashSet::new();
        for (position, value) in raw.into_iter().enumerate() {
            // Nobody looks at it without an approval.
            let definition = self.approval.map(|_| ToolDefinition::of(&value));
            let support = value.pointer("/execution/taskSupport").and_then(Value::as_str);
            let as_task = matches!(support, Some("required" | "optional"));
            match self.tool(value) {
                Ok(spec) if seen.insert(spec.original_name.clone()) => {
                    if as_task {
                        tasks.insert(spec.original_name.clone());
                    }
                    specs.push((spec, definition));
                }
                Ok(spec) => dropped.push(format!("tool `{}`: listed twice", spec.original_name)),
                Err((Some(name), reason)) => dropped.push(format!("tool `{name}`: {reason}")),
                Err((None, reason)) => dropped.push(format!("tool number {}: {reason}", position + 1)),
            }
        }
        let names: Vec<String> = specs.iter().map(|(spec, _)| spec.original_name.clone()).collect();
        for ((spec, _), name) in specs.iter_mut().zip(public_names(self.config.id.as_str(), &names)) {
            spec.name = name.into();
        }
        specs.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        // Two hashes may meet if a server means them to; a model's provider refuses a request with one name twice.
        specs.dedup_by(|(a, _), (b, _)| a.name == b.name);
        self.reviewed(specs, &tasks, dropped)
    }

    fn reviewed(
        &self,
        listed: Vec<(ToolSpec, Option<ToolDefinition>)>,
        tasks: &HashSet<String>,
        mut dropped: Vec<String>,
    ) -> Tools {
        let Some(approval) = self.approval else {
            let specs = listed.into_iter().map(|(spec, _)| spec).collect();
            return Tools::new(specs, tasks, Vec::new(), dropped);
        };
        let listed = listed.into_iter().filter_map(|(spec, definition)| Some((spec, definition?))).collect();
        let (specs, unseen, reasons) = review(approval, self.config, listed);
        dropped.extend(reasons);
        Tools::new(specs, tasks, unseen, dropped)
    }

    fn tool(&self, mut value: Value) -> Result<ToolSpec, (Option<String>, String)> {
        let name = match value.get("name") {
            Some(Value::String(name)) if !name.is_empty() => name.clone(),
            _ => return Err((None, "it has no name".into())),
        };
        let bad = |reason: String| (Some(name.clone()), reason);
        let input_schema = match value.get_mut("inputSchema").map(Value::take) {
            None => json!({"type": "object"}),
            Some(schema) => checked_schema(schema).map_err(bad)?,
        };
        if self.config.program().is_none() {
            // MCP 2026-07-28, Streamable HTTP: such a tool must be left out.
            crate::http::mirrored(&input_schema).map_err(bad)?;
        }
        let annotations = value.get("annotations");
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        Ok(ToolSpec {
            // Named when all are known.
            name: ToolName::from(""),
            server: self.config.id.clone(),
            title: text(value.get("title")).or_else(|| text(annotations?.get("title"))),
            description: text(value.get("description")).unwrap_or_default(),
            input_schema,
            output_schema: value.get("outputSchema").filter(|schema| schema.is_object()).cloned(),
            annotations: read_annotations(annotations),
            trusted: self.config.trusted,
            original_name: name,
        })
    }
}

impl Tools {
    fn new(
        specs: Vec<ToolSpec>,
        tasks: &HashSet<String>,
        unseen: Vec<ToolReview>,
        dropped: Vec<String>,
    ) -> Self {
        let tool =
            |spec: &ToolSpec| Tool { as_task: tasks.contains(&spec.original_name), spec: spec.clone() };
        let entries = specs.iter().map(|spec| (spec.name.clone(), Arc::new(tool(spec)))).collect();
        Self { specs: specs.into(), holds: None, entries, unseen: unseen.into(), dropped }
    }

    /// Whether it is the same list, however long it holds.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.specs == other.specs
            && self.entries == other.entries
            && self.unseen == other.unseen
            && self.dropped == other.dropped
    }

    pub(crate) fn get(&self, name: &ToolName) -> Option<Arc<Tool>> {
        self.entries.get(name).cloned()
    }

    /// Why a tool that is there is not offered.
    pub(crate) fn withheld(&self, name: &ToolName) -> Option<String> {
        self.unseen.iter().find_map(|review| review.withheld(name))
    }
}

impl Tool {
    /// What is wrong with a structured result; none when it is as promised, or when nothing was promised.
    pub(crate) fn violation(&self, structured: Option<&Value>) -> Option<String> {
        let schema = self.spec.output_schema.as_ref()?;
        let Some(structured) = structured else {
            return Some("the tool promises a structured result and gave none".into());
        };
        // A schema that can't be used promises nothing.
        let error = validate(schema, structured).ok()?.into_iter().next()?;
        let ValidationError { path, expected, got } = error;
        let place = if path.is_empty() { "its top" } else { &path };
        Some(format!(
            "the structured result does not match the tool's output schema: at {place}, expected {expected}, got {got}"
        ))
    }
}

/// A schema of arguments that can be used: an object of objects, and valid as a schema.
fn checked_schema(schema: Value) -> Result<Value, String> {
    let Value::Object(fields) = &schema else {
        return Err("its input schema is not an object".into());
    };
    match fields.get("type") {
        None => {}
        Some(Value::String(kind)) if kind == "object" => {}
        Some(other) => return Err(format!("its input schema is of type {other}, not of type object")),
    }
    match check_schema(&schema) {
        Ok(()) => Ok(schema),
        Err(SchemaFault(reason)) => Err(format!("its input schema is not valid: {reason}")),
    }
}

/// Claims that are not plain yes or no are no claims.
fn read_annotations(annotations: Option<&Value>) -> ToolAnnotations {
    let hint = |name: &str| annotations.and_then(|all| all.get(name)).and_then(Value::as_bool);
    ToolAnnotations {
        read_only: hint("readOnlyHint"),
        destructive: hint("destructiveHint"),
        idempotent: hint("idempotentHint"),
        open_world: hint("openWorldHint"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(most: usize, raw: Value) -> Tools {
        let config = ServerConfig::new("s", "x", ["-"]);
        let Value::Array(raw) = raw else { panic!("not a list") };
        Listing { config: &config, approval: None, most }.read(raw)
    }

    #[test]
    fn bad_tools_are_left_out_and_good_ones_stay() {
        let good = json!({"type": "object", "properties": {"q": {"type": "string"}}});
        let tools = read(
            100,
            json!([
                {"name": "z", "description": " as it is ", "inputSchema": good, "icons": [{"sizes": 3}],
                 "annotations": {"readOnlyHint": "true", "destructiveHint": false, "title": "Zed"}},
                {"name": "boolean", "inputSchema": true},
                {"name": "list", "inputSchema": {"type": "array"}},
                {"name": "nonsense", "inputSchema": {"type": "object", "properties": {"a": {"type": 5}}}},
                {"name": "away", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:1/x"}}}},
                {"name": "z", "inputSchema": good},
                {"inputSchema": good},
                "nothing",
                {"name": "bare"},
            ]),
        );
        assert_eq!(tools.specs.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["s__bare", "s__z"]);
        let z = &tools.specs[1];
        assert_eq!((z.description.as_str(), z.title.as_deref()), (" as it is ", Some("Zed")));
        assert_eq!(z.input_schema, good);
        assert_eq!((z.annotations.read_only, z.annotations.destructive), (None, Some(false)));
        assert_eq!(tools.dropped.len(), 7, "{:?}", tools.dropped);
        assert!(tools.dropped[0].starts_with("tool `boolean`: "), "{:?}", tools.dropped);
        assert!(tools.dropped[5].starts_with("tool number 7: "), "{:?}", tools.dropped);
    }

    #[test]
    fn too_many_tools_are_cut() {
        let raw: Vec<Value> = (0..5).map(|n| json!({"name": format!("t{n}")})).collect();
        let tools = read(3, Value::Array(raw));
        assert_eq!((tools.specs.len(), tools.dropped.len()), (3, 1));
    }

    #[test]
    fn promises_about_results_are_checked() {
        let schema =
            json!({"type": "object", "properties": {"sum": {"type": "number"}}, "required": ["sum"]});
        let tools = read(9, json!([{"name": "add", "outputSchema": schema}, {"name": "free"}]));
        let add = tools.get(&ToolName::from("s__add")).unwrap();
        assert_eq!(add.violation(Some(&json!({"sum": 3}))), None);
        assert!(add.violation(Some(&json!({"sum": "3"}))).unwrap().contains("at /sum, expected"));
        assert!(add.violation(None).is_some());
        assert_eq!(tools.get(&ToolName::from("s__free")).unwrap().violation(None), None);
    }
}
