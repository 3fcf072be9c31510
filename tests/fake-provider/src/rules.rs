//! What Vertex AI demands of `contents` and `tools`, and answers 400 to.
//!
//! Invariant: pure. Each rule stands in Google's documents or was met in the wild; the sentence is the real one where it
//! is known, but nobody may read it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Stands for a signature that there never was.
pub const SENTINEL: &str = "skip_thought_signature_validator";

/// Keywords of `Schema`.
const KEYWORDS: &[&str] = &[
    "type",
    "properties",
    "required",
    "items",
    "enum",
    "anyOf",
    "nullable",
    "format",
    "default",
    "description",
    "title",
    "pattern",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "additionalProperties",
    "defs",
    "ref",
];
const TYPES: &[&str] = &["OBJECT", "ARRAY", "STRING", "INTEGER", "NUMBER", "BOOLEAN", "NULL"];

/// Fields of `Part`, of what it holds, and of `GenerationConfig`.
const PART: &[&str] = &[
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "videoMetadata",
    "mediaResolution",
];
const CALL: &[&str] = &["id", "name", "args"];
const RESPONSE: &[&str] = &["id", "name", "response", "parts"];
const BLOB: &[&str] = &["mimeType", "data", "displayName"];
const GENERATION: &[&str] = &[
    "temperature",
    "topP",
    "topK",
    "candidateCount",
    "maxOutputTokens",
    "stopSequences",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "responseModalities",
    "responseLogprobs",
    "logprobs",
    "thinkingConfig",
    "speechConfig",
    "mediaResolution",
];
const THINKING: &[&str] = &["includeThoughts", "thinkingBudget", "thinkingLevel"];

/// A call that this server made.
#[derive(Clone, Debug, PartialEq)]
pub struct Issued {
    /// The function.
    pub name: String,
    /// Its arguments.
    pub args: Value,
    /// Its id, when it got one.
    pub id: Option<String>,
    /// Its signature, when it got one.
    pub signature: Option<String>,
}

/// Checks a whole request. `signed_text` are the signatures that stood on text, with the text.
pub fn check(body: &Value, issued: &[Issued], signed_text: &[(String, String)]) -> Result<(), String> {
    body.as_object().ok_or("the body is no object")?;
    let known = [
        "contents",
        "systemInstruction",
        "tools",
        "toolConfig",
        "generationConfig",
        "safetySettings",
        "cachedContent",
        "labels",
    ];
    only(body, &known)?;
    check_generation(&body["generationConfig"])?;
    check_tools(body)?;
    check_contents(body["contents"].as_array().ok_or("contents is required")?, issued, signed_text)
}

/// An unknown field is refused, wherever it stands.
fn only(value: &Value, known: &[&str]) -> Result<(), String> {
    let fields = value.as_object().into_iter().flat_map(Map::keys);
    match fields.into_iter().find(|field| !known.contains(&field.as_str())) {
        Some(field) => Err(format!("Unknown name \"{field}\": Cannot find field.")),
        None => Ok(()),
    }
}

fn check_generation(config: &Value) -> Result<(), String> {
    only(config, GENERATION)?;
    let thinking = &config["thinkingConfig"];
    only(thinking, THINKING)?;
    if thinking.get("thinkingBudget").is_some() && thinking.get("thinkingLevel").is_some() {
        return Err("You can only set only one of thinking budget and thinking level.".to_owned());
    }
    Ok(())
}

fn check_part(part: &Value) -> Result<(), String> {
    only(part, PART)?;
    only(&part["functionCall"], CALL)?;
    only(&part["functionResponse"], RESPONSE)?;
    only(&part["inlineData"], BLOB)
}

fn check_contents(
    contents: &[Value],
    issued: &[Issued],
    signed_text: &[(String, String)],
) -> Result<(), String> {
    if contents.first().is_none_or(|first| first["role"] != "user") {
        return Err("the first content has to be the user's".to_owned());
    }
    for (at, content) in contents.iter().enumerate() {
        let parts =
            content["parts"].as_array().filter(|parts| !parts.is_empty()).ok_or("parts is required")?;
        only(content, &["role", "parts"])?;
        parts.iter().try_for_each(check_part)?;
        let before = at.checked_sub(1).map(|at| &contents[at]);
        match content["role"].as_str() {
            Some("model") => check_model(parts, before, contents.get(at + 1), issued, signed_text)?,
            Some("user") => check_user(parts, before)?,
            _ => return Err("Please use a valid role: user, model.".to_owned()),
        }
    }
    if contents.last().is_some_and(|last| last["role"] != "user") {
        return Err("the last content has to be the user's".to_owned());
    }
    Ok(())
}

fn of<'a>(parts: &'a [Value], kind: &str) -> Vec<&'a Value> {
    parts.iter().filter_map(|part| part.get(kind)).collect()
}

fn check_user(parts: &[Value], before: Option<&Value>) -> Result<(), String> {
    let responses = of(parts, "functionResponse");
    let asked = before
        .and_then(|before| before["parts"].as_array())
        .map_or(Vec::new(), |parts| of(parts, "functionCall"));
    if !responses.is_empty() && asked.len() != responses.len() {
        return Err("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned());
    }
    for (call, response) in asked.iter().zip(&responses) {
        if call["name"] != response["name"] || call.get("id") != response.get("id") {
            return Err(format!("the response {response} does not match the call {call}"));
        }
        if !response["response"].is_object() {
            return Err("a response is an object".to_owned());
        }
    }
    if parts.iter().any(|part| part["text"].as_str().is_some_and(str::is_empty)) {
        return Err("a text part is empty".to_owned());
    }
    Ok(())
}

fn check_model(
    parts: &[Value],
    before: Option<&Value>,
    after: Option<&Value>,
    issued: &[Issued],
    signed_text: &[(String, String)],
) -> Result<(), String> {
    let calls: Vec<&Value> = parts.iter().filter(|part| part.get("functionCall").is_some()).collect();
    if before.is_none_or(|before| before["role"] != "user") {
        return Err("Please ensure that function call turns come immediately after a user turn or after a function response turn.".to_owned());
    }
    let answered = after
        .and_then(|after| after["parts"].as_array())
        .map_or(0, |parts| of(parts, "functionResponse").len());
    if !calls.is_empty() && answered != calls.len() {
        return Err("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".to_owned());
    }
    for (at, part) in calls.iter().enumerate() {
        check_call(part, at == 0, issued)?;
    }
    for part in parts.iter().filter(|part| part.get("functionCall").is_none()) {
        let Some(signature) = part["thoughtSignature"].as_str() else { continue };
        let text = part["text"].as_str().unwrap_or_default();
        if !signed_text.iter().any(|(known, on)| known == signature && on == text) {
            return Err(format!("the signature {signature} does not belong to the text {text:?}"));
        }
    }
    Ok(())
}

fn check_call(part: &Value, first: bool, issued: &[Issued]) -> Result<(), String> {
    let call = &part["functionCall"];
    let id = call.get("id").and_then(Value::as_str).map(str::to_owned);
    let signature = part.get("thoughtSignature").and_then(Value::as_str).map(str::to_owned);
    // The same call may have been made twice, once signed and once as the second of parallel ones.
    let same: Vec<&Issued> = issued
        .iter()
        .filter(|ours| {
            call["name"] == ours.name.as_str() && call.get("args") == Some(&ours.args) && ours.id == id
        })
        .collect();
    match (same.first(), signature) {
        (Some(_), signature) if same.iter().any(|ours| ours.signature == signature) => Ok(()),
        (Some(ours), Some(signature)) => Err(format!("{call}: {signature} is not {:?}", ours.signature)),
        (None, Some(signature)) if signature == SENTINEL && id.is_none() => Ok(()),
        (None, Some(_)) => Err(format!("Corrupted thought signature on {call}")),
        (None, None) if !first && id.is_none() => Ok(()),
        (Some(_) | None, None) => Err(format!(
            "Function call is missing a thought_signature in functionCall parts. Additional data, function call {call}"
        )),
    }
}

fn check_tools(body: &Value) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for declaration in body["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|tool| tool["functionDeclarations"].as_array().cloned().unwrap_or_default())
    {
        let name = declaration["name"].as_str().unwrap_or_default();
        let first = name.chars().next();
        let good = first.is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
            && name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        if !good || !names.insert(name.to_owned()) {
            return Err(format!("Invalid function name {name:?}"));
        }
        if declaration.get("parameters").is_some() && declaration.get("parametersJsonSchema").is_some() {
            return Err("parameters and parametersJsonSchema are mutually exclusive".to_owned());
        }
        if let Some(schema) = declaration.get("parameters") {
            if schema["type"] != "OBJECT" || schema["properties"].as_object().is_none_or(Map::is_empty) {
                return Err(format!("{name}: parameters.properties: should be non-empty for OBJECT type"));
            }
            check_schema(schema).map_err(|why| format!("{name}: {why}"))?;
        }
    }
    let config = &body["toolConfig"]["functionCallingConfig"];
    if config.is_object() && !["AUTO", "ANY", "NONE", "VALIDATED"].iter().any(|mode| config["mode"] == *mode)
    {
        return Err("Invalid mode".to_owned());
    }
    let allowed = config["allowedFunctionNames"].as_array().into_iter().flatten();
    if let Some(name) = allowed.filter_map(Value::as_str).find(|name| !names.contains(*name)) {
        return Err(format!("{name} is not declared"));
    }
    Ok(())
}

fn check_schema(schema: &Value) -> Result<(), String> {
    let fields = schema.as_object().ok_or("a schema is an object")?;
    if let Some(unknown) = fields.keys().find(|name| !KEYWORDS.contains(&name.as_str())) {
        return Err(format!("Unknown name \"{unknown}\": Cannot find field."));
    }
    if let Some(kind) = fields.get("type")
        && !TYPES.iter().any(|known| kind == known)
    {
        return Err(format!("Invalid value at 'type': {kind}"));
    }
    if fields.contains_key("anyOf") && fields.len() > 1 {
        return Err("When using any_of, it must be the only field set.".to_owned());
    }
    if fields.contains_key("enum") && fields.get("type").is_none_or(|kind| kind != "STRING") {
        return Err("enum: only allowed for STRING type".to_owned());
    }
    let properties = fields.get("properties").and_then(Value::as_object);
    for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().ok_or("required holds names")?;
        if properties.is_none_or(|properties| !properties.contains_key(name)) {
            return Err(format!("required: property {name} is not defined"));
        }
    }
    if fields.get("type").is_some_and(|kind| kind == "ARRAY") && !fields.contains_key("items") {
        return Err("items: missing field".to_owned());
    }
    properties.into_iter().flat_map(Map::values).try_for_each(check_schema)?;
    fields.get("items").into_iter().try_for_each(check_schema)?;
    fields
        .get("additionalProperties")
        .filter(|more| !more.is_boolean())
        .into_iter()
        .try_for_each(check_schema)?;
    fields.get("anyOf").and_then(Value::as_array).into_iter().flatten().try_for_each(check_schema)
}
