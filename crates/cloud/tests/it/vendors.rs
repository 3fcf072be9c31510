//! How the servers of the field really answer, each with its own habits: constructed after their public sources and
//! documents. Every body has to read the same whole, byte by byte, and at random cuts.

use lectern_cloud::{Provider, decode, recorded};
use serde_json::{Value, json};

use crate::support::Dice;

struct Case {
    name: &'static str,
    body: &'static str,
    /// What has to be in what is read; the other fields have to be empty.
    says: Value,
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "Ollama: whole calls with ids of its own, all numbered 0, and `stop`",
            body: r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"qwen3:8b","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"Two cities."},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"qwen3:8b","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_a","index":0,"type":"function","function":{"name":"weather","arguments":"{\"city\":\"Lyon\"}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"qwen3:8b","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_b","index":0,"type":"function","function":{"name":"weather","arguments":"{\"city\":\"Köln\"}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"qwen3:8b","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"qwen3:8b","choices":[],"usage":{"prompt_tokens":155,"completion_tokens":38,"total_tokens":193}}

data: [DONE]

"#,
            says: json!({"thinking": "Two cities.", "finish": "stop", "outcome": "tool_calls", "model": "qwen3:8b",
                "calls": [{"id": "call_a", "name": "weather", "args": {"city": "Lyon"}, "signed": false},
                          {"id": "call_b", "name": "weather", "args": {"city": "Köln"}, "signed": false}],
                "usage": {"prompt_tokens": 155, "completion_tokens": 38, "total_tokens": 193}}),
        },
        Case {
            name: "LM Studio: thoughts in tags, CRLF, pieces of arguments with an empty name",
            body: "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"<thi\"},\"logprobs\":null,\"finish_reason\":null}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"nk>\\nHm, ü\"},\"finish_reason\":null}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ber…</think>\\n\\nLet me look.\"},\"finish_reason\":null}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"365174485\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"\"}}]},\"finish_reason\":null}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"\",\"arguments\":\"{\\\"path\\\"\"}}]},\"finish_reason\":null}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"type\":\"function\",\"function\":{\"name\":\"\",\"arguments\":\":\\\"a.md\\\"}\"}}]},\"finish_reason\":null}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\r\n\r\n\
                   data: [DONE]\r\n\r\n",
            says: json!({"thinking": "\nHm, über…", "text": "Let me look.", "finish": "tool_calls", "outcome": "tool_calls",
                "model": "m", "calls": [{"id": "365174485", "name": "read", "args": {"path": "a.md"}, "signed": false}]}),
        },
        Case {
            name: "LM Studio: a named event with an error",
            body: "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"He\"}}]}\n\n\
                   event: error\ndata: {\"message\":\"The model crashed.\",\"code\":\"model_crashed\"}\n\n",
            says: json!({"text": "He", "outcome": "provider",
                "error": {"code": null, "status": "model_crashed", "message": "The model crashed.", "kind": "unknown", "html": false}}),
        },
        Case {
            name: "vLLM: interleaved pieces, counts in every chunk, null fields, `stop_reason`",
            body: r#": ping

data: {"id":"chatcmpl-7","object":"chat.completion.chunk","model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":null},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":20,"total_tokens":20,"completion_tokens":0}}

data: {"id":"chatcmpl-7","choices":[{"index":0,"delta":{"tool_calls":[{"id":"chatcmpl-tool-1","type":"function","index":0,"function":{"name":"sum"}}]},"logprobs":null,"finish_reason":null}]}

data: {"id":"chatcmpl-7","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\": 1"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-7","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"chatcmpl-tool-2","type":"function","function":{"name":"sum"}},{"index":0,"function":{"arguments":"}"}}]},"finish_reason":null}]}

data: {"id":"chatcmpl-7","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{\"x\": 2}"}}]},"logprobs":null,"finish_reason":"tool_calls","stop_reason":128008}]}

data: {"id":"chatcmpl-7","choices":[],"usage":{"prompt_tokens":20,"total_tokens":61,"completion_tokens":41,"prompt_tokens_details":null}}

data: [DONE]
"#,
            says: json!({"finish": "tool_calls", "outcome": "tool_calls", "model": "Qwen/Qwen3-8B",
                "calls": [{"id": "chatcmpl-tool-1", "name": "sum", "args": {"x": 1}, "signed": false},
                          {"id": "chatcmpl-tool-2", "name": "sum", "args": {"x": 2}, "signed": false}],
                "usage": {"prompt_tokens": 20, "total_tokens": 61, "completion_tokens": 41}}),
        },
        Case {
            name: "llama-server: counts and timings in the last chunk, a first chunk without content",
            body: r#"data: {"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1,"id":"c","model":"gpt-3.5-turbo","system_fingerprint":"b6000","object":"chat.completion.chunk"}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"reasoning_content":"Kurz."}}],"model":"gpt-3.5-turbo"}

data: {"choices":[{"finish_reason":null,"index":0,"delta":{"content":"Ja, 你好 🎈."}}],"model":"gpt-3.5-turbo"}

data: {"choices":[{"finish_reason":"stop","index":0,"delta":{}}],"model":"gpt-3.5-turbo"}

data: {"choices":[],"model":"gpt-3.5-turbo","usage":{"completion_tokens":9,"prompt_tokens":12,"total_tokens":21},"timings":{"prompt_n":12,"prompt_ms":30.5,"predicted_n":9,"predicted_ms":90.1}}

data: [DONE]

"#,
            says: json!({"thinking": "Kurz.", "text": "Ja, 你好 🎈.", "finish": "stop", "outcome": "stop",
                "model": "gpt-3.5-turbo", "usage": {"completion_tokens": 9, "prompt_tokens": 12, "total_tokens": 21}}),
        },
        Case {
            name: "llama-server of old: an error in a field of its own",
            body: "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\nerror: {\"code\":500,\"message\":\"slot\",\"type\":\"server_error\"}\n\n",
            says: json!({"text": "a", "outcome": "provider",
                "error": {"code": 500, "status": "server_error", "message": "slot", "kind": "overloaded", "html": false}}),
        },
        Case {
            name: "OpenRouter: comments, thoughts twice, and an error that comes with a chunk",
            body: r#": OPENROUTER PROCESSING

: OPENROUTER PROCESSING

data: {"id":"gen-1","provider":"X","model":"a/b","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":"So","reasoning_details":[{"type":"reasoning.text","text":"So","format":"unknown","index":0}]},"finish_reason":null,"native_finish_reason":null,"logprobs":null}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.summary","summary":" it is."},{"type":"reasoning.encrypted","data":"QUJD"}]}}]}

data: {"id":"gen-1","choices":[{"index":0,"delta":{"role":"assistant","content":"Half"}}]}

data: {"id":"gen-1","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":" of"},"finish_reason":"error"}]}

"#,
            says: json!({"thinking": "So it is.", "text": "Half of", "finish": "error", "outcome": "provider", "model": "a/b",
                "error": {"code": 502, "status": null, "message": "Provider disconnected", "kind": "overloaded", "html": false}}),
        },
        Case {
            name: "Mistral: content in parts, thoughts among them, a whole call, counts with the end",
            body: r#"data: {"id":"m","object":"chat.completion.chunk","model":"magistral","choices":[{"index":0,"delta":{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Bon"}]}]},"finish_reason":null}]}

data: {"id":"m","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":", oui"}],"closed":true},{"type":"text","text":"Je "}]},"finish_reason":null}]}

data: {"id":"m","choices":[{"index":0,"delta":{"content":"lis.","tool_calls":[{"id":"null","function":{"name":"lire","arguments":"{\"a\": [1, 2]}"},"index":0}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":5,"total_tokens":9,"completion_tokens":4}}

data: [DONE]

"#,
            says: json!({"thinking": "Bon, oui", "text": "Je lis.", "finish": "tool_calls", "outcome": "tool_calls",
                "model": "magistral", "calls": [{"id": null, "name": "lire", "args": {"a": [1, 2]}, "signed": false}],
                "usage": {"prompt_tokens": 5, "total_tokens": 9, "completion_tokens": 4}}),
        },
        Case {
            name: "DeepSeek: thoughts, then text that is null and empty, counts of the cache, keep-alives",
            body: r#": keep-alive

data: {"id":"d","object":"chat.completion.chunk","model":"deepseek-reasoner","choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":""},"logprobs":null,"finish_reason":null}]}

: keep-alive

data: {"id":"d","choices":[{"index":0,"delta":{"content":null,"reasoning_content":"Also."},"finish_reason":null}]}

data: {"id":"d","choices":[{"index":0,"delta":{"content":"42","reasoning_content":null},"finish_reason":null}]}

data: {"id":"d","choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":17,"completion_tokens":3,"total_tokens":20,"prompt_cache_hit_tokens":16,"completion_tokens_details":{"reasoning_tokens":2}}}

data: [DONE]

"#,
            says: json!({"thinking": "Also.", "text": "42", "finish": "stop", "outcome": "stop", "model": "deepseek-reasoner",
                "usage": {"prompt_tokens": 17, "completion_tokens": 3, "total_tokens": 20, "prompt_cache_hit_tokens": 16,
                    "completion_tokens_details": {"reasoning_tokens": 2}}}),
        },
        Case {
            name: "Groq: counts in a field of its own",
            body: r#"data: {"id":"g","object":"chat.completion.chunk","model":"llama","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":null,"finish_reason":null}],"x_groq":{"id":"req_1"}}

data: {"id":"g","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"x_groq":{"id":"req_1","usage":{"queue_time":0.1,"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}}

data: [DONE]

"#,
            says: json!({"text": "Hi", "finish": "stop", "outcome": "stop", "model": "llama",
                "usage": {"queue_time": 0.1, "prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}}),
        },
        Case {
            name: "Gemini behind its OpenAI-compatible address: numbers 0, no ids, signatures",
            body: r#"data: {"choices":[{"delta":{"role":"assistant","tool_calls":[{"extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"arguments":"{\"x\":1}","name":"f"},"id":"","index":0,"type":"function"},{"function":{"arguments":"{\"x\":2}","name":"f"},"id":"","index":0,"type":"function"}]},"finish_reason":"tool_calls","index":0}],"model":"gemini-3.5-flash","object":"chat.completion.chunk"}

data: [DONE]

"#,
            says: json!({"finish": "tool_calls", "outcome": "tool_calls", "model": "gemini-3.5-flash",
                "calls": [{"id": null, "name": "f", "args": {"x": 1}, "signed": true},
                          {"id": null, "name": "f", "args": {"x": 2}, "signed": false}]}),
        },
        Case {
            name: "an answer that is no stream, with arguments as an object and no number",
            body: r#"{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":{"deep":{"a":[null,"ü"]}}}},{"type":"function","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}"#,
            says: json!({"finish": "tool_calls", "outcome": "tool_calls", "model": "m",
                "calls": [{"id": null, "name": "f", "args": {"deep": {"a": [null, "ü"]}}, "signed": false},
                          {"id": null, "name": "g", "args": {}, "signed": false}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}}),
        },
        Case {
            name: "fields of the wrong type cost themselves",
            body: "data: {\"model\":7,\"choices\":[{\"index\":\"0\",\"delta\":{\"content\":\"ok\",\"tool_calls\":null},\"finish_reason\":3}],\"usage\":\"none\"}\n\ndata:[DONE]",
            says: json!({"text": "ok", "outcome": "stop"}),
        },
        Case {
            name: "arguments that are no JSON stay as they came",
            body: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": \"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n",
            says: json!({"finish": "length", "outcome": "length",
                "calls": [{"id": "a", "name": "f", "args": "{\"x\": ", "signed": false}]}),
        },
        Case {
            name: "llama-cpp-python: each piece in both forms, with name and id each time",
            body: "data: {\"model\":\"toy\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null,\"function_call\":null,\"tool_calls\":null}}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":null,\"content\":null,\"function_call\":{\"name\":\"f\",\"arguments\":\"{\\\"\"},\"tool_calls\":[{\"index\":0,\"id\":\"call__0_f_1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"\"}}]}}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"delta\":{\"function_call\":{\"name\":\"f\",\"arguments\":\"x\\\": 1}\"},\"tool_calls\":[{\"index\":0,\"id\":\"call__0_f_1\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"x\\\": 1}\"}}]}}]}\r\n\r\n\
                   data: {\"choices\":[{\"index\":0,\"finish_reason\":\"tool_calls\",\"delta\":{\"role\":null,\"content\":null,\"function_call\":null,\"tool_calls\":null}}]}\r\n\r\ndata: [DONE]\r\n\r\n",
            says: json!({"finish": "tool_calls", "outcome": "tool_calls", "model": "toy",
                "calls": [{"id": "call__0_f_1", "name": "f", "args": {"x": 1}, "signed": false}]}),
        },
        Case {
            name: "a new id with each piece of one call",
            body: "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\"\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"b\",\"function\":{\"name\":\"f\",\"arguments\":\":1}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
            says: json!({"finish": "tool_calls", "outcome": "tool_calls",
                "calls": [{"id": "a", "name": "f", "args": {"x": 1}, "signed": false}]}),
        },
    ]
}

#[test]
fn every_server_is_understood_however_it_is_cut() {
    let mut dice = Dice::new(11);
    for Case { name, body, says } in cases() {
        let bytes = body.as_bytes();
        let whole = recorded(Provider::OpenAi, bytes, 0);
        let mut expected = json!({"text": "", "thinking": "", "calls": [], "finish": null, "block": null, "usage": null,
            "error": null, "model": null});
        expected.as_object_mut().unwrap().extend(says.as_object().unwrap().clone());
        assert_eq!(serde_json::to_value(&whole).unwrap(), expected, "{name}");
        assert_eq!(recorded(Provider::OpenAi, bytes, 1), whole, "{name}");
        for _ in 0..200 {
            let cuts = dice.cuts(bytes);
            assert_eq!(decode::pieces(Provider::OpenAi, cuts.into_iter()), whole, "{name}");
        }
    }
}

fn gemini(body: &str) -> Value {
    let whole = recorded(Provider::Gemini, body.as_bytes(), 0);
    assert_eq!(recorded(Provider::Gemini, body.as_bytes(), 1), whole);
    serde_json::to_value(whole).unwrap()
}

#[test]
fn arguments_of_gemini_that_are_streamed_come_together() {
    let call = |call: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{{{call}}}]}}}}]}}\r\n\r\n"
        )
    };
    let body = [
        call(r#""functionCall":{"name":"book","id":"b1","willContinue":true},"thoughtSignature":"c2ln""#),
        call(r#""functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"Ly","willContinue":true}],"willContinue":true}"#),
        call(r#""functionCall":{"partialArgs":[{"jsonPath":"$.city","stringValue":"on"},{"jsonPath":"$.nights","numberValue":2}],"willContinue":true}"#),
        call(r#""functionCall":{}"#),
        call(r#""functionCall":{"name":"book","args":{"city":"Nice"}}"#),
        call(r#""functionCall":{}"#),
        "data: {\"candidates\":[{\"finishReason\":\"STOP\",\"content\":{\"parts\":[{\"text\":\"\"}]}}]}\r\n\r\n".to_owned(),
    ]
    .concat();
    let read = gemini(&body);
    assert_eq!(
        read["calls"],
        json!([{"id": "b1", "name": "book", "args": {"city": "Lyon", "nights": 2}, "signed": true},
               {"id": null, "name": "book", "args": {"city": "Nice"}, "signed": false}])
    );
    assert_eq!((&read["finish"], &read["outcome"]), (&json!("STOP"), &json!("tool_calls")));
}

#[test]
fn what_gemini_wrote_before_it_failed_can_be_seen() {
    let chunk = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}}]},"finishReason":"SAFETY"}]}"#;
    let read = gemini(&format!("data: {chunk}\n\n"));
    assert_eq!((&read["calls"][0]["name"], &read["outcome"]), (&json!("f"), &json!("blocked")));
    // The array of the method without `alt=sse`, and two errors one behind the other.
    let read = gemini(&format!("[{chunk}\n,\n{{\"error\":{{\"code\":503,\"status\":\"UNAVAILABLE\"}}}}]"));
    assert_eq!((&read["finish"], &read["error"]["status"]), (&json!("SAFETY"), &json!("UNAVAILABLE")));
    let read = gemini("{\"error\":{\"code\":500,\"status\":\"INTERNAL\"}}\n{\"error\":{\"code\":1}}");
    assert_eq!(read["error"]["code"], 500);
    // A wrong type costs its field.
    let read = gemini(
        r#"{"candidates":[{"index":"x","finishReason":7,"content":{"parts":[{"text":"ok","thought":"no"}]}}],"usageMetadata":[]}"#,
    );
    assert_eq!((&read["text"], &read["finish"]), (&json!("ok"), &Value::Null));
}
