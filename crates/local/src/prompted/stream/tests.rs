use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn tools() -> Vec<String> {
    ["search", "notes__read", "now"].map(str::to_owned).to_vec()
}

fn parse(text: &str) -> (String, Vec<(String, Value)>) {
    let (content, calls) = parse_free_text(text, tools(), false);
    (content, calls.into_iter().map(|call| (call.name, Value::Object(call.arguments))).collect())
}

fn call(name: &str, arguments: Value) -> (String, Value) {
    (name.to_owned(), arguments)
}

#[test]
fn reads_each_form() {
    let one = vec![call("search", json!({"q": "x"}))];
    for text in [
        "[search(q='x')]",
        "search(q='x')",
        "{\"name\": \"search\", \"parameters\": {\"q\": \"x\"}}",
        "<|python_tag|>{\"name\": \"search\", \"parameters\": {\"q\": \"x\"}}",
        "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n</tool_call>",
        "<tool_call>{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}",
        "<tool_call>{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}</tool_c",
        "<|tool_call_start|>[search(q='x')]<|tool_call_end|>",
        "[TOOL_CALLS][{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}]",
        "```json\n{\"name\": \"search\", \"arguments\": {\"q\": \"x\"}}\n```",
        "```tool_code\nsearch(q='x')\n```",
        "```python\n[search(q='x')]\n```",
    ] {
        assert_eq!(parse(text), (String::new(), one.clone()), "{text}");
    }
}

#[test]
fn text_around_calls_stays() {
    let (content, calls) =
        parse("Let me look.\n\n[search(q='a'), now()]\nand\n{\"name\": \"now\"}; {\"name\": \"now\"}");
    assert_eq!(content, "Let me look.\nand");
    assert_eq!(calls.len(), 4);
}

#[test]
fn what_is_no_call_stays_text() {
    for text in [
        "See [search](https://example.org) and [1].",
        "[link](x)\n[search] me",
        "[delete_all(path='/')]",
        "{\"title\": \"x\", \"name\": \"search\"}",
        "{\"name\": \"rm\", \"arguments\": {}}",
        "```python\nprint('hi')\n```",
        "```json\n{\"a\": 1}\n```",
        "use `search(q='x')` like this",
        "I call search(q='x') now",
        "a <tool_call is a tag",
        "<tool_call>not json</tool_call>",
        "[search(q=other())]",
        "[search(q='unfinished",
        "{\"name\": \"search\", \"arguments\": {\"q\": ",
        "```json\n{\"name\": \"search\"",
        "  \n x",
    ] {
        assert_eq!(parse(text), (text.to_owned(), vec![]), "{text}");
    }
}

#[test]
fn an_unknown_name_in_a_tag_is_a_call() {
    assert_eq!(
        parse("<tool_call>{\"name\": \"nothing\", \"arguments\": {}}</tool_call>"),
        (String::new(), vec![call("nothing", json!({}))])
    );
}

#[test]
fn a_beginning_is_held_back() {
    let mut stream = FreeText::new(tools());
    assert_eq!(stream.push("Well, "), [FreeTextPiece::Text("Well,".into())]);
    assert_eq!(stream.push("<tool"), [] as [FreeTextPiece; 0]);
    assert_eq!(stream.push("box>\n[sea"), [FreeTextPiece::Text(" <toolbox>".into())]);
    assert_eq!(stream.push("rch(q="), [] as [FreeTextPiece; 0]);
    let pieces = stream.push("1)]");
    assert!(matches!(&pieces[..], [FreeTextPiece::Call(call)] if call.name == "search"), "{pieces:?}");
}

#[test]
fn partial_text_gives_what_is_certain() {
    let (content, calls) = parse_free_text("Hi\n[search(q='x')]\n[now(", tools(), true);
    assert_eq!((content.as_str(), calls.len()), ("Hi", 1));
}

proptest! {
    #[test]
    fn streaming_gives_the_same_as_the_whole(
        parts in prop::collection::vec(
            prop_oneof![
                Just("[search(q='x', n=[1, 2])]"), Just("{\"name\": \"now\"}"), Just("\n"), Just("hello "), Just("[a](b)"),
                Just("<tool_call>\n{\"name\": \"x\", \"arguments\": {}}\n</tool_call>"), Just("```json\n"), Just("```"),
                Just("<tool"), Just("{\"a\""), Just("é "), Just("[sear"),
            ],
            0..9,
        ),
        cuts in prop::collection::vec(1usize..6, 1..30),
    ) {
        let text = parts.concat();
        let mut pieces = Vec::new();
        let mut stream = FreeText::new(tools());
        let letters: Vec<char> = text.chars().collect();
        let (mut at, mut cuts) = (0, cuts.iter().cycle());
        while at < letters.len() {
            let end = letters.len().min(at + cuts.next().unwrap());
            pieces.extend(stream.push(&letters[at..end].iter().collect::<String>()));
            at = end;
        }
        pieces.extend(stream.finish());
        let mut whole = FreeText::new(tools());
        let mut once = whole.push(&text);
        once.extend(whole.finish());
        prop_assert_eq!(join(pieces), join(once));
    }

    #[test]
    fn nothing_panics(text in "[<>\\[\\]{}()`\"'a-z_=:|, \\n]{0,60}") {
        let _ = parse_free_text(&text, tools(), false);
        let _ = parse_free_text(&text, tools(), true);
    }
}
