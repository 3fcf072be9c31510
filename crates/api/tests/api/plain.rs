//! Models, answers in one body and in pieces.

use lectern_core::testing::{Beat, fails, says};
use lectern_core::{Delta, FinishReason, ModelErrorCode, Usage};
use serde_json::{Value, json};

use crate::house::{error, frames, house, question, with};
use crate::schemas;

#[tokio::test]
async fn models_are_listed_and_found_by_their_id() {
    let house = house([]).await;
    let list: Value = house.get("/v1/models").send().await.unwrap().json().await.unwrap();
    schemas::models(&list);
    assert_eq!(list["data"][0]["id"], "scripted");
    let one: Value = house.get("/v1/models/scripted").send().await.unwrap().json().await.unwrap();
    schemas::model(&one);
    assert_eq!(one, list["data"][0]);
    let (status, error) = error(house.get("/v1/models/other/one").send().await.unwrap()).await;
    assert_eq!((status, &error["code"]), (404, &json!("model_not_found")));
}

#[tokio::test]
async fn an_answer_is_the_same_in_one_body_and_in_pieces() {
    let reply = || {
        let usage = Usage { prompt_tokens: 7, reused_tokens: 3, generated_tokens: 2, ..Usage::default() };
        vec![
            Beat::Delta(Delta::Thinking("Hm.".to_owned())),
            Beat::Delta(Delta::Text("Grüß ".to_owned())),
            Beat::Delta(Delta::Text("Gott.\n\n\u{2028}data: x".to_owned())),
            Beat::Delta(Delta::Usage(usage)),
            Beat::Delta(Delta::Finished(FinishReason::Stop)),
        ]
    };
    let house = house([reply(), reply(), reply()]).await;
    let whole = house.completion(&question("hi")).await;
    let message = &whole["choices"][0]["message"];
    assert_eq!(message["content"], "Grüß Gott.\n\n\u{2028}data: x");
    assert_eq!(message["reasoning_content"], "Hm.");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    assert_eq!(whole["usage"]["total_tokens"], 9);
    assert_eq!(whole["usage"]["prompt_tokens_details"]["cached_tokens"], 3);

    let chunks = house.chunks(&with(question("hi"), json!({"stream": true}))).await;
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let text: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, message["content"].as_str().unwrap());
    assert!(chunks.iter().all(|chunk| chunk["choices"].as_array().unwrap().len() == 1));
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none() && chunk["id"] == chunks[0]["id"]));
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "stop");

    let asked = with(question("hi"), json!({"stream": true, "stream_options": {"include_usage": true}}));
    let chunks = house.chunks(&asked).await;
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!(last["usage"], whole["usage"]);
    assert_eq!(last["choices"], json!([]));
    assert!(others.iter().all(|chunk| chunk["usage"].is_null() && chunk.get("usage").is_some()));
}

#[tokio::test]
async fn a_model_that_fails_before_a_word_is_an_error_with_a_status() {
    use ModelErrorCode::{BadRequest, Blocked, ContextFull, Provider, RateLimited, Unauthorized};
    let cases = [
        (ContextFull, 400, "context_length_exceeded"),
        (BadRequest, 400, "model_refused_request"),
        (Blocked, 400, "content_filter"),
        (RateLimited, 429, "provider_rate_limited"),
        (Unauthorized, 502, "provider_unauthorized"),
        (Provider, 502, "provider_error"),
    ];
    let replies = cases.iter().flat_map(|(code, ..)| [fails(*code, "no"), fails(*code, "no")]);
    let house = house(replies).await;
    for (_, status, code) in cases {
        for stream in [false, true] {
            let (got, error) = house.refusal(&with(question("hi"), json!({"stream": stream}))).await;
            assert_eq!((got, &error["code"]), (status, &json!(code)));
        }
    }
}

#[tokio::test]
async fn a_model_that_fails_in_the_middle_ends_the_stream_with_the_error() {
    let mut broken = vec![Beat::Delta(Delta::Text("Half ".to_owned()))];
    broken.extend(fails(ModelErrorCode::Unreachable, "the line is dead"));
    let house = house([broken.clone(), broken]).await;
    let response = house.ask(&with(question("hi"), json!({"stream": true}))).await;
    assert_eq!(response.status(), 200);
    let (data, _) = frames(&response.text().await.unwrap());
    let last: Value = serde_json::from_str(data.last().unwrap()).unwrap();
    schemas::error(&last);
    assert_eq!(last["error"]["code"], "provider_unreachable");
    let (status, _) = house.refusal(&question("hi")).await;
    assert_eq!(status, 502);
}

#[tokio::test]
async fn a_cut_answer_says_so() {
    let cut = |finish| vec![Beat::Delta(Delta::Text("So".to_owned())), Beat::Delta(Delta::Finished(finish))];
    let house = house([cut(FinishReason::Length), cut(FinishReason::Filtered)]).await;
    assert_eq!(house.completion(&question("1")).await["choices"][0]["finish_reason"], "length");
    assert_eq!(house.completion(&question("2")).await["choices"][0]["finish_reason"], "content_filter");
}

#[tokio::test]
async fn a_conversation_that_goes_on_keeps_its_place_in_the_cache() {
    let house = house([says("one"), says("two"), says("three")]).await;
    let first = json!({"role": "user", "content": "a"});
    let answer = json!({"role": "assistant", "content": "one"});
    let more = json!({"role": "user", "content": [{"type": "text", "text": "b"}]});
    for messages in [json!([first]), json!([first, answer, more]), json!([more])] {
        house.completion(&json!({"model": "scripted", "messages": messages})).await;
    }
    let asked: Vec<_> = house.model.requests().into_iter().map(|request| request.conversation).collect();
    assert_eq!(asked[0], asked[1]);
    assert_ne!(asked[0], asked[2]);
}
