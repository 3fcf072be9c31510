use serde_json::{Value, json};

use super::Verbatim;

const HITS: &str = "[1] Moving day (Journal/2021 Moving day.md)\nBehind the door hangs a key.\n\n[2] Été (Carnets/Été à l'île.md)\n- [ ] un « mot »";

fn after(messages: Value, written: &str) -> Verbatim {
    let messages = messages.as_array().cloned().unwrap_or_default();
    let mut verbatim = Verbatim::new("From \n- ", &messages);
    verbatim.push(written.as_bytes());
    verbatim
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
    assert!(begun.allows(b"key") && begun.allows(b"Which key") && begun.allows(b"\\\"there"));
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
