//! What a request may say, what of it reaches the model, and what is refused by name.

use base64::Engine as _;
use lectern_core::testing::says;
use lectern_core::{AnswerForm, Message, Part, ToolChoice};
use serde_json::{Value, json};

use crate::house::{House, house, question, tool, with};

/// The first PNG of one white pixel.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";

#[tokio::test]
async fn what_is_said_reaches_the_model() {
    let house = house([says("ok")]).await;
    let body = json!({
        "model": "scripted",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
            {"role": "user", "content": "hi", "name": "Ann"},
            {"role": "assistant", "content": null, "refusal": null, "annotations": [], "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\":\"Rom\"}"}},
                {"id": "c2", "type": "function", "function": {"name": "time", "arguments": ""}},
            ]},
            {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "noon"}]},
            {"role": "tool", "tool_call_id": "c1", "content": "warm"},
        ],
        "tools": [tool("weather"), tool("time")],
        "tool_choice": {"type": "function", "function": {"name": "time"}},
        "temperature": 0.5, "top_p": 1, "seed": 3, "stop": "END", "frequency_penalty": -1, "presence_penalty": 2,
        "max_tokens": 5, "max_completion_tokens": 6, "response_format": {"type": "json_object"},
        "user": "u", "metadata": {"a": "b"}, "store": false, "parallel_tool_calls": true, "n": 1, "logprobs": false,
        "reasoning_effort": "none",
    });
    house.completion(&body).await;
    let request = house.model.requests().remove(0);
    assert_eq!(request.system.as_deref(), Some("Be brief.\n\nBe kind."));
    let Message::Assistant(assistant) = &request.messages[1] else { panic!("{:?}", request.messages) };
    let calls: Vec<_> = assistant.tool_calls().collect();
    assert_eq!(calls[0].arguments["city"], "Rom");
    let results: Vec<_> = request.messages[2..]
        .iter()
        .map(|message| match message {
            Message::Tool(result) => (result.call.as_str(), result.tool.as_str(), result.text()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(results, [("c1", "weather", "warm".to_owned()), ("c2", "time", "noon".to_owned())]);
    assert_eq!(request.tool_choice, ToolChoice::Tool("time".into()));
    assert_eq!(request.answer, AnswerForm::JsonSchema(json!({"type": "object"})));
    assert_eq!(request.thinking.enabled, Some(false));
    let sampling = &request.sampling;
    assert_eq!((sampling.temperature, sampling.seed, sampling.max_tokens), (Some(0.5), Some(3), Some(6)));
    assert_eq!(sampling.stop, ["END"]);
}

#[tokio::test]
async fn what_is_set_for_the_model_holds_where_nothing_is_said() {
    let house = house([says("ok")]).await;
    house.completion(&with(question("hi"), json!({"temperature": null, "tools": null}))).await;
    let sampling = house.model.requests().remove(0).sampling;
    assert_eq!((sampling.temperature, sampling.max_tokens), (None, Some(99)));
}

#[tokio::test]
async fn each_wrong_field_is_named() {
    let house = house([]).await;
    let message =
        |fields: Value| json!({"messages": [with(json!({"role": "user", "content": "x"}), fields)]});
    let cases = [
        (json!({"n": 2}), "n", "unsupported_value"),
        (json!({"temperature": 3}), "temperature", "invalid_value"),
        (json!({"temperature": "warm"}), "temperature", "invalid_type"),
        (json!({"max_tokens": 0}), "max_tokens", "invalid_value"),
        (json!({"max_completion_tokens": 1.5}), "max_completion_tokens", "invalid_type"),
        (json!({"stop": ["a", "b", "c", "d", "e"]}), "stop", "array_above_max_length"),
        (json!({"stop": [1]}), "stop[0]", "invalid_type"),
        (json!({"logprobs": true}), "logprobs", "unsupported_value"),
        (json!({"colour": 1}), "colour", "unknown_parameter"),
        (json!({"stream_options": {"include_usage": true}}), "stream_options", "invalid_value"),
        (json!({"stream": true, "stream_options": {"x": 1}}), "stream_options.x", "unknown_parameter"),
        (json!({"response_format": {"type": "xml"}}), "response_format.type", "invalid_value"),
        (
            json!({"response_format": {"type": "json_schema"}}),
            "response_format.json_schema",
            "missing_required_parameter",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "a b"}}]}),
            "tools[0].function.name",
            "invalid_value",
        ),
        (json!({"tools": [tool("a"), tool("a")]}), "tools[1].function.name", "invalid_value"),
        (json!({"tools": {}}), "tools", "invalid_type"),
        (json!({"tool_choice": "required"}), "tool_choice", "invalid_value"),
        (json!({"functions": []}), "functions", "unsupported_value"),
        (json!({"messages": []}), "messages", "empty_array"),
        (json!({"messages": null}), "messages", "missing_required_parameter"),
        (json!({"messages": ["x"]}), "messages[0]", "invalid_type"),
        (message(json!({"role": "king"})), "messages[0].role", "invalid_value"),
        (message(json!({"content": null})), "messages[0].content", "missing_required_parameter"),
        (
            message(json!({"content": [{"type": "text"}]})),
            "messages[0].content[0].text",
            "missing_required_parameter",
        ),
        (message(json!({"mood": 1})), "messages[0].mood", "unknown_parameter"),
        (
            message(json!({"role": "tool", "tool_call_id": "x"})),
            "messages[0].tool_call_id",
            "unknown_tool_call_id",
        ),
    ];
    for (fields, param, code) in cases {
        let (status, error) = house.refusal(&with(question("hi"), fields)).await;
        assert_eq!(
            (status, error["param"].as_str(), error["code"].as_str()),
            (400, Some(param), Some(code)),
            "{error:#}"
        );
        assert_eq!(error["type"], "invalid_request_error");
    }
    let body = with(question("hi"), json!({"model": "gpt-9"}));
    let (status, error) = house.refusal(&body).await;
    assert_eq!(
        (status, error["param"].as_str(), error["code"].as_str()),
        (404, Some("model"), Some("model_not_found"))
    );
    assert_eq!(house.model.requests().len(), 0);
}

/// What clients really send, and OpenAI takes or Lectern is kinder about.
#[tokio::test]
async fn odd_requests_that_mean_something_are_served() {
    let call = |arguments: &str| json!({"id": "c", "type": "function", "index": 0, "function": {"name": "f", "arguments": arguments}});
    let result =
        |content: Value| json!({"role": "tool", "tool_call_id": "c", "name": "f", "content": content});
    let user = json!({"role": "user", "content": "x"});
    let asked =
        |arguments: &str| json!({"role": "assistant", "content": "", "tool_calls": [call(arguments)]});
    let deep = (0..100).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    let wide: serde_json::Map<String, Value> =
        (0..2_000).map(|number| (format!("größe_{number}"), json!({"type": "string"}))).collect();
    let with_schema = |properties: Value| {
        let parameters = json!({"type": "object", "properties": properties});
        json!({"tools": [{"type": "function", "function": {"name": "f", "parameters": parameters, "strict": true}}]})
    };
    let cases = [
        json!({"messages": [user, {"role": "assistant", "content": null}, user]}),
        json!({"messages": [user, {"role": "assistant", "content": "", "tool_calls": []}, user]}),
        json!({"messages": [user, {"role": "assistant", "content": [{"type": "text", "text": "a"}]}]}),
        json!({"messages": [user, {"role": "assistant", "content": null, "refusal": "no", "reasoning_content": "hm"}, user]}),
        json!({"messages": [user, asked(""), result(json!(""))]}),
        json!({"messages": [user, asked("{\"a\":1"), result(json!([]))]}),
        json!({"messages": [user, asked("[1]"), result(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]))]}),
        json!({"messages": [user, asked("null"), result(json!("1")), asked("{}"), result(json!("2"))]}),
        json!({"messages": [{"role": "developer", "content": "Be kind."}]}),
        json!({"messages": [{"role": "system", "content": ""}, {"role": "user", "content": ""}]}),
        json!({"messages": [{"role": "user", "content": []}]}),
        json!({"messages": [{"role": "user", "content": "\u{0}\u{200d}👨‍👩‍👧 \u{202e}x"}, user, user]}),
        json!({"tools": [], "tool_choice": "none", "parallel_tool_calls": false, "stop": "", "logit_bias": {}}),
        json!({"tools": null, "tool_choice": null, "response_format": null, "stream": null, "model": null, "n": 1.0}),
        json!({"response_format": {"type": "text"}, "stop": [], "top_logprobs": 0, "modalities": ["text"]}),
        json!({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": null}}}),
        json!({"temperature": 0, "top_p": 0, "seed": -1, "max_completion_tokens": 1, "reasoning_effort": "xhigh"}),
        json!({"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "auto"}),
        json!({"tools": [{"type": "function", "function": {"name": "f", "description": null, "parameters": {}}}]}),
        with_schema(json!({"deep": deep})),
        with_schema(Value::Object(wide)),
        json!({"prompt_cache_key": "k", "safety_identifier": "s", "service_tier": "auto", "verbosity": "low"}),
    ];
    let replies = cases.iter().map(|_| says("ok"));
    let house = house(replies.collect::<Vec<_>>()).await;
    for fields in &cases {
        let answer = house.completion(&with(question("x"), fields.clone())).await;
        assert_eq!(answer["choices"][0]["message"]["content"], "ok", "{fields}");
    }
    for request in house.model.requests() {
        let ids: Vec<_> = request
            .messages
            .iter()
            .flat_map(|message| match message {
                Message::Assistant(assistant) => assistant.tool_calls().map(|call| call.id.clone()).collect(),
                Message::User(_) | Message::Tool(_) => Vec::new(),
            })
            .collect();
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "an id stands once in a history");
    }
}

#[tokio::test]
async fn what_would_be_guessed_is_refused() {
    let house = house([]).await;
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let user = json!({"role": "user", "content": "x"});
    let cases = [
        (json!({"n": 0}), "n"),
        (json!({"max_tokens": -1}), "max_tokens"),
        (json!({"tools": [tool("größe")]}), "tools[0].function.name"),
        (json!({"tools": [tool(&"x".repeat(65))]}), "tools[0].function.name"),
        (json!({"tool_choice": {"type": "any"}, "tools": [tool("f")]}), "tool_choice.type"),
        (
            json!({"messages": [user, {"role": "tool", "tool_call_id": "c", "content": "x"}]}),
            "messages[1].tool_call_id",
        ),
        (json!({"messages": [{"role": "function", "name": "f", "content": "x"}]}), "messages[0].role"),
        (
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}]}),
            "messages[0].content",
        ),
        (json!({"messages": [{"role": "user", "content": ["x"]}]}), "messages[0].content[0]"),
        (json!({"messages": "x"}), "messages"),
        (json!({"stream": "true"}), "stream"),
        (json!({"model": 4}), "model"),
        (json!({"web_search_options": {}}), "web_search_options"),
        (json!({"seed": 1e30}), "seed"),
        (json!({"tools": (0..129).map(|number| tool(&format!("f{number}"))).collect::<Vec<_>>()}), "tools"),
    ];
    for (fields, param) in cases {
        let (status, error) = house.refusal(&with(question("hi"), fields)).await;
        assert_eq!((status, error["param"].as_str()), (400, Some(param)), "{error:#}");
    }
}

#[tokio::test]
async fn a_call_without_its_result_is_refused() {
    let house = house([]).await;
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let asked = json!({"role": "assistant", "tool_calls": [call]});
    let body = with(question("hi"), json!({"messages": [{"role": "user", "content": "x"}, asked]}));
    let (status, error) = house.refusal(&body).await;
    assert_eq!((status, error["param"].as_str()), (400, Some("messages[1].tool_calls")));
}

async fn content(house: &House, part: Value) -> (u16, Value) {
    let message = json!({"role": "user", "content": [{"type": "text", "text": "x"}, part]});
    house.refusal(&with(question("hi"), json!({"messages": [message]}))).await
}

#[tokio::test]
async fn images_come_with_the_request_or_not_at_all() {
    let house = house([]).await;
    let image = |url: &str| json!({"type": "image_url", "image_url": {"url": url}});
    let (status, error) = content(&house, image("https://example.org/a.png")).await;
    assert_eq!((status, error["code"].as_str()), (400, Some("unsupported_image_url")));
    assert_eq!(error["param"], "messages[0].content[1].image_url.url");
    let (_, error) = content(&house, image("data:image/png;base64,@@")).await;
    assert_eq!(error["code"], "invalid_base64");
    let (_, error) = content(&house, image("data:image/png;base64,aGVsbG8=")).await;
    assert_eq!(error["code"], "invalid_image");
    // The scripted model does not see.
    let (_, error) = content(&house, image(PIXEL)).await;
    assert_eq!(
        (error["code"].as_str(), error["param"].as_str()),
        (Some("unsupported_content"), Some("messages[0].content"))
    );
    let (_, error) = content(&house, json!({"type": "input_audio", "input_audio": {}})).await;
    assert_eq!(error["code"], "unsupported_value");
}

#[tokio::test]
async fn a_file_of_text_stands_in_the_message() {
    let house = house([says("ok")]).await;
    let data = base64::engine::general_purpose::STANDARD.encode("Milk, eggs");
    let file = json!({"type": "file", "file": {"filename": "list.txt", "file_data": format!("data:text/plain;base64,{data}")}});
    let message = json!({"role": "user", "content": [file]});
    house.completion(&with(question("hi"), json!({"messages": [message]}))).await;
    let request = house.model.requests().remove(0);
    let Message::User(user) = &request.messages[0] else { panic!("{:?}", request.messages) };
    assert_eq!(user.parts, [Part::Text { text: "list.txt:\nMilk, eggs".to_owned() }]);
}

#[tokio::test]
async fn big_agis_requests_are_served() {
    let house = house([says("ok"), says("ok")]).await;
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let body = json!({
        "model": "scripted",
        "messages": [
            {"role": "system", "content": "You are helpful."},
            {"role": "user", "content": text("hi")},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "done"},
            {"role": "assistant", "content": "Hello."},
            {"role": "user", "content": text("and now?")},
        ],
        "max_completion_tokens": 1024, "temperature": 0.5, "stream": true,
        "stream_options": {"include_usage": true}, "tools": [tool("f")], "tool_choice": "auto",
    });
    let chunks = house.chunks(&body).await;
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chunks.last().unwrap()["choices"], json!([]));
}
