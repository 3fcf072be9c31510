//! Bodies with odd fields, odd ends and odd frames: what is sound of them counts, what did not come whole is never a call
//! that can run, what is cut or empty is never a good end, and no error is lost.

use lectern_cloud::{Provider, decode, recorded};
use serde_json::{Value, json};

use crate::support::Dice;

use Provider::{Gemini, OpenAi};

/// Reads a body whole, byte by byte and at random cuts: always the same.
fn read(provider: Provider, body: &str) -> Value {
    let bytes = body.as_bytes();
    let whole = recorded(provider, bytes, 0);
    assert_eq!(recorded(provider, bytes, 1), whole, "{body}");
    let mut dice = Dice::new(23);
    for _ in 0..50 {
        let cuts = dice.cuts(bytes);
        assert_eq!(decode::pieces(provider, cuts.into_iter()), whole, "{body}");
    }
    serde_json::to_value(&whole).unwrap()
}

/// Each is an event of a stream; OpenAI's has its mark at the end.
fn events(provider: Provider, chunks: &[&str]) -> Value {
    let mut body: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    if provider == OpenAi {
        body.push_str("data: [DONE]\n\n");
    }
    read(provider, &body)
}

/// A chunk of Gemini with these parts.
fn parts(parts: &str) -> String {
    format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}}}}]}}"#)
}

fn gemini_ends(word: &str) -> String {
    format!(r#"{{"candidates":[{{"finishReason":"{word}"}}]}}"#)
}

/// A chunk of an endpoint with this delta.
fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#)
}

fn ends(word: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#)
}

/// One piece of one call.
fn piece(call: &str) -> String {
    delta(&format!(r#"{{"tool_calls":[{call}]}}"#))
}

/// The arguments of the only call.
fn arguments(read: &Value) -> &Value {
    let [call] = &read["calls"].as_array().unwrap()[..] else { panic!("{read}") };
    &call["args"]
}

fn calls(read: &Value) -> Vec<(Value, Value)> {
    let all = read["calls"].as_array().unwrap();
    all.iter().map(|call| (call["name"].clone(), call["args"].clone())).collect()
}

#[test]
fn half_a_call_of_gemini_is_never_a_whole_one() {
    let half = r#"{"functionCall":{"name":"search","partialArgs":[{"jsonPath":"$.query","stringValue":"her","willContinue":true}],"willContinue":true}}"#;
    for end in ["MAX_TOKENS", "STOP", "SAFETY"] {
        let read = events(Gemini, &[&parts(half), &gemini_ends(end)]);
        assert!(arguments(&read).is_string(), "{end}: {read}");
    }
    // Text or a thought in the middle of a call does not close it.
    let rest = r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.query","stringValue":"on"}]}}"#;
    for between in [r#"{"text":"Hm."}"#, r#"{"text":"Hm.","thought":true}"#] {
        let read = events(Gemini, &[&parts(half), &parts(between), &parts(rest), &gemini_ends("STOP")]);
        assert_eq!(arguments(&read), &json!({"query": "heron"}), "{read}");
        let read = events(Gemini, &[&parts(half), &parts(between), &gemini_ends("STOP")]);
        assert!(arguments(&read).is_string(), "{read}");
    }
    // Two calls whose pieces take turns.
    let piece = |id: u32, name: &str, value: &str, more: bool| {
        parts(&format!(
            r#"{{"functionCall":{{"id":"{id}"{name},"partialArgs":[{{"jsonPath":"$.q","stringValue":"{value}"}}],"willContinue":{more}}}}}"#
        ))
    };
    let name = r#","name":"f""#;
    let pieces = [
        piece(1, name, "a", true),
        piece(2, name, "x", true),
        piece(1, "", "b", false),
        piece(2, "", "y", false),
    ];
    let pieces: Vec<&str> =
        pieces.iter().map(String::as_str).chain([r#"{"candidates":[{"finishReason":"STOP"}]}"#]).collect();
    let read = events(Gemini, &pieces);
    assert_eq!(calls(&read), [(json!("f"), json!({"q": "ab"})), (json!("f"), json!({"q": "xy"}))]);
}

#[test]
fn arguments_of_another_type_are_read_or_make_the_call_malformed() {
    for (args, expected) in [
        (r#""{\"a\":1}""#, json!({"a": 1})),
        ("null", json!({})),
        (r#""""#, json!({})),
        ("[1]", json!("[1]")),
        ("5", json!("5")),
        (r#""words""#, json!("words")),
    ] {
        let call = parts(&format!(r#"{{"functionCall":{{"name":"w","args":{args}}}}}"#));
        let read = events(Gemini, &[&call, &gemini_ends("STOP")]);
        assert_eq!(arguments(&read), &expected, "{args}");
    }
    for value in [r#""structValue":{"a":1}"#, r#""numberValue":"NaN""#, r#""stringValue":[]"#] {
        let call =
            format!(r#"{{"functionCall":{{"name":"w","partialArgs":[{{"jsonPath":"$.a",{value}}}]}}}}"#);
        let read = events(Gemini, &[&parts(&call), &gemini_ends("STOP")]);
        assert!(arguments(&read).is_string(), "{value}: {read}");
    }
    for (args, expected) in [
        (r#""\"{\\\"a\\\":1}\"""#, json!({"a": 1})),
        (r#""null""#, json!({})),
        (r#""\"\"""#, json!({})),
        (r#"{"a":1}"#, json!({"a": 1})),
        (r#""[1]""#, json!("[1]")),
        (r#""{\"a\":""#, json!("{\"a\":")),
    ] {
        let call = piece(&format!(r#"{{"index":0,"id":"c","function":{{"name":"w","arguments":{args}}}}}"#));
        assert_eq!(arguments(&events(OpenAi, &[&call, &ends("tool_calls")])), &expected, "{args}");
    }
}

#[test]
fn an_end_that_is_not_good_or_not_known_is_never_taken_for_one() {
    for (word, outcome) in [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("max_tokens", "length"),
        ("MAX_TOKENS", "length"),
        ("abort", "provider"),
        ("insufficient_system_resource", "provider"),
        ("network_error", "provider"),
        ("timeout", "provider"),
        ("sensitive", "filtered"),
        ("safety", "filtered"),
        ("SAFETY", "filtered"),
        ("recitation", "filtered"),
        ("refusal", "filtered"),
    ] {
        let whole = format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"half an ans"}},"finish_reason":"{word}"}}]}}"#
        );
        let read = events(OpenAi, &[&whole]);
        assert_eq!(
            (&read["text"], &read["outcome"], &read["finish"]),
            (&json!("half an ans"), &json!(outcome), &json!(word))
        );
        // A good word behind the reason takes nothing back.
        let read = events(OpenAi, &[&whole, &ends("stop")]);
        assert_eq!(read["outcome"], json!(outcome), "{word}");
    }
    for (word, outcome) in [
        ("MODEL_ARMOR", "filtered"),
        ("MALFORMED_RESPONSE", "provider"),
        ("MISSING_THOUGHT_SIGNATURE", "bad_request"),
        ("MAX_TOKENS", "length"),
        ("max_tokens", "length"),
    ] {
        let read = events(Gemini, &[&parts(r#"{"text":"half"}"#), &gemini_ends(word), &gemini_ends("STOP")]);
        assert_eq!(
            (&read["text"], &read["outcome"], &read["finish"]),
            (&json!("half"), &json!(outcome), &json!(word))
        );
    }
    // Nobody knows whether a call is to run that ended like this.
    let call = piece(r#"{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}"#);
    assert_eq!(events(OpenAi, &[&call, &ends("something_new")])["outcome"], "provider");
    let call = parts(r#"{"functionCall":{"name":"f","args":{}}}"#);
    assert_eq!(events(Gemini, &[&call, &gemini_ends("ESCALATION")])["outcome"], "provider");
}

#[test]
fn an_empty_reply_is_none_and_a_block_wins() {
    for chunks in [
        &[r#"{"candidates":[{"finishReason":"STOP"}]}"#][..],
        &[r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}"#],
        &[r#"{"candidates":[{"content":{"parts":[{"text":"Hm.","thought":true}]},"finishReason":"STOP"}]}"#],
    ] {
        assert_eq!(events(Gemini, chunks)["outcome"], "empty_answer", "{chunks:?}");
    }
    for chunks in
        [&[&ends("stop")[..]][..], &[&delta(r#"{"reasoning":"Hm."}"#), &ends("stop")], &[r#"{"choices":[]}"#]]
    {
        assert_eq!(events(OpenAi, chunks)["outcome"], "empty_answer", "{chunks:?}");
    }
    let blocked = r#"{"candidates":[{"finishReason":"STOP"}],"promptFeedback":{"blockReason":"SAFETY"}}"#;
    let read = events(Gemini, &[blocked]);
    assert_eq!(
        (&read["outcome"], &read["block"], &read["finish"]),
        (&json!("blocked"), &json!("SAFETY"), &json!("STOP"))
    );
    // A picture is an answer, though it can't be shown.
    let picture = parts(r#"{"inlineData":{"mimeType":"image/png","data":"QUJD"}}"#);
    assert_eq!(events(Gemini, &[&picture, &gemini_ends("STOP")])["outcome"], "stop");
    let picture = delta(
        r#"{"content":"","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]}"#,
    );
    assert_eq!(events(OpenAi, &[&picture, &ends("stop")])["outcome"], "stop");
}

#[test]
fn one_odd_field_costs_itself() {
    let good = parts(r#"{"text":"good"}"#);
    for odd in [
        parts(r#"null,{"text":"a"}"#),
        r#"{"candidates":[null,{"content":{"parts":[{"text":"a"}]}}]}"#.to_owned(),
        r#"{"candidates":{"content":{"parts":{"text":"a"}}}}"#.to_owned(),
        parts(r#"{"text":5},{"text":"a"}"#),
        parts(r#"{"text":"a","thoughtSignature":5}"#),
        parts(r#"{"text":"a","functionCall":null,"text":"a"}"#),
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]},"avgLogprobs":NaN}],"promptFeedback":[]}"#
            .to_owned(),
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"error":{}}"#.to_owned(),
        r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"error":false}"#.to_owned(),
    ] {
        let read = events(Gemini, &[&odd, &good, &gemini_ends("STOP")]);
        assert_eq!((&read["text"], &read["outcome"]), (&json!("agood"), &json!("stop")), "{odd}: {read}");
    }
    let good = delta(r#"{"content":"good"}"#);
    for odd in [
        delta(r#"{"content":"a","tool_calls":{}}"#),
        delta(r#"{"content":"a","tool_calls":[null,5]}"#),
        delta(r#"{"content":"a","function_call":"auto"}"#),
        delta(r#""a""#),
        r#"{"choices":{"delta":{"content":"a"}}}"#.to_owned(),
        r#"{"choices":[null,{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{"logprob":-Infinity}]}}]}"#.to_owned(),
        delta(r#"{"content":"a"},"error":false"#),
        r#"{"error":"","choices":[{"delta":{"content":"a"}}]}"#.to_owned(),
        r#"{"error":{},"choices":[{"delta":{"content":"a"}}]}"#.to_owned(),
        r#"{"error":{"code":null,"message":null},"choices":[{"delta":{"content":"a"}}]}"#.to_owned(),
    ] {
        let read = events(OpenAi, &[&odd, &good, &ends("stop")]);
        assert_eq!((&read["text"], &read["outcome"], &read["error"]), (&json!("agood"), &json!("stop"), &Value::Null), "{odd}");
    }
    for odd in ["null", "\"keep-alive\"", "keep-alive", "1", "[]", r#"{"choices":{}}"#, "{}"] {
        assert_eq!(events(OpenAi, &[odd, &good, &ends("stop")])["text"], "good", "{odd}");
        let reply = [odd, &parts(r#"{"text":"good"}"#), &gemini_ends("STOP")]
            .map(|chunk| format!("data: {chunk}\n\n"));
        assert_eq!(read(Gemini, &reply.concat())["outcome"], "stop", "{odd}");
    }
    let read = events(OpenAi, &[&delta(r#"{"content":"\ud83d"}"#), &ends("stop")]);
    assert_eq!((&read["text"], &read["outcome"]), (&json!("\u{fffd}"), &json!("stop")));
    // A word beside the counts of a reply that is over is no error.
    let read = events(
        OpenAi,
        &[&good, &ends("stop"), r#"{"choices":[],"message":"done","usage":{"total_tokens":3}}"#],
    );
    assert_eq!((&read["outcome"], &read["error"]), (&json!("stop"), &Value::Null));
    // An index that is an error's is read where it stands.
    let read = events(OpenAi, &[r#"{"message":"no","code":500}"#]);
    assert_eq!(read["error"]["kind"], "overloaded");
}

#[test]
fn errors_keep_their_codes_and_are_never_lost() {
    for (body, code, status, kind) in [
        (r#"{"error":{"message":"x","code":"429"}}"#, json!(429), Value::Null, "busy"),
        (r#"{"error":{"message":"x","code":"500"}}"#, json!(500), Value::Null, "overloaded"),
        (r#"{"error":{"message":"x","status":503}}"#, json!(503), Value::Null, "overloaded"),
        (
            r#"[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED"}}]"#,
            json!(429),
            json!("RESOURCE_EXHAUSTED"),
            "busy",
        ),
        (
            r#"{"error":{"code":"content_filter","message":"x","status":400}}"#,
            json!(400),
            json!("content_filter"),
            "filtered",
        ),
        (
            r#"{"error":{"code":"tool_use_failed","message":"x"}}"#,
            Value::Null,
            json!("tool_use_failed"),
            "malformed_call",
        ),
        (
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":529,"message":"x"}}]}"#,
            json!(529),
            Value::Null,
            "overloaded",
        ),
    ] {
        for body in [format!("data: {body}\n\n"), body.to_owned(), format!("{body}\n: x\n")] {
            let error = &read(OpenAi, &body)["error"];
            assert_eq!(
                (&error["code"], &error["status"], &error["kind"]),
                (&code, &status, &json!(kind)),
                "{body}: {error}"
            );
            assert_eq!(error["message"], "x");
        }
    }
    let read = read(OpenAi, r#"{"error":{"code":"content_filter","message":"x","status":400}}"#);
    assert_eq!((&read["block"], &read["outcome"]), (&json!("content_filter"), &json!("blocked")));
}

#[test]
fn pieces_of_calls_find_together_and_are_not_said_twice() {
    let call = |index: &str, id: &str, name: &str, arguments: &str| {
        let arguments = Value::String(arguments.to_owned());
        piece(&format!(r#"{{{index}{id}"function":{{{name}"arguments":{arguments}}}}}"#))
    };
    let (zero, c, f) = (r#""index":0,"#, r#""id":"c","#, r#""name":"f","#);
    let a = json!({"a": 1});
    for (what, pieces) in [
        (
            "an empty object first",
            vec![call(zero, c, f, "{}"), call(zero, "", "", "{\"a\":"), call(zero, "", "", "1}")],
        ),
        (
            "the whole once more",
            vec![call(zero, c, f, "{\"a\":"), call(zero, "", "", "1}"), call(zero, c, f, "{\"a\": 1}")],
        ),
        (
            "the whole once more without a name",
            vec![call(zero, c, f, "{\"a\":1}"), call(zero, "", "", "{\"a\":1}")],
        ),
        ("a name on each piece", vec![call("", "", f, "{\"a\""), call("", "", f, ":1}")]),
        ("a name before its arguments", vec![call("", "", f, ""), call("", "", f, "{\"a\":1}")]),
    ] {
        let chunks: Vec<&str> = pieces
            .iter()
            .map(String::as_str)
            .chain([r#"{"choices":[{"finish_reason":"tool_calls"}]}"#])
            .collect();
        let read = events(OpenAi, &chunks);
        assert_eq!(calls(&read), [(json!("f"), a.clone())], "{what}");
    }
    let weather = [
        call(zero, c, r#""name":"get_","#, ""),
        call(zero, "", r#""name":"weather","#, ""),
        call(zero, "", "", "{\"a\":1}"),
        ends("tool_calls"),
    ];
    let read = events(OpenAi, &weather.each_ref().map(String::as_str));
    assert_eq!(calls(&read), [(json!("get_weather"), a.clone())]);
    // Two whole calls with one id are two.
    let two = [call("", c, f, "{\"a\":1}"), call("", c, f, "{\"a\":2}"), ends("tool_calls")];
    let read = events(OpenAi, &two.each_ref().map(String::as_str));
    assert_eq!(calls(&read), [(json!("f"), a), (json!("f"), json!({"a": 2}))]);
    // A call without arguments before one that has some keeps its place.
    let order =
        [call(zero, c, r#""name":"now","#, ""), call(r#""index":1,"#, "", f, "{}"), ends("tool_calls")];
    let read = events(OpenAi, &order.each_ref().map(String::as_str));
    assert_eq!(calls(&read), [(json!("now"), json!({})), (json!("f"), json!({}))]);
}

#[test]
fn thoughts_and_text_are_not_lost_and_not_doubled() {
    let read =
        events(OpenAi, &[&delta(r#"{"reasoning_content":"","reasoning":"x","content":"y"}"#), &ends("stop")]);
    assert_eq!((&read["thinking"], &read["text"]), (&json!("x"), &json!("y")));
    let whole = r#"{"choices":[{"index":0,"delta":null,"message":{"role":"assistant","content":"Hello you"},"finish_reason":"stop"}]}"#;
    let read = events(OpenAi, &[&delta(r#"{"content":"Hello "}"#), &delta(r#"{"content":"you"}"#), whole]);
    assert_eq!((&read["text"], &read["outcome"]), (&json!("Hello you"), &json!("stop")));
    assert_eq!(events(OpenAi, &[whole])["text"], "Hello you");
}

#[test]
fn frames_that_are_none_are_read_and_a_cut_keeps_what_came() {
    let chunks = [delta(r#"{"content":"one "}"#), delta(r#"{"content":"two"}"#), ends("stop")];
    for end in ["\n", "\r\n"] {
        let lines: String = chunks.iter().map(|chunk| format!("data: {chunk}{end}")).collect();
        for body in [
            format!("{lines}data: [DONE]{end}"),
            format!("{lines}{end}data: [DONE]{end}{end}"),
            lines.clone(),
        ] {
            let read = read(OpenAi, &body);
            assert_eq!((&read["text"], &read["outcome"]), (&json!("one two"), &json!("stop")), "{body}");
        }
        // One document on each line, and a list of them.
        let lines = chunks.join(end);
        assert_eq!(read(OpenAi, &lines)["outcome"], "stop", "{lines}");
        assert_eq!(read(OpenAi, &format!("{lines}{end}[DONE]"))["outcome"], "stop", "{lines}");
        let list = format!("[{}]", chunks.join(&format!(",{end}")));
        assert_eq!(read(OpenAi, &list)["text"], "one two");
        for cut in [&list[..list.len() - 30], &lines[..lines.len() - 30]] {
            let read = read(OpenAi, cut);
            assert_eq!((&read["text"], &read["outcome"]), (&json!("one two"), &json!("provider")), "{cut}");
        }
    }
    let list = format!("[{},\n{}", parts(r#"{"text":"one "}"#), &parts(r#"{"text":"two"}"#)[..40]);
    let read = read(Gemini, &list);
    assert_eq!((&read["text"], &read["outcome"]), (&json!("one "), &json!("provider")));
}
