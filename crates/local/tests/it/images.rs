//! Images: read by the part of a model that sees, kept in the cache, refused by name when they are none.

use std::path::{Path, PathBuf};
use std::time::Duration;

use lectern_core::{AssistantMessage, Blob, ChatModel, ChatRequest, Message, ModelId, Part, UserMessage};
use lectern_local::{CacheOptions, LocalModel, LocalOptions, ProjectorChoice};
use lectern_test_gguf::{Family, Recipe, Value};

use crate::support::{Reply, ask, open, request, worker};

const FAMILIES: [Family; 3] = [Family::Llava, Family::Gemma, Family::Qwen];

/// A model and the part that sees, side by side.
struct Pair {
    model: LocalModel,
    path: PathBuf,
    folder: tempfile::TempDir,
}

async fn pair(family: Family) -> Pair {
    pair_with(family, LocalOptions::default()).await
}

async fn pair_with(family: Family, options: LocalOptions) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("Tiny-VL-F32.gguf");
    let recipe = Recipe { context: 8192, ..Recipe::default() };
    std::fs::write(&path, family.model(recipe).bytes()).unwrap();
    std::fs::write(folder.path().join("mmproj-Tiny-VL-F32.gguf"), family.projector(5, 64).bytes()).unwrap();
    let model = open(&path, options, worker()).await;
    Pair { model, path, folder }
}

/// A picture without compression, its colours made from a seed.
pub fn picture(width: u32, height: u32, seed: u32) -> Blob {
    let row = (width * 3).next_multiple_of(4);
    let mut bytes = b"BM".to_vec();
    for number in [54 + row * height, 0, 54, 40, width, height, 1 | 24 << 16, 0, row * height, 0, 0, 0, 0] {
        bytes.extend(number.to_le_bytes());
    }
    let colour = |place: u32| (place.wrapping_mul(2_654_435_761).wrapping_add(seed * 977) >> 13) as u8;
    bytes.extend((0..row * height).map(colour));
    Blob::of("image/bmp", &bytes)
}

fn shown(blobs: &[Blob], text: &str) -> Message {
    let mut parts: Vec<_> = blobs.iter().cloned().map(Part::Image).collect();
    parts.push(Part::Text { text: text.to_owned() });
    Message::User(UserMessage { parts, context: None })
}

pub fn looking(blobs: &[Blob], text: &str) -> ChatRequest {
    ChatRequest { messages: vec![shown(blobs, text)], ..request("") }
}

fn go_on(ask_for: &mut ChatRequest, reply: &Reply, text: &str) {
    ask_for.messages.push(Message::Assistant(reply.message()));
    ask_for.messages.push(Message::User(UserMessage::text(text)));
}

fn said(text: &str) -> AssistantMessage {
    AssistantMessage { parts: vec![Part::Text { text: text.to_owned() }], ..AssistantMessage::default() }
}

async fn answered(model: &LocalModel, ask_for: &ChatRequest) -> Reply {
    let reply = ask(model, ask_for.clone()).await;
    assert_eq!(reply.error, None);
    reply
}

/// What this reply read of its prompt.
fn read(reply: &Reply) -> u32 {
    reply.usage.prompt_tokens - reply.usage.reused_tokens
}

#[tokio::test]
async fn every_family_sees_and_tells_images_apart() {
    for family in FAMILIES {
        let pair = pair(family).await;
        assert!(pair.model.info().vision, "{family:?}");
        let plain = answered(&pair.model, &looking(&[], "What is it?")).await;
        let one = answered(&pair.model, &looking(&[picture(64, 48, 1)], "What is it?")).await;
        let places = one.usage.prompt_tokens - plain.usage.prompt_tokens;
        let expected = match family {
            Family::Llava => 16..=16,
            // Four, and the two words around them.
            Family::Gemma => 6..=8,
            // It reads them larger than they are.
            Family::Qwen => 8..=40,
        };
        assert!(expected.contains(&places), "{family:?}: {places} places");
        let seen = one.usage.image_tokens.unwrap();
        assert_eq!(plain.usage.image_tokens, None);
        match family {
            Family::Llava => assert_eq!(seen, 16),
            // The words around it are words.
            Family::Gemma => assert_eq!(seen, 4),
            Family::Qwen => assert!((4..places).contains(&seen), "{seen} of {places}"),
        }
        let counted = pair.model.count(looking(&[picture(64, 48, 1)], "What is it?")).await.unwrap();
        assert_eq!(counted, Some(one.usage.prompt_tokens), "{family:?}: what it takes is known before");
        pair.model.unload().await;
        let again = answered(&pair.model, &looking(&[picture(64, 48, 1)], "What is it?")).await;
        assert_eq!((again.usage.reused_tokens, &again.text), (0, &one.text), "{family:?}");
        let other = answered(&pair.model, &looking(&[picture(64, 48, 2)], "What is it?")).await;
        assert!(read(&other) >= places, "{family:?}: another image is read: {:?}", other.usage);
        assert_eq!(other.usage.prompt_tokens, one.usage.prompt_tokens);
    }
}

#[tokio::test]
async fn the_next_turn_takes_the_images_from_the_cache() {
    for family in FAMILIES {
        let pair = pair(family).await;
        let both = [picture(64, 64, 3), picture(32, 64, 4)];
        let mut ask_for =
            ChatRequest { system: Some("Look well. ".repeat(40)), ..looking(&both, "Compare.") };
        let first = answered(&pair.model, &ask_for).await;
        go_on(&mut ask_for, &first, "Again?");
        let warm = answered(&pair.model, &ask_for).await;
        let before = first.usage.prompt_tokens + first.usage.generated_tokens;
        assert!(warm.usage.reused_tokens + 1 >= before, "{family:?}: {:?} after {before}", warm.usage);
        // The first image stays, the second one is another.
        let mut changed = ask_for.clone();
        changed.messages[0] = shown(&[picture(64, 64, 3), picture(32, 64, 5)], "Compare.");
        let changed = answered(&pair.model, &changed).await;
        let bytes_of_system = 440;
        assert!(changed.usage.reused_tokens > bytes_of_system, "{family:?}: {:?}", changed.usage);
        assert!(read(&changed) > read(&warm), "{family:?}: {:?}", changed.usage);
    }
}

#[tokio::test]
async fn what_the_cache_holds_of_an_image_is_the_image() {
    for family in FAMILIES {
        let pair = pair(family).await;
        let mut ask_for = looking(&[picture(64, 64, 3), picture(32, 64, 4)], "Compare.");
        answered(&pair.model, &ask_for).await;
        ask_for.messages.push(Message::Assistant(said("They differ.")));
        ask_for.messages.push(Message::User(UserMessage::text("In what?")));
        let warm = answered(&pair.model, &ask_for).await;
        pair.model.unload().await;
        let cold = answered(&pair.model, &ask_for).await;
        assert!(warm.usage.reused_tokens > 0 && cold.usage.reused_tokens == 0, "{family:?}");
        assert_eq!(cold.usage.prompt_tokens, warm.usage.prompt_tokens);
        // Batches of other sizes round in other ways; the first letter is the same all the same.
        assert_eq!(cold.text.chars().next(), warm.text.chars().next(), "{family:?}");
    }
}

#[tokio::test]
async fn images_come_back_from_disk() {
    for family in FAMILIES {
        let keep = tempfile::tempdir().unwrap();
        let cache = CacheOptions {
            folder: Some(keep.path().join("kv")),
            rest: Duration::from_millis(20),
            ..CacheOptions::default()
        };
        let options = LocalOptions { cache, ..LocalOptions::default() };
        let pair = pair_with(family, options.clone()).await;
        let mut ask_for = ChatRequest {
            system: Some("Look well. ".repeat(40)),
            ..looking(&[picture(64, 64, 6)], "Name it.")
        };
        let first = answered(&pair.model, &ask_for).await;
        go_on(&mut ask_for, &first, "And?");
        pair.model.unload().await;
        drop(pair.model);
        let model = open(&pair.path, options, worker()).await;
        let second = answered(&model, &ask_for).await;
        let before = first.usage.prompt_tokens + first.usage.generated_tokens;
        assert!(second.usage.reused_tokens + 2 >= before, "{family:?}: {:?} after {before}", second.usage);
    }
}

#[tokio::test]
async fn what_is_no_image_is_refused_by_name_and_nothing_is_lost() {
    let pair = pair(Family::Llava).await;
    let mut ask_for = looking(&[picture(64, 64, 7)], "Name it.");
    let first = answered(&pair.model, &ask_for).await;
    go_on(&mut ask_for, &first, "And?");
    let mut cut = picture(64, 64, 8).bytes().unwrap();
    cut.truncate(20);
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend([0, 0, 0x80, 0, 0, 0, 0x80, 0, 8, 2, 0, 0, 0]);
    let mut torn = png.clone();
    torn[16..24].copy_from_slice(&[0, 0, 0, 40, 0, 0, 0, 40]);
    for (bytes, told) in [
        (cut, "image 2 of 2 is damaged"),
        (torn, "image 2 of 2 is damaged"),
        (png, "image 2 of 2 is 32768 × 32768 pixels"),
    ] {
        let mut broken = ask_for.clone();
        broken.messages.push(Message::Assistant(first.message()));
        broken.messages.push(shown(&[Blob::of("image/png", &bytes)], "And this?"));
        let reply = ask(&pair.model, broken).await;
        let error = reply.error.expect("it is refused").message;
        assert!(error.contains(told), "{error}");
    }
    let reply = answered(&pair.model, &ask_for).await;
    assert!(
        reply.usage.reused_tokens + 1 >= first.usage.prompt_tokens,
        "the cache is whole: {:?}",
        reply.usage
    );
    // What llama.cpp would hand to other programs is never opened; the model is told of it.
    let film = Blob::of("image/webp", b"RIFF\x10\0\0\0WEBPVP8 nothing");
    answered(&pair.model, &looking(&[film], "What is it?")).await;
}

#[tokio::test]
async fn images_that_do_not_fit_are_an_overflow_of_the_context() {
    let pair = pair_with(Family::Llava, LocalOptions { context: Some(256), ..LocalOptions::default() }).await;
    let many: Vec<_> = (0..20).map(|seed| picture(32, 32, seed)).collect();
    let reply = ask(&pair.model, looking(&many, "Count them.")).await;
    let error = reply.error.expect("it does not fit");
    assert_eq!(error.code, lectern_core::ModelErrorCode::ContextFull, "{error:?}");
    answered(&pair.model, &looking(&many[..3], "Count them.")).await;
}

#[tokio::test]
async fn a_model_without_a_fitting_part_does_not_see() {
    let pair = pair(Family::Llava).await;
    let beside = pair.folder.path().join("mmproj-Tiny-VL-F32.gguf");
    std::fs::write(&beside, Family::Llava.projector(5, 128).bytes()).unwrap();
    let blind = open(&pair.path, LocalOptions::default(), worker()).await;
    assert!(!blind.info().vision, "it sees for models of another width");
    answered(&blind, &looking(&[picture(32, 32, 1)], "What is it?")).await;

    let chosen = |path: &Path| LocalOptions {
        projector: ProjectorChoice::File(path.to_owned()),
        ..LocalOptions::default()
    };
    let refused = LocalModel::open(ModelId::from("test"), &pair.path, chosen(&beside), worker()).await;
    let error = refused.err().expect("the settings ask for it").to_string();
    assert!(error.contains("128") && error.contains("mmproj"), "{error}");

    // A file whose header is good and whose weights are not: the load says which file it is.
    let mut file = Family::Llava.projector(5, 64);
    file.tensors.retain(|tensor| tensor.name != "v.blk.1.ffn_up.weight");
    file.set("clip.vision.image_size", Value::U32(32));
    std::fs::write(&beside, file.bytes()).unwrap();
    let model = open(&pair.path, LocalOptions::default(), worker()).await;
    let error = ask(&model, looking(&[], "Hello?")).await.error.expect("its part is broken").message;
    assert!(error.contains("mmproj-Tiny-VL-F32.gguf"), "{error}");
}
