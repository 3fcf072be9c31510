//! Each failure of a provider, end to end through `lectern ask`: of an OpenAI-compatible endpoint and of Gemini.

use std::time::Duration;

use lectern_core::{EventKind, FinishReason, ModelErrorCode, TurnError, TurnErrorCode, TurnOutcome};
use lectern_fake_provider::{Answer, Piece, Server};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::lectern::{Asked, Lectern, Ran};
use crate::providers::{REPLY, runtime};

/// Whose answers are played.
#[derive(Clone, Copy, Debug)]
enum Kind {
    OpenAi,
    Gemini,
}

const BOTH: [Kind; 2] = [Kind::OpenAi, Kind::Gemini];

impl Kind {
    /// A piece of text, and the end where there is one.
    fn chunk(self, text: &str, finish: Option<&str>) -> Value {
        match self {
            Self::OpenAi => json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m",
                "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}),
            Self::Gemini => {
                let mut chunk = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0}]});
                if let Some(finish) = finish {
                    chunk["candidates"][0]["finishReason"] = json!(finish);
                }
                chunk
            }
        }
    }

    fn stop(self) -> &'static str {
        match self {
            Self::OpenAi => "stop",
            Self::Gemini => "STOP",
        }
    }

    fn good(self) -> Answer {
        Answer::events([&self.chunk(REPLY, Some(self.stop()))])
    }

    fn settings(self, url: &str, more: &Value) -> Value {
        let mut provider = match self {
            Self::OpenAi => {
                json!({"id": "p", "kind": "openai_compatible", "sign_in": "none", "base_url": url})
            }
            Self::Gemini => json!({"id": "p", "kind": "gemini", "sign_in": "key", "base_url": url}),
        };
        provider.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "providers": [provider] })
    }
}

/// A question to a provider that answers like this, one answer for each request.
struct Play {
    _runtime: Runtime,
    server: Server,
    lectern: Lectern,
}

impl Play {
    fn of(kind: Kind, answers: Vec<Answer>) -> Self {
        Self::with(kind, answers, &json!({}))
    }

    fn with(kind: Kind, answers: Vec<Answer>, options: &Value) -> Self {
        let runtime = runtime();
        let server = runtime.block_on(Server::script(answers));
        let lectern = Lectern::new();
        lectern.write("settings.json", &kind.settings(&server.url(), options).to_string());
        Self { _runtime: runtime, server, lectern }
    }

    fn run(&self, more: &[&str]) -> Ran {
        let args = [&["ask", "--model", "p/gemini-3.5-flash"], more, &["hello"]].concat();
        self.lectern.run_within(&[("LECTERN_PROVIDER_P", "key-for-the-test")], "", &args)
    }

    fn ask(&self) -> Asked {
        let ran = self.run(&["--json"]);
        let events = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Asked { ran, events }
    }
}

fn pauses(asked: &Asked) -> Vec<(u64, ModelErrorCode)> {
    let pause = |kind: &EventKind| match kind {
        EventKind::Retrying { after_ms, reason, .. } => Some((*after_ms, *reason)),
        _ => None,
    };
    asked.events.iter().filter_map(|event| pause(&event.kind)).collect()
}

fn failed(asked: &Asked) -> TurnError {
    assert_eq!(asked.ran.code, Some(1), "{:?}", asked.ran);
    let TurnOutcome::Failed { error } = asked.outcome() else { panic!("{:?}", asked.ran) };
    error.clone()
}

/// The text of the last message that was kept, and whether it is marked as incomplete.
fn kept(asked: &Asked) -> (String, bool) {
    let last = asked.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::StepFinished { message, .. } => Some((message.text(), message.incomplete)),
        _ => None,
    });
    last.unwrap()
}

#[test]
fn an_overload_is_waited_for_and_then_answered() {
    for kind in BOTH {
        let busy =
            Answer::json(503, &json!({"error": {"code": 503, "status": "UNAVAILABLE", "message": "x"}}));
        let play = Play::of(kind, vec![busy, kind.good()]);
        let asked = play.ask();
        assert_eq!(asked.answer(), REPLY);
        let [(after, ModelErrorCode::Provider)] = pauses(&asked)[..] else { panic!("{:?}", asked.ran) };
        assert!(after > 0);
        assert_eq!(play.server.seen().len(), 2);
    }
}

#[test]
fn a_rate_limit_is_waited_for_as_long_as_it_says() {
    for kind in BOTH {
        let busy = Answer::json(
            429,
            &json!({"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x", "details": [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "1.5s"}]}}),
        );
        let play = Play::of(kind, vec![busy, kind.good()]);
        let asked = play.ask();
        assert_eq!(asked.answer(), REPLY);
        let [(after, ModelErrorCode::RateLimited)] = pauses(&asked)[..] else { panic!("{:?}", asked.ran) };
        assert!(after >= 1_500, "{after}");
    }
}

#[test]
fn an_answer_that_is_cut_stays_and_is_marked() {
    for kind in BOTH {
        let chunks = ["one ", "two ", "three"].map(|text| kind.chunk(text, None));
        for cut in [
            Answer::events(&chunks).then(Piece::Pause(Duration::from_millis(50))).then(Piece::Cut),
            Answer::events(&chunks),
        ] {
            let play = Play::of(kind, vec![cut, kind.good()]);
            let asked = play.ask();
            let error = failed(&asked);
            assert!(error.hint.is_some(), "{error:?}");
            assert_eq!(kept(&asked), ("one two three".to_owned(), true));
            assert_eq!(play.server.seen().len(), 1, "it is never begun anew by itself");
            let ran = play.run(&[]);
            assert!(ran.code == Some(0), "{ran:?}");
        }
    }
}

#[test]
fn a_page_in_place_of_an_answer_is_named() {
    for kind in BOTH {
        let page = Answer::of(200, "text/html", "<!DOCTYPE html>\n<title>Sign in to the network</title>");
        let play = Play::of(kind, vec![page, kind.good()]);
        let asked = play.ask();
        let error = failed(&asked);
        assert!(error.message.contains("HTML"), "{error:?}");
        assert_eq!((pauses(&asked).len(), play.server.seen().len()), (0, 1));
    }
}

#[test]
fn an_answer_that_drips_arrives_whole() {
    for kind in BOTH {
        let body = format!("data: {}\n\n", kind.chunk("ö drop", Some(kind.stop())));
        let mut drip = Answer { status: 200, headers: Vec::new(), pieces: Vec::new() };
        for (at, byte) in body.bytes().enumerate() {
            drip = drip.then(Piece::Bytes(vec![byte]));
            if at < 3 {
                drip = drip.then(Piece::Pause(Duration::from_secs(1)));
            }
        }
        assert_eq!(Play::of(kind, vec![drip]).ask().answer(), "ö drop");
    }
}

#[test]
fn a_stall_ends_by_its_limit() {
    for kind in BOTH {
        let half = Answer::events([&kind.chunk("Half", None)]).then(Piece::Stall);
        let play = Play::with(kind, vec![half, kind.good()], &json!({"stall_seconds": 1}));
        let asked = play.ask();
        let error = failed(&asked);
        assert_eq!(error.code, TurnErrorCode::Model(ModelErrorCode::Incomplete));
        assert_eq!(kept(&asked), ("Half".to_owned(), true));

        let nothing = Answer { status: 200, headers: Vec::new(), pieces: vec![Piece::Stall] };
        let play = Play::with(kind, vec![nothing, kind.good()], &json!({"wait_seconds": 1}));
        let error = failed(&play.ask());
        assert_eq!(error.code, TurnErrorCode::Model(ModelErrorCode::Unreachable));
        assert_eq!(play.server.seen().len(), 1);
    }
}

#[test]
fn an_answer_without_a_word_is_none() {
    for kind in BOTH {
        let empty = Answer::events([&kind.chunk("", Some(kind.stop()))]);
        let asked = Play::of(kind, vec![empty]).ask();
        assert_eq!(failed(&asked).code, TurnErrorCode::Model(ModelErrorCode::EmptyAnswer));
        assert_eq!(pauses(&asked).len(), 3);
    }
}

#[test]
fn what_cut_an_answer_short_is_said_with_a_way_out() {
    for (kind, finish) in
        [(Kind::OpenAi, "length"), (Kind::OpenAi, "max_tokens"), (Kind::Gemini, "MAX_TOKENS")]
    {
        let play = Play::of(kind, vec![Answer::events([&kind.chunk("Half", Some(finish))])]);
        let ran = play.run(&[]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Half\n"), "{ran:?}");
        assert!(ran.err.contains("cut at the limit of tokens") && ran.err.contains("hint: "), "{ran:?}");
    }
    for (kind, finish) in
        [(Kind::OpenAi, "content_filter"), (Kind::OpenAi, "sensitive"), (Kind::Gemini, "SAFETY")]
    {
        let play = Play::of(kind, vec![Answer::events([&kind.chunk("Half", Some(finish))])]);
        let ran = play.run(&[]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Half\n"), "{ran:?}");
        assert!(ran.err.contains(&format!("withheld the rest of the answer ({finish})")), "{ran:?}");
        assert!(ran.err.contains("hint: "), "{ran:?}");
        let asked = play.ask();
        assert!(asked.events.iter().any(|event| matches!(
            event.kind,
            EventKind::StepFinished { finish: FinishReason::Filtered, .. }
        )));
    }
    for (kind, finish) in [(Kind::OpenAi, "something_new"), (Kind::Gemini, "ESCALATION")] {
        let ran = Play::of(kind, vec![Answer::events([&kind.chunk("Half", Some(finish))])]).run(&[]);
        assert!(ran.err.contains(&format!("not known here ({finish})")), "{ran:?}");
    }
    let thoughts = json!({"candidates": [{"content": {"parts": [{"text": "Hm", "thought": true}]}, "finishReason": "MAX_TOKENS"}]});
    let ran = Play::of(Kind::Gemini, vec![Answer::events([&thoughts])]).run(&[]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.err.contains("before the answer began") && ran.err.contains("hint: "), "{ran:?}");
}

#[test]
fn no_tool_runs_with_half_a_call_or_a_withheld_one() {
    let search = |end: Value, chunk: Value| vec![Answer::events([&chunk, &end]), Kind::Gemini.good()];
    let half = json!({"candidates": [{"content": {"parts": [{"functionCall": {"name": "notes__search_notes", "willContinue": true,
        "partialArgs": [{"jsonPath": "$.query", "stringValue": "her", "willContinue": true}]}}]}}]});
    let ended = |finish: &str| json!({"candidates": [{"finishReason": finish}]});
    for finish in ["MAX_TOKENS", "STOP"] {
        let asked = Play::of(Kind::Gemini, search(ended(finish), half.clone())).ask();
        assert_eq!(asked.answer(), REPLY);
        let started = asked.events.iter().any(|event| matches!(event.kind, EventKind::ToolStarted { .. }));
        assert!(!started, "{:?}", asked.ran);
    }
    let whole = json!({"candidates": [{"content": {"parts": [{"text": "Let me see."},
        {"functionCall": {"name": "notes__search_notes", "args": {"query": "heron"}}}]}}]});
    let play = Play::of(Kind::Gemini, search(ended("SAFETY"), whole));
    let asked = play.ask();
    assert_eq!((asked.results().len(), play.server.seen().len()), (0, 1), "{:?}", asked.ran);
    let call = json!({"choices": [{"index": 0, "delta": {"content": "Let me see.", "tool_calls": [{"index": 0, "id": "c",
        "function": {"name": "notes__search_notes", "arguments": "{\"query\":\"heron\"}"}}]}}]});
    for (finish, code) in [("content_filter", 0), ("abort", 1), ("something_new", 1)] {
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
        let play = Play::of(Kind::OpenAi, vec![Answer::events([&call, &end]), Kind::OpenAi.good()]);
        let asked = play.ask();
        assert_eq!(asked.ran.code, Some(code), "{finish}: {:?}", asked.ran);
        assert_eq!((asked.results().len(), play.server.seen().len()), (0, 1), "{finish}: {:?}", asked.ran);
    }
}
