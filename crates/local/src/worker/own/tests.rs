use std::io::Write;

use lectern_test_gguf::{Architecture, Predicts, Proportions};
use llama_cpp_2::model::params::LlamaModelParams;

use super::super::scripted::BACKEND;
use super::*;
use crate::native::{Context, Purpose};
use crate::speed::FlashAttention;

static NEVER: AtomicBool = AtomicBool::new(false);
const OPTIONS: ContextOptions = ContextOptions {
    tokens: 512,
    batch: 128,
    sequences: 1,
    threads: 1,
    batch_threads: 1,
    keys: None,
    values: None,
    flash_attention: FlashAttention::Auto,
    tile: Tile::None,
    purpose: Purpose::Text,
    rollback: GUESSES,
};

fn model() -> LlamaModel {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let bytes = Proportions::tiny(Architecture::Predicting).sure(2, Predicts::Anything);
    file.write_all(&bytes).unwrap();
    let params = LlamaModelParams::default().with_load_mtp(true);
    LlamaModel::load_from_file(&BACKEND, file.path(), &params).unwrap()
}

fn tokens(ids: impl IntoIterator<Item = i32>) -> Vec<LlamaToken> {
    ids.into_iter().map(LlamaToken).collect()
}

/// A model that evaluates, and its layer that is told of it.
struct Pair<'model> {
    context: Context<'model>,
    own: Own<'model>,
    text: Vec<LlamaToken>,
}

impl<'model> Pair<'model> {
    fn new(model: &'model LlamaModel) -> Self {
        let mut context = Context::new(model, OPTIONS, &NEVER).unwrap();
        context.keep_rows();
        let own = Own::new(model, OPTIONS, &NEVER).unwrap();
        Self { context, own, text: Vec::new() }
    }

    /// Evaluates these tokens and then wrong guesses, which are taken back.
    fn read(&mut self, batch: &[LlamaToken], wrong: &[LlamaToken]) {
        let all: Vec<LlamaToken> = batch.iter().chain(wrong).copied().collect();
        self.context.decode_each(0, self.text.len(), &all).unwrap();
        self.own.saw(&self.text, &all, self.context.rows(all.len(), self.own.width()));
        self.text.extend(batch);
        assert!(self.context.forget_from(0, self.text.len()));
    }

    /// What the layer makes of the text with one token more.
    fn predicted(&mut self, newest: LlamaToken) -> Vec<f32> {
        let text: Vec<LlamaToken> = self.text.iter().chain([&newest]).copied().collect();
        self.own.trust = Trust::new();
        self.own.next(&text, 0);
        self.own.keep(&text);
        self.own.forget_from(text.len() - 1);
        self.own.read_to(&text).unwrap();
        self.own.predictor.logits(self.own.words).to_vec()
    }
}

fn same(left: &[f32], right: &[f32]) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| (left - right).abs() < 1e-2)
}

#[test]
fn piece_by_piece_it_predicts_what_it_does_of_the_whole() {
    let model = model();
    let text = tokens((0..90).map(|place| (place * 37 + 11) % 250));
    let newest = LlamaToken(99);
    let mut pieces = Pair::new(&model);
    pieces.read(&text[..20], &[]);
    pieces.read(&text[20..45], &[]);
    pieces.read(&text[45..46], &[]);
    // Guesses that are made, read and taken back; right ones among them.
    pieces.own.next(&text[..47], 3);
    pieces.read(&text[46..47], &tokens([1, 2, 3]));
    pieces.own.next(&text[..48], 3);
    pieces.read(&text[47..49], &tokens([4]));
    pieces.read(&text[49..50], &[]);
    pieces.own.next(&text[..51], 2);
    pieces.read(&text[50..54], &[]);
    pieces.read(&text[54..], &[]);
    let mut whole = Pair::new(&model);
    whole.read(&text, &[]);
    let (left, right) = (pieces.predicted(newest), whole.predicted(newest));
    assert!(same(&left, &right), "{left:?}\n{right:?}");
    // What it was told makes a difference, or this would show nothing.
    let mut other = Pair::new(&model);
    other.read(&tokens((0..90).map(|place| (place * 31 + 5) % 250)), &[]);
    assert!(!same(&left, &other.predicted(newest)));
}

#[test]
fn another_text_is_not_mixed_with_the_last_one() {
    let model = model();
    let text = tokens((0..60).map(|place| (place * 37 + 11) % 250));
    let other = tokens((0..70).map(|place| (place * 29 + 3) % 250));
    let newest = LlamaToken(99);
    let mut pair = Pair::new(&model);
    pair.read(&other, &[]);
    pair.context.forget(0);
    pair.text.clear();
    pair.read(&text, &[]);
    let mut fresh = Pair::new(&model);
    fresh.read(&text, &[]);
    assert!(same(&pair.predicted(newest), &fresh.predicted(newest)));
    // The end of a text that it never saw: it goes on from there, and guesses nothing before it was told of something.
    let mut late = Pair::new(&model);
    assert!(late.own.next(&text, 3).is_empty());
    late.text.extend(&text[..40]);
    let mut rows = Context::new(&model, OPTIONS, &NEVER).unwrap();
    rows.keep_rows();
    rows.decode_each(0, 0, &text[..40]).unwrap();
    rows.decode_each(0, 40, &text[40..]).unwrap();
    late.own.saw(&text[..40], &text[40..], rows.rows(20, late.own.width()));
    late.text.extend(&text[40..]);
    assert!(late.predicted(newest).iter().all(|logit| logit.is_finite()));
}
