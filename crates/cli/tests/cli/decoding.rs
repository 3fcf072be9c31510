//! `lectern debug decode` as those use it who look into a provider: a recorded body in, one JSON object out.

use serde_json::{Value, json};

use crate::lectern::Lectern;

/// What is printed for a body, whatever the pieces in which it is read.
fn decoded(provider: &str, body: &str) -> Value {
    let lectern = Lectern::new();
    let read = |more: &[&str]| {
        let ran = lectern.run_with(body, [&["debug", "decode", "--provider", provider], more].concat());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.out.lines().count(), 1, "{ran:?}");
        serde_json::from_str::<Value>(&ran.out).unwrap()
    };
    let whole = read(&[]);
    for chunk in ["1", "7", "4096"] {
        assert_eq!(read(&["--chunk", chunk]), whole, "{body} in pieces of {chunk}");
    }
    whole
}

#[test]
fn a_body_of_either_provider_becomes_one_object() {
    let recorded = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../cloud/tests/recorded/constructed/stream-calls-spread-over-chunks.txt"
    );
    let read = decoded("gemini", &std::fs::read_to_string(recorded).unwrap());
    assert_eq!(read["text"], "Let me look. ");
    assert_eq!(
        read["calls"],
        json!([{"id": null, "name": "a", "args": {"x": 1}, "signed": true}, {"id": null, "name": "b", "args": {"y": 2}, "signed": false}])
    );
    assert_eq!(
        (&read["finish"], &read["error"], &read["block"]),
        (&json!("STOP"), &Value::Null, &Value::Null)
    );
    assert_eq!(read["usage"]["totalTokenCount"], 18);

    let chunk = r#"{"model":"m","choices":[{"delta":{"reasoning":"Hm.","content":"Hé 🎈","tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a":1}}}]},"finish_reason":"tool_calls"}],"usage":{"total_tokens":3}}"#;
    let read = decoded("openai", &format!("data: {chunk}\r\n\r\ndata: [DONE]\r\n\r\n"));
    assert_eq!(
        (&read["thinking"], &read["text"], &read["model"]),
        (&json!("Hm."), &json!("Hé 🎈"), &json!("m"))
    );
    assert_eq!(read["calls"], json!([{"id": "c", "name": "f", "args": {"a": 1}, "signed": false}]));
    assert_eq!((&read["usage"], &read["outcome"]), (&json!({"total_tokens": 3}), &json!("tool_calls")));
}

#[test]
fn odd_bodies_say_what_is_wrong_with_them() {
    let outcome = |provider: &str, body: &str| decoded(provider, body)["outcome"].clone();
    // Nothing, words, a page, half a document.
    for provider in ["gemini", "openai"] {
        assert_eq!(outcome(provider, ""), "empty_answer");
        let page = decoded(provider, "<!DOCTYPE html>\n<title>Sign in</title>");
        assert_eq!((&page["error"]["html"], &page["error"]["message"]), (&json!(true), &json!("Sign in")));
        assert_eq!(decoded(provider, "upstream connect error")["error"]["kind"], "no_answer");
        assert_eq!(decoded(provider, "data: {\"candidates\": [{\"con")["error"]["kind"], "no_answer");
    }
    // Half a call.
    let half = r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.q","stringValue":"he"}],"willContinue":true}}]},"finishReason":"MAX_TOKENS"}]}"#;
    let read = decoded("gemini", half);
    assert!(read["calls"][0]["args"].is_string(), "{read}");
    assert_eq!(read["outcome"], "length");
    // Errors with their codes, also where they stand behind an answer.
    let filtered = decoded("openai", r#"{"error":{"code":"content_filter","message":"no","status":400}}"#);
    assert_eq!((&filtered["block"], &filtered["error"]["code"]), (&json!("content_filter"), &json!(400)));
    let broken = decoded(
        "openai",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\ndata: {\"error\":{\"message\":\"x\",\"code\":\"503\"}}\n\n",
    );
    assert_eq!(
        (&broken["text"], &broken["error"]["code"], &broken["error"]["kind"]),
        (&json!("Half"), &json!(503), &json!("overloaded"))
    );
    // What the network cut.
    assert_eq!(outcome("openai", "data: {\"choices\":[{\"delta\":{\"content\":\"Half\"}}]}\n\n"), "provider");
}

#[test]
fn bytes_that_are_no_text_are_read_too() {
    let lectern = Lectern::new();
    let mut child = lectern.start(["debug", "decode", "--provider", "openai", "--chunk", "3"]);
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\"},\"finish_reason\":\"stop\"}]}\n\n";
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), body).unwrap();
    let output = child.wait_with_output().unwrap();
    let read: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&read["text"], &read["outcome"]), (&json!("a\u{fffd}"), &json!("stop")));
    let wrong = lectern.run(["debug", "decode", "--provider", "nobody"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
