use serde_json::{Value, json};

use super::{CALL, Verbatim};

const HITS: &str = "[1] Moving day (Journal/2021 Moving day.md)\nBehind the door hangs a key.\n\n[2] Été (Carnets/Été à l'île.md)\n- [ ] un « mot »";

fn after(messages: Value, written: &str) -> Verbatim {
    let messages = messages.as_array().cloned().unwrap_or_default();
    let mut verbatim = Verbatim::new("From \n- ", &messages, &tools());
    verbatim.push(written.as_bytes());
    verbatim
}

fn tools() -> Vec<Value> {
    let tool = |name: &str, required: &[&str]| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object", "required": required}}});
    vec![tool("n__search", &["query"]), tool("n__read", &["path"]), tool("n__append", &["path", "content"])]
}

fn answered(result: &str) -> Value {
    json!([
        {"role": "user", "content": "Show me"},
        {"role": "assistant", "content": null},
        {"role": "tool", "content": result},
    ])
}

fn searched() -> Value {
    json!([
        {"role": "user", "content": "Which key hangs \"there\"?"},
        {"role": "assistant", "content": null},
        {"role": "tool", "content": HITS},
    ])
}

fn asked() -> Value {
    json!([{"role": "user", "content": "Which key hangs \"there\"?"}])
}

#[test]
fn an_argument_is_copied_from_what_the_user_said() {
    let call = "<tool_call>\n{\"name\": \"notes__search\", \"arguments\": {\"query\": \"";
    let begun = after(asked(), call);
    assert!(begun.is_strict());
    assert!(begun.allows(b"key") && begun.allows(b"Which key") && begun.allows(b"there"));
    assert!(!begun.allows(b"lock") && !begun.allows(b"ey") && !begun.allows(b"\""));
    let further = after(asked(), &format!("{call}key hangs"));
    assert!(further.allows(b" \\\"th") && further.allows(b"\"}}") && !further.allows(b" there"));
    assert!(!after(asked(), &format!("{call}key han")).allows(b"\"}"), "no end within a word");
    assert!(!after(asked(), &format!("{call}key\"}}")).is_strict());
}

#[test]
fn the_name_of_a_tool_is_left_to_the_grammar() {
    assert!(!after(asked(), "<tool_call>\n{\"name\": \"").is_strict());
}

#[test]
fn a_path_is_one_that_a_tool_named_and_whole() {
    let call = "<tool_call>\n{\"name\": \"r\", \"arguments\": {\"path\": \"";
    let begun = after(searched(), call);
    assert!(begun.allows(b"Journal/") && begun.allows("Carnets/É".as_bytes()));
    assert!(!begun.allows(b"Moving") && !begun.allows(b"Behind"));
    assert!(!after(searched(), &format!("{call}Journal/2021")).allows(b"\""));
    assert!(after(searched(), &format!("{call}Journal/2021 Moving day.md")).allows(b"\"}}\n"));
}

#[test]
fn a_quotation_is_a_line_of_a_result() {
    let begun = after(searched(), "From Journal/2021 Moving day.md:\n\n> ");
    assert!(begun.allows(b"Behind") && begun.allows(b"- [ ]"));
    assert!(!begun.allows(b"[1]") && !begun.allows(b"A key") && !begun.allows(b"\n"));
    let further = after(searched(), "> Behind the door");
    assert!(further.allows(b" hangs") && !further.allows(b"") && !further.allows(b"."));
    let whole = after(searched(), "> Behind the door hangs a key.");
    assert!(whole.allows(b"") && whole.allows(b"\n") && !whole.allows(b" x"));
}

#[test]
fn a_citation_names_a_path_and_goes_on_freely() {
    let begun = after(searched(), "From ");
    assert!(begun.allows(b"Journal") && !begun.allows(b"the"));
    assert!(after(searched(), "From Journal/2021 Moving day.md").allows(b":\n\n"));
    assert!(!after(searched(), "From Journal/2021 Moving day.md:").is_strict());
}

#[test]
fn free_text_and_a_model_that_went_its_own_way_are_left_alone() {
    assert!(!after(searched(), "I found nothing").is_strict());
    assert!(!after(searched(), "> Nothing like it").is_strict());
    assert!(!after(asked(), "> ").is_strict(), "nothing was read yet");
}

#[test]
fn pieces_within_a_character_are_followed() {
    let mut reply = after(searched(), "<tool_call>\n{\"name\": \"r\", \"arguments\": {\"path\": \"Carnets/");
    assert!(reply.allows(&[0xc3]) && !reply.allows(&[0xe2]));
    reply.push(&[0xc3]);
    assert!(reply.allows(&[0x89]) && !reply.allows(b"t"));
}

#[test]
fn a_quotation_goes_on_line_by_line_and_ends_with_its_passage() {
    let note = answered("a\nb\n\na\n\n## Next\nc");
    let after = |written: &str| after(note.clone(), written);
    assert!(after("> a").allows(b"\n> b") && after("> a").allows(b""));
    assert!(!after("> a").allows(b"\n> a"), "the lines of a passage keep their order");
    assert!(after("> a\n").allows(b">") && after("> a\n> ").allows(b"b") && !after("> a\n> ").allows(b"c"));
    assert!(after("> b").allows(b"\n>\n> a") && !after("> b").allows(b"\n> a"));
    let whole = after("> a\n> b\n>\n> a");
    assert!(whole.allows(b"") && whole.allows(b"\n\nSo"), "the same line stands twice");
    assert!(!whole.allows(b"\n>"), "the passage is over");
    let line = after("> a\n> b\n>\n> a\n");
    assert!(!line.allows(b">") && !line.allows(b"So") && line.allows(b"\n") && line.allows(b""));
}

#[test]
fn what_was_found_before_is_quoted_once_its_note_is_opened() {
    let hits = "[1] A (a.md)\nOne key.\n\n[2] B (b.md)\nTwo keys\n\n[3] A (a.md)\nThird key.";
    let opens = |path: &str| {
        let call = json!({"id": "c", "function": {"name": "n__read", "arguments": {"path": path}}});
        json!([
            {"role": "user", "content": "keys"},
            {"role": "assistant", "content": null},
            {"role": "tool", "content": hits},
            {"role": "assistant", "content": "From a.md:\n\n> One key."},
            {"role": "user", "content": "And the other one?"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "# B\nBoth of them\nhang there."},
        ])
    };
    let other = after(opens("b.md"), "From b.md:\n\n> ");
    assert!(
        other.allows(b"Two") && !other.allows(b"Both") && !other.allows(b"Third") && !other.allows(b"One")
    );
    let same = after(opens("a.md"), "From a.md:\n\n> ");
    assert!(same.allows(b"Third") && !same.allows(b"Both") && !same.allows(b"One") && !same.allows(b"Two"));
    let whole = after(opens("b.md"), "b.md says:\n\n> ");
    assert!(whole.allows(b"Both") && whole.allows(b"Two") && !whole.allows(b"One"));
    let further = after(opens("b.md"), "From b.md:\n\n> Two keys\n> ");
    assert!(further.allows(b"Both") && !further.allows(b"Two"));
}

#[test]
fn what_was_quoted_is_not_quoted_again() {
    let note = answered("a\n\n## Next\nc");
    let again = after(note.clone(), "> a\n\n> ");
    assert!(again.allows(b"c") && again.allows(b"##") && !again.allows(b"a"));
    let all = after(note, "> a\n\n> ## Next\n> c\n\n");
    assert!(!all.allows(b"> ") && all.allows(b"") && all.allows(b"So"));
}

#[test]
fn a_list_names_each_path_once() {
    let three = answered("- A/b.md\n- A/c.md\n- A/d.md");
    assert!(!after(three, "- A/b.md\n- ").allows(b"A/d"), "none is left out");
    let listed = answered("- A/b.md\n- A/c.md");
    assert!(
        after(listed.clone(), "- ").allows(b"A/b") && !after(listed.clone(), "- ").allows("…".as_bytes())
    );
    let again = after(listed.clone(), "- A/b.md\n- ");
    assert!(again.allows(b"A/c.md") && again.allows("…".as_bytes()) && !again.allows(b"A/b"));
    let all = after(listed, "- A/b.md\n- A/c.md\n");
    assert!(!all.allows(b"- ") && all.allows(b"") && all.allows(b"That"));
}

#[test]
fn an_answer_is_from_the_note_that_was_opened() {
    let read = |arguments: Value, result: &str| {
        json!([
            {"role": "user", "content": "Which key?"},
            {"role": "assistant", "content": null},
            {"role": "tool", "content": HITS},
            {"role": "assistant", "content": null, "tool_calls":
                [{"id": "c", "function": {"name": "n__read", "arguments": arguments}}]},
            {"role": "tool", "tool_call_id": "c", "content": result},
        ])
    };
    let opened = read(json!("{\"path\": \"Carnets/Été à l'île.md\"}"), "un mot");
    assert!(
        after(opened.clone(), "From ").allows(b"Carnets")
            && !after(opened.clone(), "From ").allows(b"Journal")
    );
    let second = after(opened, "From Carnets/Été à l'île.md:\n\n> un mot\n\nFrom ");
    assert!(second.allows(b"Journal"), "another note that was found");
    let missing = read(json!({"path": "Carnets/Eté.md"}), "There is no note `Carnets/Eté.md`.");
    assert!(after(missing, "From ").allows(b"Journal"), "it was not opened");
    assert!(
        !after(read(json!({"path": "Carnets/Été à l'île.md"}), "un mot"), "").allows(CALL),
        "a hit is enough"
    );
}

#[test]
fn after_a_note_was_opened_comes_its_path_or_what_else_was_asked_for() {
    let called = |tool: &str, path: &str, question: &str, result: &str| {
        let call = json!({"id": "c", "function": {"name": tool, "arguments": {"path": path}}});
        let messages = json!([
            {"role": "user", "content": question},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": result},
        ]);
        after(messages, "")
    };
    let one = called("n__read", "A.md", "Read A.md", "Text.");
    assert!(one.allows(b"A.md says") && one.allows(b"From A") && !one.allows(CALL) && !one.allows(b"B"));
    let mut two = called("n__read", "A.md", "Read A.md and B.md", "Text.");
    assert!(two.allows(CALL));
    two.push(b"<tool_call>\n{\"name\": \"n__read\", \"arguments\": {\"path\": \"");
    assert!(two.allows(b"B.md") && !two.allows(b"A.md"), "it is open");
    assert!(!called("n__read", "A.md", "Read A.md", " \n").is_strict(), "nothing to quote");
    assert!(!called("n__read", "A.md", "Read A.md", "No note A.md").is_strict(), "it was not opened");
    assert!(!called("n__read", "A b", "Read A b", "# A b\nText of A b.").allows(CALL), "its title");
    assert!(!called("n__list", "A", "List A", "- A/b.md").is_strict());
    let mut begun = called("n__read", "A.md", "Read A.md", "Text.");
    begun.push(b"From ");
    assert!(begun.allows(b"A.md:") && !begun.allows(b"B.md"));
}

#[test]
fn a_question_is_searched_for_as_a_whole() {
    let query = "<tool_call>\n{\"name\": \"n__search\", \"arguments\": {\"query\": \"";
    let asked = json!([{"role": "user", "content": "Where is the key?"}]);
    assert!(!after(asked.clone(), &format!("{query}Where is ")).allows(b"\""), "no end after a blank");
    assert!(!after(asked.clone(), &format!("{query}Where is")).allows(b"\""));
    let whole = after(asked.clone(), &format!("{query}Where is the key"));
    assert!(whole.allows(b"\"") && whole.allows(b"?\""));
    assert!(after(asked, &format!("{query}the")).allows(b"\""), "a part is the model's own choice");
}

#[test]
fn a_path_that_was_begun_is_one_that_stands_there() {
    let begun = after(searched(), "Journal/");
    assert!(begun.allows(b"2021 Mov") && !begun.allows(b"2022"));
    assert!(!after(searched(), "Either/").is_strict() && !after(searched(), "in Journal/").is_strict());
}

#[test]
fn a_path_that_the_user_names_is_not_cut_short() {
    let call = "<tool_call>\n{\"name\": \"n__append\", \"arguments\": {\"path\": \"";
    let asked = json!([{"role": "user", "content": "在 家里/购物.md 里加一句：牛奶"}]);
    let begun = after(asked.clone(), call);
    assert!(
        begun.allows("家里".as_bytes()) && !begun.allows("购".as_bytes()) && !begun.allows("加".as_bytes())
    );
    assert!(!after(asked.clone(), &format!("{call}家里")).allows(b"\""));
    assert!(after(asked.clone(), &format!("{call}家里/购物.md")).allows(b"\""));
    let text = format!("{call}家里/购物.md\", \"content\": \"");
    assert!(!after(asked.clone(), &format!("{text}牛")).allows(b"\""), "what comes after the colon is whole");
    assert!(after(asked, &format!("{text}牛奶")).allows(b"\"}}"));
}

#[test]
fn nothing_is_written_once_something_was_looked_up() {
    let name = "<tool_call>\n{\"name\": \"";
    assert!(after(asked(), name).allows(b"n__append\""));
    let found = after(searched(), name);
    assert!(found.allows(b"n__read\"") && found.allows(b"n__") && !found.allows(b"n__a"));
    assert!(!after(searched(), &format!("{name}n__read\", \"arguments\"")).is_strict());
}
