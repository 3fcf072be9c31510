//! Images in questions: seen by a local model, or refused with a reason before anything is asked.

use std::path::PathBuf;

use lectern_core::{EventKind, Part, Usage};
use lectern_test_gguf::{Family, Recipe};
use serde_json::Value;

use crate::lectern::{Asked, Lectern, Ran};

impl Lectern {
    /// A model of random weights with the part that sees beside it.
    fn seeing(&self, family: Family) -> PathBuf {
        let model = self.write("seeing/Tiny-VL-F32.gguf", "");
        let recipe = Recipe { context: 16_384, ..Recipe::default() };
        std::fs::write(&model, family.model(recipe).bytes()).unwrap();
        let part = model.with_file_name("mmproj-Tiny-VL-F32.gguf");
        std::fs::write(part, family.projector(5, 64).bytes()).unwrap();
        model
    }

    fn picture(&self, name: &str, width: u32, height: u32) -> PathBuf {
        let path = self.write(name, "");
        std::fs::write(&path, picture(width, height)).unwrap();
        path
    }

    fn look(&self, model: &str, images: &[&PathBuf], more: &[&str]) -> Asked {
        self.ask(arguments(model, images, more))
    }

    fn refused(&self, model: &str, image: &PathBuf) -> Ran {
        let arguments = std::iter::once("ask".to_owned()).chain(arguments(model, &[image], &[]));
        let ran = self.run(arguments);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        assert!(ran.err.starts_with("error: ") && ran.err.contains("hint: "), "{ran:?}");
        ran
    }
}

fn arguments(model: &str, images: &[&PathBuf], more: &[&str]) -> Vec<String> {
    let usual = ["--model", model, "--tools", "off", "--system", "Look well.", "--max-tokens", "8"];
    let mut out: Vec<String> = usual.iter().chain(more).map(|text| (*text).to_owned()).collect();
    for image in images {
        out.extend(["--image".to_owned(), image.display().to_string()]);
    }
    out.push("What is it?".to_owned());
    out
}

/// A picture without compression.
fn picture(width: u32, height: u32) -> Vec<u8> {
    let row = (width * 3).next_multiple_of(4);
    let mut bytes = b"BM".to_vec();
    for number in [54 + row * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, row * height, 0, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend((0..row * height).map(|place| (place % 251) as u8));
    bytes
}

fn usage(asked: &Asked) -> Usage {
    *asked.usages().first().unwrap_or_else(|| panic!("{:?}", asked.ran))
}

#[test]
fn an_image_is_seen_and_its_tokens_are_told() {
    let lectern = Lectern::new();
    for (family, places) in [(Family::Llava, 16), (Family::Gemma, 4)] {
        let model = lectern.seeing(family);
        let model = model.to_str().unwrap();
        let (one, other) = (lectern.picture("one.bmp", 64, 48), lectern.picture("other.bmp", 40, 40));
        let plain = usage(&lectern.look(model, &[], &[]));
        let asked = lectern.look(model, &[&one], &[]);
        let seen = usage(&asked);
        assert_eq!((plain.image_tokens, seen.image_tokens), (None, Some(places)), "{family:?}");
        assert!(seen.prompt_tokens >= plain.prompt_tokens + places, "{family:?}: {plain:?}, {seen:?}");
        let two = usage(&lectern.look(model, &[&one, &other], &[]));
        assert_eq!(two.image_tokens, Some(2 * places), "{family:?}");
        let EventKind::TurnStarted { message, .. } = &asked.events[0].kind else { panic!() };
        let images = message.parts.iter().filter(|part| matches!(part, Part::Image(_)));
        assert_eq!(images.count(), 1, "it is in the conversation");
        assert!(asked.ran.out.contains(&format!("\"image_tokens\":{places}")), "{:?}", asked.ran);
    }
}

#[test]
fn a_conversation_with_an_image_goes_on_in_another_process() {
    let lectern = Lectern::new();
    let model = lectern.seeing(Family::Gemma);
    let model = model.to_str().unwrap();
    let first = lectern.look(model, &[&lectern.picture("one.bmp", 64, 48)], &[]);
    let id = first.events[0].conversation.0.clone();
    let second = usage(&lectern.look(model, &[], &["--conversation", &id]));
    assert_eq!(second.image_tokens, Some(4), "it still sees it");
    let first = usage(&first);
    assert!(second.reused_tokens + 2 >= first.prompt_tokens, "{first:?}, {second:?}");
}

#[test]
fn what_cannot_be_seen_is_refused_with_the_reason() {
    let lectern = Lectern::new();
    let model = lectern.seeing(Family::Llava);
    let model = model.to_str().unwrap();
    let good = lectern.picture("good.bmp", 16, 16);
    let text = lectern.write("notes.png", "no picture at all");
    let mut bytes = picture(16, 16);
    let torn = lectern.write("torn.bmp", "");
    std::fs::write(&torn, &bytes[..60]).unwrap();
    bytes[18..26].copy_from_slice(&[0x60, 0xea, 0, 0, 0x60, 0xea, 0, 0]);
    let large = lectern.write("large.bmp", "");
    std::fs::write(&large, &bytes).unwrap();
    let long = lectern.write("long.bmp", "");
    std::fs::File::options().write(true).open(&long).unwrap().set_len(31 << 20).unwrap();
    for (image, reason) in [
        (&text, "`notes.png` cannot be attached: it is none of PNG"),
        (&torn, "`torn.bmp` cannot be attached: it is damaged"),
        (&large, "`large.bmp` cannot be attached: it has 60000 × 60000 pixels"),
        (&long, "`long.bmp` cannot be attached: it has 31 MB"),
    ] {
        let ran = lectern.refused(model, image);
        assert!(ran.err.contains(reason), "{ran:?}");
    }
    let missing = lectern.run(arguments_of_ask(model, &lectern.home().join("gone.png")));
    assert_eq!(missing.code, Some(1), "{missing:?}");
    assert!(missing.err.contains("gone.png"), "{missing:?}");

    let blind = lectern.refused("starter", &good);
    assert!(blind.err.contains("cannot see images"), "{blind:?}");
    let document = lectern.write("paper.pdf", "%PDF-1.7");
    let unread = lectern.refused(model, &document);
    assert!(unread.err.contains("cannot read PDF"), "{unread:?}");
    // None of it began a conversation, and what can be seen is seen.
    let asked = lectern.look(model, &[&good], &[]);
    assert_eq!(usage(&asked).image_tokens, Some(16));
}

fn arguments_of_ask(model: &str, image: &std::path::Path) -> Vec<String> {
    std::iter::once("ask".to_owned()).chain(arguments(model, &[&image.to_owned()], &[])).collect()
}

#[test]
fn the_file_that_sees_is_chosen_by_a_setting_and_counted() {
    let lectern = Lectern::new();
    let model = lectern.seeing(Family::Gemma);
    // A second one beside it, of another family and so of more places.
    std::fs::write(model.with_file_name("mmproj-Tiny.gguf"), Family::Llava.projector(7, 64).bytes()).unwrap();
    std::fs::write(model.with_file_name("mmproj-VL.gguf"), Family::Llava.projector(7, 128).bytes()).unwrap();
    let path = model.to_str().unwrap();
    assert_eq!(lectern.run(["models", "add", path]).code, Some(0));
    let image = lectern.picture("one.bmp", 64, 48);
    let seen = |more: &[&str]| usage(&lectern.look("tiny-vl-f32", &[&image], more)).image_tokens;
    let set = |value: &str| lectern.run(["models", "set", "tiny-vl-f32", &format!("projector={value}")]);
    assert_eq!(seen(&[]), Some(4), "the one whose name says most");
    assert_eq!(seen(&["--set", "projector=mmproj-Tiny.gguf"]), Some(16), "for one run");
    assert_eq!(set("mmproj-Tiny.gguf").code, Some(0));
    assert_eq!(seen(&[]), Some(16));

    let wide = set("mmproj-VL.gguf");
    assert_ne!(wide.code, Some(0));
    assert!(wide.err.contains("mmproj-VL.gguf") && wide.err.contains("Tiny-VL-F32.gguf"), "{wide:?}");
    assert!(wide.err.contains("128"), "{wide:?}");
    for wrong in ["mmproj-gone.gguf", "Tiny-VL-F32.gguf"] {
        let ran = set(wrong);
        assert!(ran.code != Some(0) && ran.err.contains(wrong), "{ran:?}");
    }
    assert_eq!(seen(&[]), Some(16), "what was refused changed nothing");

    let need = || -> u64 {
        let ran = lectern.run(["models", "advise", "tiny-vl-f32", "--json"]);
        let told: Value = serde_json::from_str(&ran.out).unwrap();
        told["advice"][0]["advice"]["need"]["total"].as_u64().unwrap_or_else(|| panic!("{told}"))
    };
    let with = need();
    assert_eq!(set("none").code, Some(0));
    assert!(need() < with, "{} and {with}", need());
    let blind = lectern.refused("tiny-vl-f32", &image);
    assert!(blind.err.contains("cannot see images"), "{blind:?}");
}
