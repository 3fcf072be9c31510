//! Remote models from the terminal: real HTTP to a strict Vertex AI and to endpoints of the test's own, secrets in a real
//! keyring.

use std::path::Path;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use lectern_core::{EventKind, ToolOutcome, TurnOutcome};
use lectern_fake_provider::vertex::{EMAIL, PRIVATE_KEY, Step, Vertex};
use lectern_fake_provider::{Answer, Seen, Server};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::lectern::{ANSWER, Asked, Lectern, QUESTION, Ran};
use crate::session::Session;

const KEY: &str = "sk-Ab3/+q9Zx_7Lmn-Key";
pub const REPLY: &str = "Nineteen herons, says the note.";

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Five steps over the sample vault; two of them call in parallel.
fn five_steps() -> Vec<Step> {
    let search = |query: &str| json!({ "query": query });
    vec![
        Step::default().thinks("Where is it?").calls("notes__search_notes", &search("heron")),
        Step::default()
            .calls("notes__search_notes", &search("canal"))
            .calls("notes__read_note", &json!({"path": "House/Energy/Heat pump.md"}))
            .with_ids(),
        Step::says(&["Once ", "more."]).calls("notes__search_notes", &search("E7")),
        Step::default()
            .calls("notes__read_note", &json!({"path": "House/Energy/Heat pump.md"}))
            .calls("notes__search_notes", &search("walk")),
        Step::says(&["Nineteen herons, ", "says the note."]).signed_end(),
    ]
}

/// Signs in to Vertex AI with a service account on standard input.
fn log_in(session: &Session, lectern: &Lectern, fake: &Vertex) -> Ran {
    let args =
        ["models", "login", "vertex", "--service-account", "-", "--base-url", &fake.server.url(), "--json"];
    session.run(lectern, &fake.service_account().to_string(), &args)
}

fn ask(session: &Session, lectern: &Lectern, args: &[&str]) -> Asked {
    let ran = session.run(lectern, "", &[&["ask", "--json", "--yes"], args].concat());
    let events = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Asked { ran, events }
}

/// An OpenAI-compatible endpoint with one model; wants this key, if any.
pub async fn endpoint(key: Option<&'static str>) -> Server {
    Server::start(Arc::new(move |seen: &Seen| {
        let expected = key.map(|key| format!("Bearer {key}")).unwrap_or_default();
        if seen.header("authorization") != expected {
            let body = json!({"error": {"message": "no", "type": "invalid_request_error", "code": "invalid_api_key"}});
            return Answer::json(401, &body);
        }
        if seen.path == "/v1/models" {
            return Answer::json(200, &json!({"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 8192}]}));
        }
        let called = seen.json()["messages"].as_array().is_some_and(|all| all.iter().any(|m| m["role"] == "tool"));
        let offers = seen.json()["tools"].as_array().is_some_and(|tools| {
            tools.iter().any(|tool| tool["function"]["name"] == "weather_in")
        });
        let delta = match (offers, called) {
            (true, false) => json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function",
                "function": {"name": "weather_in", "arguments": "{\"city\": \"Oslo\"}"}}]}),
            (true, true) | (false, _) => json!({"role": "assistant", "content": REPLY}),
        };
        let finish = if offers && !called { "tool_calls" } else { "stop" };
        let chunk = json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny",
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        let last = json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "tiny",
            "choices": [{"index": 0, "delta": {}, "finish_reason": finish}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18,
                "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 2}}});
        let text = format!("data: {chunk}\n\ndata: {last}\n\ndata: [DONE]\n\n");
        Answer::of(200, "text/event-stream", text)
    }))
    .await
}

#[test]
fn a_service_account_carries_a_turn_of_five_steps() {
    let runtime = runtime();
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let fake = runtime.block_on(Vertex::start(five_steps()));
    let login = log_in(&session, &lectern, &fake);
    assert_eq!(login.code, Some(0), "{login:?}");
    let signed_in: Value = serde_json::from_str(&login.out).unwrap();
    assert_eq!(signed_in["provider"]["login"]["account"], EMAIL);
    assert_eq!(signed_in["provider"]["login"]["place"], "keyring");

    let asked = ask(&session, &lectern, &["--model", "vertex/gemini-3.5-flash", "How many herons?"]);
    assert_eq!(fake.refusals(), Vec::<String>::new());
    assert_eq!(asked.answer(), "Nineteen herons, says the note.");
    let results = asked.results();
    assert_eq!(results.len(), 6);
    assert!(results.iter().all(|result| result.outcome == ToolOutcome::Succeeded), "{results:?}");
    let usages = asked.usages();
    assert_eq!(usages.len(), 5);
    for (number, usage) in usages.iter().enumerate() {
        let expected = (10 + number as u32, 3, 7, Some(2));
        let told = (usage.prompt_tokens, usage.reused_tokens, usage.generated_tokens, usage.thinking_tokens);
        assert_eq!(told, expected);
    }
    // One token for all the steps, and the account's key never left this computer.
    let seen = fake.server.seen();
    assert_eq!(seen.iter().filter(|seen| seen.path == "/token").count(), 1);
    assert!(!seen.iter().any(|seen| String::from_utf8_lossy(&seen.raw).contains("PRIVATE KEY")));
    // Who looks later is told the same, without the keyring being asked.
    let listed = lectern.run(["models", "providers", "--json"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(listed["providers"][0]["login"]["account"], EMAIL);
    // Signed out, the next question is kept, and says what to do.
    assert_eq!(session.run(&lectern, "", &["models", "logout", "vertex"]).code, Some(0));
    let asked = ask(&session, &lectern, &["--model", "vertex/gemini-3.5-flash", "Again?"]);
    let TurnOutcome::Failed { error } = asked.outcome() else { panic!("{:?}", asked.ran) };
    assert!(error.message.contains("nobody is signed in"), "{error:?}");
    assert_eq!(asked.ran.code, Some(1));
}

#[test]
fn an_endpoint_answers_with_a_key_and_without() {
    let runtime = runtime();
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let (open, closed) = runtime.block_on(async { (endpoint(None).await, endpoint(Some(KEY)).await) });
    let added = lectern.run(["models", "add-endpoint", &open.url(), "--name", "open", "--json"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    let added: Value = serde_json::from_str(&added.out).unwrap();
    assert_eq!(added["models"][0]["id"], "tiny");
    assert_eq!(added["models"][0]["remote"]["leaves_machine"], false);
    let asked = lectern.ask(["--model", "tiny", "hello"]);
    assert_eq!(asked.answer(), REPLY);
    let usage = asked.usages()[0];
    assert_eq!((usage.prompt_tokens, usage.reused_tokens, usage.generated_tokens), (11, 4, 7));
    assert_eq!(usage.thinking_tokens, Some(2));

    let add = ["models", "add-endpoint", &closed.url(), "--name", "closed", "--key", "--json"];
    let added = session.run(&lectern, &format!("{KEY}\n"), &add);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert_eq!(ask(&session, &lectern, &["--model", "closed/tiny", "hello"]).answer(), REPLY);
    // The environment wins over the keyring, and a wrong key is named as one.
    let mut env = session.env();
    env.push(("LECTERN_PROVIDER_CLOSED", "wrong".to_owned()));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let ran = lectern.run_within(&env, "", &["ask", "--model", "closed/tiny", "hello"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("does not accept the key"), "{ran:?}");
}

#[test]
fn how_long_an_endpoint_is_waited_for_is_said_when_it_is_added() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let server = runtime.block_on(endpoint(None));
    let add = |wait| lectern.run(["models", "add-endpoint", &server.url(), "--json", "--wait-seconds", wait]);
    for refused in ["0", "86401", "soon"] {
        assert_eq!(add(refused).code, Some(2), "{refused}");
    }
    let added: Value = serde_json::from_str(&add("900").out).unwrap();
    assert_eq!(added["provider"]["options"], json!({"wait_seconds": 900}));
    let settings = std::fs::read_to_string(lectern.home().join("settings.json")).unwrap();
    assert!(settings.contains("\"wait_seconds\": 900"), "{settings}");
}

#[test]
fn an_address_is_enough_for_one_question() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let server = runtime.block_on(endpoint(None));
    for model in ["tiny", "some/tiny"] {
        let asked = lectern.ask(["--model", model, "--base-url", &server.url(), "hello"]);
        assert_eq!(asked.answer(), REPLY);
        assert_eq!(server.seen().last().unwrap().json()["model"], model);
    }
    let settings = std::fs::read_to_string(lectern.home().join("settings.json")).unwrap_or_default();
    assert!(!settings.contains("tiny"), "{settings}");
    let refused = lectern.run(["ask", "--model", "starter", "--base-url", &server.url(), "hello"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

#[test]
fn a_test_shows_an_answer_and_a_call() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let server = runtime.block_on(endpoint(None));
    lectern.run(["models", "add-endpoint", &server.url()]);
    let tested = lectern.run(["models", "test", "tiny", "--json"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    let tested: Value = serde_json::from_str(&tested.out).unwrap();
    assert_eq!(tested["answer"]["text"], REPLY);
    assert_eq!(tested["call"]["calls"][0]["tool"], "weather_in");
    assert_eq!(tested["call"]["usage"]["prompt_tokens"], 11);
    drop(server);
    let failed = lectern.run(["models", "test", "tiny"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.out.contains("failed") && failed.out.contains("Start the server"), "{failed:?}");
}

#[test]
fn a_conversation_goes_from_a_local_model_to_gemini_and_back() {
    let runtime = runtime();
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let steps = vec![
        Step::default().calls("notes__search_notes", &json!({"query": "heron"})),
        Step::says(&["Nineteen."]),
    ];
    let fake = runtime.block_on(Vertex::start(steps));
    assert_eq!(log_in(&session, &lectern, &fake).code, Some(0));
    let first = ask(&session, &lectern, &[QUESTION]);
    assert!(first.answer().contains(ANSWER));
    let id = first.events[0].conversation.clone();
    let args = ["--conversation", id.as_str(), "--model", "vertex/gemini-3.5-flash", "How many herons?"];
    let second = ask(&session, &lectern, &args);
    assert_eq!(fake.refusals(), Vec::<String>::new());
    assert_eq!(second.answer(), "Nineteen.");
    let third = ask(&session, &lectern, &["--conversation", id.as_str(), QUESTION]);
    assert!(third.answer().contains(ANSWER), "{}", third.answer());
}

#[test]
fn without_a_keyring_the_environment_helps_out() {
    let runtime = runtime();
    let (lectern, session) = (Lectern::new(), Session::without_keyring());
    let fake = runtime.block_on(Vertex::start(vec![Step::says(&["Here."])]));
    let login = log_in(&session, &lectern, &fake);
    assert_eq!(login.code, Some(1), "{login:?}");
    assert!(login.err.contains("no keyring") && login.err.contains("LECTERN_"), "{login:?}");
    // Somebody sets the provider up by hand.
    let settings = json!({"providers": [{"id": "work", "kind": "vertex", "sign_in": "service_account",
        "base_url": fake.server.url(), "location": "europe-west1"}]});
    lectern.write("settings.json", &settings.to_string());
    let asked = ask(&session, &lectern, &["--model", "work/gemini-3.5-flash", "hello"]);
    let TurnOutcome::Failed { error } = asked.outcome() else { panic!("{:?}", asked.ran) };
    assert!(error.message.contains("no keyring"), "{error:?}");
    assert!(error.hint.as_ref().unwrap().contains("LECTERN_PROVIDER_WORK"), "{error:?}");
    let account = fake.service_account().to_string();
    let env = [("LECTERN_PROVIDER_WORK", account.as_str())];
    let ran = lectern.run_within(&env, "", &["ask", "--model", "work/gemini-3.5-flash", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("Here."), "{ran:?}");
}

#[test]
fn a_locked_keyring_is_said() {
    let runtime = runtime();
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let fake = runtime.block_on(Vertex::start(vec![Step::says(&["Here."])]));
    assert_eq!(log_in(&session, &lectern, &fake).code, Some(0));
    session.lock();
    let asked = ask(&session, &lectern, &["--model", "vertex/gemini-3.5-flash", "hello"]);
    let TurnOutcome::Failed { error } = asked.outcome() else { panic!("{:?}", asked.ran) };
    assert!(error.message.contains("the keyring is locked"), "{error:?}");
    assert!(error.hint.as_ref().unwrap().contains("Unlock"), "{error:?}");
    let again = log_in(&session, &lectern, &fake);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("the keyring is locked"), "{again:?}");
    assert!(fake.server.seen().is_empty(), "something was asked without the secret");
}

#[test]
fn found_credentials_are_shown_and_used_after_a_yes_only() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let fake = runtime.block_on(Vertex::start(vec![Step::says(&["Here."])]));
    let person = json!({"type": "authorized_user", "client_id": "c.apps", "client_secret": "shh-secret",
        "refresh_token": "1//refresh", "quota_project_id": "payer", "token_uri": format!("{}/token", fake.server.url())});
    let file = lectern.write("elsewhere/adc.json", &person.to_string());
    let env = [("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap())];
    let run = |args: &[&str]| lectern.run_within(&env, "", args);
    let url = fake.server.url();
    let login = ["models", "login", "vertex", "--application-default", "--base-url", &url];
    let refused = run(&login);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("a person's login") && refused.err.contains("payer"), "{refused:?}");
    let said = run(&[&login[..], &["--yes", "--json"]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(fake.server.seen().is_empty(), "something was asked before it was used");
    let ran = run(&["ask", "--model", "vertex/gemini-3.5-flash", "hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fake.server.seen().last().unwrap().header("x-goog-user-project"), "payer");
    let kept = std::fs::read_to_string(lectern.home().join("settings.json")).unwrap();
    assert!(!kept.contains("shh-secret") && !kept.contains("1//refresh"), "{kept}");
    // Another login in the same place is not what was said yes to.
    std::fs::write(&file, person.to_string().replace("c.apps", "other.apps")).unwrap();
    let ran = run(&["ask", "--model", "vertex/gemini-3.5-flash", "hello"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("not what you said yes to"), "{ran:?}");
}

#[test]
fn a_secret_is_not_sent_in_the_clear_nor_to_another_address() {
    let runtime = runtime();
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let refused =
        session.run(&lectern, KEY, &["models", "add-endpoint", "http://models.example.com/v1", "--key"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("unencrypted"), "{refused:?}");
    let server = runtime.block_on(endpoint(Some(KEY)));
    let add = ["models", "add-endpoint", &server.url(), "--name", "e", "--key"];
    assert_eq!(session.run(&lectern, KEY, &add).code, Some(0));
    // The settings are a text file; who changes the address there does not get the key.
    let other = runtime.block_on(endpoint(None));
    let settings = lectern.home().join("settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, text.replace(&server.url(), &other.url())).unwrap();
    let ran = session.run(&lectern, "", &["ask", "--model", "e/tiny", "hello"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("given for another address"), "{ran:?}");
    assert!(other.seen().is_empty());
    // Unless the user says so, for this run.
    let base = server.url();
    let ran = session.run(&lectern, "", &["ask", "--model", "e/tiny", "--base-url", &base, "hello"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    std::fs::write(&settings, text).unwrap();
    let plain = "http://models.example.com/v1";
    let ran = session.run(&lectern, "", &["ask", "--model", "e/tiny", "--base-url", plain, "hello"]);
    assert!(ran.err.contains("unencrypted"), "{ran:?}");
}

/// A secret in every form that it may be written in.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.as_bytes().to_vec()];
    let percent: String = secret
        .bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() || b"-._~".contains(&b) {
                (b as char).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect();
    forms.extend([percent.to_lowercase().into_bytes(), percent.into_bytes()]);
    forms.push(secret.bytes().map(|b| format!("{b:02x}")).collect::<String>().into_bytes());
    forms.push(secret.replace('/', "\\/").into_bytes());
    // Inside of a longer text, base64 looks otherwise at each of three places; the ends depend on what is around.
    for before in 0..3 {
        let shifted = [vec![b'x'; before], secret.as_bytes().to_vec()].concat();
        for engine in [&STANDARD, &URL_SAFE] {
            let text = engine.encode(&shifted);
            forms.push(text.as_bytes()[4..text.len() - 4].to_vec());
        }
    }
    forms
}

/// The secrets that are in some file below the folder, or in one of the texts.
fn leaks(folder: &Path, texts: &[&str], secrets: &[String]) -> Vec<String> {
    let mut places: Vec<(String, Vec<u8>)> =
        texts.iter().enumerate().map(|(n, text)| (format!("output {n}"), text.as_bytes().to_vec())).collect();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => places.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default())),
            }
        }
    }
    let mut found = Vec::new();
    for secret in secrets {
        for form in forms(secret) {
            let holds = |bytes: &[u8]| bytes.windows(form.len()).any(|window| window == form);
            let at = places.iter().filter(|(_, bytes)| holds(bytes));
            found.extend(at.map(|(name, _)| format!("{} in {name}", String::from_utf8_lossy(&form))));
        }
    }
    found
}

/// Lines of the key that are its own, beginnings of tokens, a key.
fn known_secrets() -> Vec<String> {
    let lines = PRIVATE_KEY.lines().filter(|line| !line.starts_with("-----") && line.len() > 40).step_by(5);
    lines.map(str::to_owned).chain([KEY.to_owned(), "ya29.test-".to_owned()]).collect()
}

#[test]
fn no_secret_is_in_any_file_or_output() {
    let runtime = runtime();
    let (lectern, session) = (Lectern::new(), Session::with_keyring());
    let fake = runtime.block_on(Vertex::start(five_steps()));
    let server = runtime.block_on(endpoint(Some(KEY)));
    let mut env = session.env();
    env.push(("LECTERN_LOG", "trace".to_owned()));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut ran = Vec::new();
    let mut run = |stdin: &str, code: i32, args: &[&str]| {
        let one = lectern.run_within(&env, stdin, args);
        assert_eq!(one.code, Some(code), "{args:?}: {}", one.out);
        ran.push(one);
    };
    let account = fake.service_account().to_string();
    let url = fake.server.url();
    run(&account, 0, &["models", "login", "vertex", "--service-account", "-", "--base-url", &url]);
    run(KEY, 0, &["models", "add-endpoint", &server.url(), "--name", "e", "--key"]);
    run("", 0, &["models", "providers"]);
    run("", 0, &["models", "available", "e"]);
    run("", 0, &["models", "test", "tiny", "--json"]);
    run("", 0, &["ask", "--json", "--yes", "--model", "vertex/gemini-3.5-flash", "herons?"]);
    run("", 0, &["ask", "--model", "tiny", "hello"]);
    // Errors are where secrets leak.
    run("", 1, &["ask", "--model", "vertex/gemini-3.5-flash", "the script is over"]);
    fake.revoke();
    run(&account[..account.len() - 9], 2, &["models", "login", "vertex", "--service-account", "-"]);
    run(&account, 2, &["models", "login", "e", "--key"]);
    run("", 0, &["models", "logout", "e"]);
    run("", 1, &["ask", "--model", "tiny", "hello"]);
    run("", 0, &["doctor"]);
    let texts: Vec<&str> = ran.iter().flat_map(|one| [one.out.as_str(), one.err.as_str()]).collect();
    assert!(texts.iter().any(|text| text.contains("TRACE") || text.contains("DEBUG")), "nothing was logged");
    assert_eq!(leaks(lectern.home(), &texts, &known_secrets()), Vec::<String>::new());
    // What was searched for was there to be found: it went over the wire.
    let wire: Vec<String> =
        server.seen().iter().map(|seen| seen.header("authorization").to_owned()).collect();
    let wire: Vec<&str> = wire.iter().map(String::as_str).collect();
    assert!(!leaks(lectern.home(), &wire, &known_secrets()).is_empty());
}

#[test]
fn the_search_for_secrets_finds_each_form() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = known_secrets();
    assert!(secrets.len() >= 5);
    for secret in &secrets {
        let percent: String = secret.bytes().map(|b| format!("%{b:02X}")).collect();
        let plain: String = url_form(secret);
        for text in [
            format!("say {secret}!"),
            format!("key={plain}"),
            STANDARD.encode(format!("user:{secret}:x")),
            URL_SAFE.encode(format!("{secret} and more")),
            secret.bytes().map(|b| format!("{b:02x}")).collect(),
        ] {
            let deep = folder.path().join("a").join("b");
            std::fs::create_dir_all(&deep).unwrap();
            std::fs::write(deep.join("file"), &text).unwrap();
            assert!(!leaks(folder.path(), &[], &secrets).is_empty(), "{text} was not found in a file");
            std::fs::remove_dir_all(folder.path().join("a")).unwrap();
            assert!(!leaks(folder.path(), &[&text], &secrets).is_empty(), "{text} was not found in output");
        }
        assert!(leaks(folder.path(), &["nothing", &percent[..2]], &secrets).is_empty());
    }
}

fn url_form(text: &str) -> String {
    let escape = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "-._~".contains(c) => c.to_string(),
        c => format!("%{:02X}", c as u32),
    };
    text.chars().map(escape).collect()
}

#[test]
fn steps_that_are_being_retried_are_events() {
    let runtime = runtime();
    let lectern = Lectern::new();
    let busy = Answer::json(429, &json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}))
        .header("retry-after", "1");
    let chunk = json!({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "t",
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}]});
    let good = Answer::of(200, "text/event-stream", format!("data: {chunk}\n\ndata: [DONE]\n\n"));
    let server = runtime.block_on(Server::script(vec![busy, good]));
    let settings = json!({"providers": [{"id": "e", "kind": "openai_compatible", "sign_in": "none",
        "base_url": server.url()}]});
    lectern.write("settings.json", &settings.to_string());
    let asked = lectern.ask(["--model", "e/t", "hello"]);
    assert_eq!(asked.answer(), REPLY);
    assert!(
        asked.events.iter().any(|event| matches!(event.kind, EventKind::Retrying { .. })),
        "{}",
        asked.ran.out
    );
}
