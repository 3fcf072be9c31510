//! What Gemini is asked, and whole turns against a Vertex AI that forgives nothing.

use std::sync::Arc;

use futures::StreamExt;

use lectern_cloud::gemini::{Dialect, Loss, reduce};
use lectern_cloud::{Credentials, Endpoint, GeminiConfig, GeminiModel, GeminiOptions, Limits};
use lectern_core::testing::{Behaviour, ScriptedTools};
use lectern_core::{
    Actor, AnswerForm, Blob, ChatModel, ChatRequest, Delta, EarlierTurns, EventKind, ExposurePolicy,
    FinishReason, Message, Part, PermissionBook, Policy, Sampling, Store, ThinkingOptions, ToolChoice,
    ToolMode, ToolOutcome, ToolResult, ToolSet, TurnInput, TurnOutcome, Turns, UserMessage,
};
use lectern_fake_provider::rules::{self, SENTINEL};
use lectern_fake_provider::vertex::{Step, Vertex};
use lectern_fake_provider::{Answer, Server};
use serde_json::{Value, json};

use crate::endpoint::limits;
use crate::support::{all, ask, call, error_of, info, says, text_of, tool, user};

fn config(url: &str, endpoint: Endpoint, credentials: Credentials, limits: Limits) -> GeminiConfig {
    GeminiConfig {
        info: info("gemini"),
        model: "gemini-3.5-flash".to_owned(),
        endpoint,
        base: Some(url::Url::parse(url).unwrap()),
        credentials,
        options: GeminiOptions::default(),
        limits,
    }
}

pub fn developer(url: &str, limits: Limits) -> GeminiModel {
    let key = Credentials::Key("secret-key-1".into());
    GeminiModel::new(config(url, Endpoint::Developer, key, limits)).unwrap()
}

fn in_project() -> Endpoint {
    Endpoint::Vertex { project: "p-1".into(), location: "europe-west1".into() }
}

pub fn vertex(url: &str, credentials: Credentials, limits: Limits) -> GeminiModel {
    GeminiModel::new(config(url, in_project(), credentials, limits)).unwrap()
}

fn body(request: &ChatRequest) -> Value {
    vertex("http://127.0.0.1:9", Credentials::None, limits()).body(request).unwrap()
}

/// A tool's schema with everything that `parameters` does not know.
fn rich() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "path": {"type": ["string", "null"], "format": "uri", "minLength": 1},
            "kind": {"oneOf": [{"const": "a"}, {"enum": ["b", "c"]}]},
            "count": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5},
            "level": {"type": "integer", "enum": [1, 2, 3]},
            "either": {"type": ["string", "integer"], "description": "D", "maxLength": 9, "minimum": 3},
            "list": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "uniqueItems": true},
            "bare": {"type": "array"},
            "tree": {"$ref": "#/$defs/node"},
            "any": true,
            "not": {"not": {"type": "string"}, "type": "string"},
            "open": {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": {"type": "string"}},
        },
        "required": ["path", "nowhere"],
        "if": {"properties": {"path": {"const": "x"}}}, "then": {"required": ["count"]},
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "v": {"type": "string"}}}},
        "additionalProperties": false,
    })
}

#[test]
fn what_is_not_set_is_not_sent() {
    assert_eq!(
        body(&ask("hi")),
        json!({
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
        })
    );
}

#[test]
fn a_model_of_another_family_is_not_told_to_think() {
    for (name, thoughts) in [("gemma-3-27b-it", false), ("learnlm-2", false), ("gemini-flash-latest", true)] {
        let mut config = config("http://127.0.0.1:9", Endpoint::Developer, Credentials::None, limits());
        config.model = name.to_owned();
        let body = |config: GeminiConfig| GeminiModel::new(config).unwrap().body(&ask("hi")).unwrap();
        let sent = body(config.clone());
        assert_eq!(
            sent.pointer("/generationConfig/thinkingConfig/includeThoughts").is_some(),
            thoughts,
            "{name}"
        );
        config.options.thoughts = Some(true);
        assert_eq!(body(config)["generationConfig"]["thinkingConfig"]["includeThoughts"], true, "{name}");
    }
}

#[test]
fn everything_that_is_set_is_sent() {
    let blob = |mime: &str| Part::Image(Blob { mime: mime.to_owned(), base64: "QUJD".to_owned() });
    let parts = vec![Part::Text { text: "look".into() }, blob("image/png"), blob("application/pdf")];
    let request = ChatRequest {
        system: Some("Be brief.".into()),
        messages: vec![Message::User(UserMessage { parts, context: Some("It is Monday.".into()) })],
        tools: vec![tool("7zip", json!({"type": "object", "properties": {"a": {"type": "string"}}}))],
        tool_choice: ToolChoice::Tool("7zip".into()),
        tool_mode: ToolMode::Native,
        tail: Some("Answer now.".into()),
        thinking: ThinkingOptions { enabled: None, budget: Some(100) },
        sampling: Sampling {
            temperature: Some(0.7),
            top_p: Some(0.9),
            top_k: Some(40),
            min_p: Some(0.1),
            repeat_penalty: Some(1.1),
            frequency_penalty: Some(-0.5),
            presence_penalty: Some(0.5),
            seed: Some(7),
            max_tokens: Some(99),
            stop: vec!["END".into()],
        },
        answer: AnswerForm::JsonSchema(json!({"type": "object", "properties": {"x": {"type": "string"}}})),
        ..ChatRequest::default()
    };
    let sent = body(&request);
    let alias = sent["tools"][0]["functionDeclarations"][0]["name"].as_str().unwrap().to_owned();
    assert!(alias.starts_with("_7zip_"), "{alias}");
    assert_eq!(
        sent["contents"],
        json!([{"role": "user", "parts": [
            {"text": "look"},
            {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
            {"inlineData": {"mimeType": "application/pdf", "data": "QUJD"}},
            {"text": "(It is Monday.)"},
            {"text": "Answer now."},
        ]}])
    );
    assert_eq!(sent["systemInstruction"], json!({"parts": [{"text": "Be brief."}]}));
    assert_eq!(
        sent["toolConfig"],
        json!({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [alias]}})
    );
    assert_eq!(
        sent["generationConfig"],
        json!({
            "temperature": 0.7, "topP": 0.9, "topK": 40, "maxOutputTokens": 99, "stopSequences": ["END"], "seed": 7,
            "presencePenalty": 0.5, "frequencyPenalty": -0.5,
            "thinkingConfig": {"thinkingBudget": 100, "includeThoughts": true},
            "responseMimeType": "application/json",
            "responseSchema": {"type": "OBJECT", "properties": {"x": {"type": "STRING"}}},
        })
    );
    rules::check(&sent, &[], &[]).unwrap();
}

#[test]
fn a_rich_schema_is_reduced_to_what_vertex_knows_and_the_loss_is_told() {
    let request = ChatRequest { tools: vec![tool("rich", rich())], ..ask("hi") };
    let sent = body(&request);
    rules::check(&sent, &[], &[]).unwrap();
    let properties = &sent["tools"][0]["functionDeclarations"][0]["parameters"]["properties"];
    assert_eq!(properties["path"], json!({"nullable": true, "type": "STRING", "minLength": 1}));
    assert_eq!(properties["count"], json!({"type": "INTEGER", "minimum": 1}));
    assert_eq!(properties["level"], json!({"type": "INTEGER"}));
    let model = vertex("http://127.0.0.1:9", Credentials::None, limits());
    let [Loss::Keywords { tool, keywords }] = &model.losses(&request.tools)[..] else { panic!() };
    assert_eq!(tool, "rich");
    for lost in
        ["multipleOf", "oneOf", "enum", "prefixItems", "uniqueItems", "not", "if", "then", "$ref", "format"]
    {
        assert!(keywords.iter().any(|keyword| keyword == lost), "{lost}: {keywords:?}");
    }
    // The developer API takes it as it is.
    let whole = developer("http://127.0.0.1:9", limits());
    let declaration = &whole.body(&request).unwrap()["tools"][0]["functionDeclarations"][0];
    assert_eq!(declaration["parametersJsonSchema"], rich());
    assert!(declaration.get("parameters").is_none() && whole.losses(&request.tools).is_empty());
}

#[test]
fn one_impossible_schema_costs_that_tool_alone() {
    let mut deep = json!({"type": "string"});
    for _ in 0..200 {
        deep = json!({"type": "object", "properties": {"d": deep}});
    }
    let good = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tools = vec![
        tool("text", json!({"type": "string"})),
        tool("never", json!(false)),
        tool("deep", deep),
        tool("good", good),
        tool("empty", json!({"type": "object", "properties": {}})),
    ];
    let request = ChatRequest { tools, ..ask("hi") };
    for dialect in [Dialect::Subset, Dialect::JsonSchema] {
        let mut config = config("http://127.0.0.1:9", in_project(), Credentials::None, limits());
        config.options.dialect = Some(dialect);
        let model = GeminiModel::new(config).unwrap();
        let sent = model.body(&request).unwrap();
        rules::check(&sent, &[], &[]).unwrap();
        let declared = sent["tools"][0]["functionDeclarations"].as_array().unwrap();
        let names: Vec<_> = declared.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["good", "empty"], "{dialect:?}");
        assert_eq!(declared.last().unwrap(), &json!({"name": "empty", "description": "Does empty."}));
    }
}

#[test]
fn whatever_a_schema_is_what_comes_out_is_of_the_subset() {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(json!({"type": "string", "enum": ["a", "", null]})),
        Just(json!({"type": ["integer", "string", "null"], "enum": [1, "x"]})),
        Just(json!({"const": 5})),
        Just(json!({"$ref": "#/$defs/loop"})),
        Just(json!({"$ref": "https://elsewhere/x"})),
        Just(json!({"type": "array", "items": [{"type": "string"}, {"type": "null"}]})),
        Just(json!({"type": "null"})),
        Just(json!(false)),
        Just(json!({"type": "number", "exclusiveMaximum": true, "maximum": "x", "minimum": 1})),
        Just(json!({"required": ["a", 5], "properties": []})),
        Just(json!([1])),
    ];
    let schema = leaf.prop_recursive(4, 40, 4, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            list.clone().prop_map(|all| json!({"anyOf": all, "description": "d", "default": 1})),
            list.clone().prop_map(|all| json!({"oneOf": all, "properties": {"q": {"type": "string"}}})),
            list.clone().prop_map(|all| json!({"allOf": all, "type": "object"})),
            list.prop_map(|all| json!({"type": "object", "required": ["p0"], "x-y": 1, "properties":
                all.into_iter().enumerate().map(|(at, one)| (format!("p{at}"), one)).collect::<serde_json::Map<_, _>>()})),
            inner.clone().prop_map(|one| json!({"type": "array", "items": one, "contains": {}})),
            inner.prop_map(|one| json!({"type": "object", "additionalProperties": one})),
        ]
    });
    proptest!(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() }, |(inner in schema)| {
        let mut whole = json!({"type": "object", "properties": {"it": inner.clone()}});
        whole["$defs"] = json!({"loop": {"type": "object", "properties": {"next": {"$ref": "#/$defs/loop"}}}});
        for schema in [whole, inner] {
            let Ok(reduced) = reduce(&schema) else { continue };
            if let Some(parameters) = reduced.schema {
                let body = json!({"contents": [{"role": "user", "parts": [{"text": "x"}]}],
                    "tools": [{"functionDeclarations": [{"name": "f", "parameters": parameters}]}]});
                prop_assert_eq!(rules::check(&body, &[], &[]), Ok(()), "{}", body);
            }
        }
    });
}

#[test]
fn the_history_of_another_model_goes_with_the_sentinel() {
    let parallel = says(
        vec![
            Part::Text { text: "Let me see.".into() },
            Part::ToolCall(call("1", "notes__read", json!({"path": "a"}))),
            Part::ToolCall(call("2", "notes__read", json!({"path": "b"}))),
        ],
        "starter",
    );
    let result = |id: &str, outcome| {
        Message::Tool(ToolResult::of(&call(id, "notes__read", json!({})), outcome, format!("result {id}")))
    };
    let messages = vec![
        user("read"),
        parallel,
        result("1", ToolOutcome::Succeeded),
        result("2", ToolOutcome::Failed),
        says(vec![Part::Text { text: "Done.".into() }], "starter"),
        user("and now?"),
    ];
    let sent = body(&ChatRequest { messages, ..ChatRequest::default() });
    rules::check(&sent, &[], &[]).unwrap();
    let call = |path: &str| json!({"name": "notes__read", "args": {"path": path}});
    assert_eq!(
        sent["contents"],
        json!([
            {"role": "user", "parts": [{"text": "read"}]},
            {"role": "model", "parts": [
                {"text": "Let me see."},
                {"functionCall": call("a"), "thoughtSignature": SENTINEL},
                {"functionCall": call("b")},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "notes__read", "response": {"output": "result 1"}}},
                {"functionResponse": {"name": "notes__read", "response": {"error": "result 2"}}},
            ]},
            {"role": "model", "parts": [{"text": "Done."}]},
            {"role": "user", "parts": [{"text": "and now?"}]},
        ])
    );
}

#[test]
fn a_sound_that_a_tool_returns_goes_beside_its_response() {
    let sound = Blob { mime: "audio/wav".to_owned(), base64: "QUJD".to_owned() };
    let made = call("1", "hear", json!({}));
    let mut result = ToolResult::of(&made, ToolOutcome::Succeeded, "a bird");
    result.content.push(lectern_core::Content::Audio(sound));
    let messages = vec![user("hear"), says(vec![Part::ToolCall(made)], "other"), Message::Tool(result)];
    let sent = body(&ChatRequest { messages, ..ChatRequest::default() });
    rules::check(&sent, &[], &[]).unwrap();
    let inline = json!({"inlineData": {"mimeType": "audio/wav", "data": "QUJD"}});
    assert_eq!(sent["contents"][2]["parts"][1], inline);
}

#[tokio::test]
async fn thoughts_are_apart_and_tokens_are_counted() {
    let chunk = json!({
        "candidates": [{"content": {"role": "model", "parts": [
            {"text": "Hm.", "thought": true}, {"text": "Yes."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 7,
            "thoughtsTokenCount": 20, "totalTokenCount": 127},
    });
    let server = Server::script(vec![Answer::events(&[chunk])]).await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert!(deltas.contains(&Ok(Delta::Thinking("Hm.".into()))));
    assert_eq!(text_of(&deltas), "Yes.");
    let usage = deltas.iter().find_map(|delta| match delta {
        Ok(Delta::Usage(usage)) => Some(*usage),
        _ => None,
    });
    let usage = usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.reused_tokens, usage.generated_tokens), (100, 60, 27));
    assert_eq!(usage.thinking_tokens, Some(20));
    assert_eq!(deltas.last(), Some(&Ok(Delta::Finished(FinishReason::Stop))));
}

#[tokio::test]
async fn a_malformed_call_is_tried_again_and_calls_that_are_none_are_not_told() {
    let unexpected = json!({"candidates": [{"content": {"role": "model", "parts": [
        {"functionCall": {"name": "nope", "args": {}}}]}, "finishReason": "UNEXPECTED_TOOL_CALL"}]});
    let malformed = json!({"candidates": [{"content": {}, "finishReason": "MALFORMED_FUNCTION_CALL"}]});
    let good = json!({"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]});
    let answers = [&unexpected, &malformed, &good].map(|chunk| Answer::events([chunk])).to_vec();
    let server = Server::script(answers).await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!(text_of(&deltas), "ok");
    assert!(!deltas.iter().any(|delta| matches!(delta, Ok(Delta::ToolCallStarted { .. }))));
    assert_eq!(server.seen().len(), 3);

    let server = Server::script(vec![Answer::events([&malformed])]).await;
    let error = error_of(&all(&developer(&server.url(), limits()), ask("hi")).await);
    assert_eq!(error.code, lectern_core::ModelErrorCode::MalformedCall);
    // In the end the turn itself tells the model that there is no such tool.
    let server = Server::script(vec![Answer::events([&unexpected])]).await;
    let deltas = all(&developer(&server.url(), limits()), ask("hi")).await;
    assert_eq!(deltas.last(), Some(&Ok(Delta::Finished(FinishReason::ToolCalls))));
}

fn five_steps() -> Vec<Step> {
    let path = |path: &str| json!({ "path": path });
    vec![
        Step::says(&["Let me look. "])
            .thinks("I need two notes.")
            .calls("read", &path("a"))
            .calls("read", &path("b")),
        Step::default().calls("list", &json!({})).with_ids(),
        Step::default()
            .calls("read", &path("c"))
            .calls("list", &json!({}))
            .calls("read", &path("d"))
            .with_ids(),
        Step::says(&["Almost"]).signed_end().calls("read", &path("e")),
        Step::says(&["All ", "done."]).signed_end(),
        Step::says(&["A second turn."]),
    ]
}

fn input(
    store: &Store,
    conversation: &lectern_core::ConversationId,
    model: GeminiModel,
    text: &str,
) -> TurnInput {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    let spec = |name: &str| tool(name, schema.clone());
    let tools = ScriptedTools::new()
        .with(spec("read"), Behaviour::Answers("the note"))
        .with(spec("list"), Behaviour::Answers("a, b"));
    TurnInput {
        conversation: conversation.clone(),
        message: UserMessage::text(text),
        model: Arc::new(model),
        tools: Arc::new(ToolSet::new([Arc::new(tools) as Arc<dyn lectern_core::ToolProvider>])),
        who: Actor::Cli,
        permissions: Arc::new(PermissionBook::new(Policy::default())),
        store: store.clone(),
        system: None,
        sampling: Sampling::default(),
        thinking: ThinkingOptions::default(),
        answer: AnswerForm::Free,
        earlier_turns: EarlierTurns::Sent,
        largest_context: None,
        tool_mode: ToolMode::Native,
        exposure: ExposurePolicy::default(),
        first_choice: ToolChoice::Auto,
        others: Default::default(),
        max_steps: 10,
        cancel: Default::default(),
    }
}

#[tokio::test]
async fn five_steps_with_parallel_calls_keep_every_rule_and_so_does_the_next_turn() {
    let fake = Vertex::start(five_steps()).await;
    let store = Store::in_memory().unwrap();
    let conversation = store.create_conversation().unwrap();
    for text in ["What is in my notes?", "And then?"] {
        let model = vertex(&fake.server.url(), Credentials::Tokens(bearer(&fake)), limits());
        let turn = Turns::default().start(input(&store, &conversation, model, text)).unwrap();
        let outcome = turn.finished().await;
        assert_eq!(outcome, TurnOutcome::Completed, "{:?}", fake.refusals());
        let mut events = turn.events();
        let mut steps = 0;
        while let Some(event) = events.next().await {
            if let EventKind::StepFinished { stats, .. } = event.kind {
                steps += 1;
                assert_eq!(stats.usage.reused_tokens, 3);
            }
        }
        assert_eq!(steps, if text == "And then?" { 1 } else { 5 });
    }
    assert_eq!(fake.refusals(), Vec::<String>::new());
}

fn bearer(fake: &Vertex) -> Arc<dyn lectern_cloud::TokenSource> {
    struct Fixed(lectern_cloud::Token);
    impl lectern_cloud::TokenSource for Fixed {
        fn token(
            &self,
            _: Option<lectern_cloud::Token>,
        ) -> futures::future::BoxFuture<'_, Result<lectern_cloud::Token, lectern_cloud::SignInError>>
        {
            Box::pin(async { Ok(self.0.clone()) })
        }
    }
    Arc::new(Fixed(lectern_cloud::Token { secret: fake.token().into(), expires: None, quota_project: None }))
}

/// The rules themselves can fail: a body that is bent in one place is refused.
#[tokio::test]
async fn the_strict_server_refuses_what_is_bent() {
    let fake = Vertex::start(five_steps()).await;
    let model = vertex(&fake.server.url(), Credentials::Tokens(bearer(&fake)), limits());
    let deltas = all(&model, ask("hi")).await;
    assert_eq!(deltas.last(), Some(&Ok(Delta::Finished(FinishReason::ToolCalls))));
    let good = json!({"contents": [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": SENTINEL},
            {"functionCall": {"name": "g", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}},
            {"functionResponse": {"name": "g", "response": {}}}]},
    ]});
    assert_eq!(rules::check(&good, &[], &[]), Ok(()));
    let bends: [(&str, Value); 6] = [
        ("/contents/1/parts/0/thoughtSignature", json!("other")),
        ("/contents/1/role", json!("assistant")),
        ("/contents/2/parts/0/functionResponse/name", json!("g")),
        ("/contents/2/parts", json!([{"functionResponse": {"name": "f", "response": {}}}])),
        ("/contents/0/role", json!("model")),
        ("/contents/2/role", json!("function")),
    ];
    for (place, value) in bends {
        let mut bent = good.clone();
        *bent.pointer_mut(place).unwrap() = value;
        assert!(rules::check(&bent, &[], &[]).is_err(), "{place}");
    }
    let mut bare = good.clone();
    bare["contents"][1]["parts"][0].as_object_mut().unwrap().remove("thoughtSignature");
    assert!(rules::check(&bare, &[], &[]).is_err());
}

#[test]
fn the_rules_know_every_field_and_every_keyword() {
    let parameters = json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}});
    let good = json!({
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"temperature": 0.5, "thinkingConfig": {"includeThoughts": true}},
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": parameters}]}],
    });
    assert_eq!(rules::check(&good, &[], &[]), Ok(()));
    let schema = "/tools/0/functionDeclarations/0/parameters";
    for (place, value) in [
        (
            schema.to_owned(),
            json!({"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "$schema": "x"}),
        ),
        (format!("{schema}/properties/a"), json!({"oneOf": [{"type": "STRING"}]})),
        (format!("{schema}/properties/a"), json!({"type": ["STRING", "NULL"]})),
        (format!("{schema}/properties/a"), json!({"type": "STRING", "const": "x"})),
        ("/contents/0/parts/0".to_owned(), json!({"text": "hi", "cacheControl": {}})),
        ("/contents/0".to_owned(), json!({"role": "user", "parts": [{"text": "hi"}], "name": "x"})),
        ("/generationConfig".to_owned(), json!({"minP": 0.1})),
        ("/generationConfig/thinkingConfig".to_owned(), json!({"thinkingBudget": 1, "thinkingLevel": "LOW"})),
    ] {
        let mut bent = good.clone();
        *bent.pointer_mut(&place).unwrap() = value;
        assert!(rules::check(&bent, &[], &[]).is_err(), "{bent}");
    }
}

/// Who answers before the stream is read to its end is refused, as the real one does.
#[tokio::test]
async fn the_strict_server_sees_a_stream_that_was_not_drained() {
    let mut step = Step::default();
    // More than any buffer between the two takes.
    for _ in 0..400 {
        step = step.thinks(&"hm ".repeat(20_000));
    }
    let fake = Vertex::start(vec![step, Step::says(&["too early"])]).await;
    let model = vertex(&fake.server.url(), Credentials::Tokens(bearer(&fake)), limits());
    let mut first = model.stream(ask("hi"), Default::default());
    assert!(first.next().await.is_some());
    let deltas = all(&model, ask("and?")).await;
    assert_eq!(error_of(&deltas).code, lectern_core::ModelErrorCode::BadRequest);
    assert!(fake.refusals()[0].contains("not read to its end"), "{:?}", fake.refusals());
    drop(first);
}
