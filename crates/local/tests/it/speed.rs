//! Settings of the cache and of memory: those that go together work, the others are refused with a reason.

use lectern_core::ModelErrorCode;
use lectern_local::{FlashAttention, KvType, Loading, LocalOptions, SpeedOptions};
use lectern_test_gguf::Recipe;

use crate::support::{Reply, ask, random_model_with, request, worker};

async fn reply_with(speed: SpeedOptions, recipe: Recipe) -> Reply {
    let options = LocalOptions { speed, ..LocalOptions::default() };
    let fixture = random_model_with(recipe, options, worker()).await;
    ask(&fixture.model, request("Hello")).await
}

#[tokio::test]
async fn a_quantised_cache_answers() {
    for kind in [KvType::F32, KvType::Bf16, KvType::Q8_0, KvType::Q4_0] {
        let speed = SpeedOptions { keys: Some(kind), values: Some(kind), ..SpeedOptions::default() };
        let reply = reply_with(speed, Recipe::default()).await;
        assert_eq!(reply.error, None, "{kind:?}");
        assert!(reply.usage.generated_tokens > 0);
    }
}

#[tokio::test]
async fn what_does_not_go_together_is_refused_with_the_way_out() {
    let speed = SpeedOptions {
        values: Some(KvType::Q8_0),
        flash_attention: FlashAttention::Off,
        ..SpeedOptions::default()
    };
    let error = reply_with(speed, Recipe::default()).await.error.unwrap();
    assert_eq!(error.code, ModelErrorCode::BadRequest);
    assert!(error.message.contains("q8_0") && error.message.contains("flash attention"), "{}", error.message);
    // Two heads of 24 numbers are no blocks of 32.
    let speed = SpeedOptions { keys: Some(KvType::Q4_0), ..SpeedOptions::default() };
    let error = reply_with(speed, Recipe { width: 48, ..Recipe::default() }).await.error.unwrap();
    assert!(error.message.contains("24 numbers") && error.message.contains("q4_0"), "{}", error.message);
}

#[tokio::test]
async fn every_way_into_memory_answers_the_same() {
    let mut texts = Vec::new();
    for loading in [Loading::Mapped, Loading::Copied] {
        let speed =
            SpeedOptions { loading, threads: Some(2), batch_threads: Some(1), ..SpeedOptions::default() };
        let reply = reply_with(speed, Recipe::default()).await;
        assert_eq!(reply.error, None);
        texts.push(reply.text);
    }
    assert_eq!(texts[0], texts[1]);
}
