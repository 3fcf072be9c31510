//! Ctrl-C in the middle of answers.

use std::io::{BufRead, BufReader};
use std::sync::Arc;

use lectern_fake_provider::{Answer, Piece, Server};
use serde_json::{Value, json};

use crate::lectern::Lectern;
use crate::providers::runtime;
use crate::served::Serving;

#[test]
fn answers_that_are_not_done_ten_seconds_after_ctrl_c_are_told_why_they_end() {
    let lectern = Lectern::new();
    let runtime = runtime();
    let word = json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Once"}, "finish_reason": null}]});
    let endless = Answer::events([&word]).then(Piece::Stall);
    let provider = runtime.block_on(Server::start(Arc::new(move |_| endless.clone())));
    let at = format!("{}/v1", provider.url());
    let serving = Serving::start(&lectern, &["--model", "m", "--base-url", &at]);
    let body = json!({"messages": [{"role": "user", "content": "Tell me"}], "stream": true});
    let streams = ["/v1/chat/completions", "/api/chat/completions"].map(|path| {
        let mut lines = BufReader::new(serving.send("POST", path, &serving.key, Some(&body))).lines();
        assert!(lines.any(|line| line.unwrap().contains("Once")), "{path}");
        lines
    });
    let ended = std::thread::spawn(|| serving.interrupt());
    for lines in streams {
        let data: Vec<String> = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("data: ").map(str::to_owned))
            .filter(|data| data != "[DONE]")
            .collect();
        let last: Value = serde_json::from_str(data.last().unwrap()).unwrap();
        assert_eq!(last["error"]["code"], "server_ending", "{last}");
    }
    assert_eq!(ended.join().unwrap(), Some(0));
}
