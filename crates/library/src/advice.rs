//! Whether a model suits a machine, and why, in words.
//!
//! A token is written by reading all weights once, so the speed of one model tells the speed of another on the same
//! machine: bytes of weights in a second stay about the same. Invariant: pure.

use crate::machine::Memory;
use crate::units::bytes;

/// Memory that a model needs, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// The model itself.
    pub weights: u64,
    /// What it remembers of the conversation.
    pub kv: u64,
    /// Room to compute in, and the process.
    pub compute: u64,
    /// All of it.
    pub total: u64,
    /// Whether it was guessed from the file's size.
    pub guessed: bool,
}

/// How a model ran on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ran {
    /// Bytes of its weights.
    pub weights: u64,
    /// Tokens read in a second.
    pub prompt: f64,
    /// Tokens written in a second.
    pub generation: f64,
}

/// How fast a model is, or will be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Tokens written in a second.
    pub generation: f64,
    /// Tokens read in a second.
    pub prompt: Option<f64>,
    /// Whether it was this model that was tested.
    pub measured: bool,
}

/// In one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With room for others.
    Fits,
    /// Others may have to make room.
    Tight,
    /// Not on this machine.
    TooBig,
}

/// The advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// In one word.
    pub verdict: Verdict,
    /// The need with `context`.
    pub need: Need,
    /// Tokens of context that were counted with.
    pub context: u32,
    /// The most that fits with ease.
    pub suggested_context: Option<u32>,
    /// Memory that there is for it.
    pub available: u64,
    /// How fast.
    pub pace: Option<Pace>,
    /// Why: a short name for programs and a sentence.
    pub reasons: Vec<(&'static str, String)>,
}

/// What is asked about.
pub struct Question<'a> {
    /// The need with so many tokens of context.
    pub need: &'a dyn Fn(u32) -> Need,
    /// The need with a cache of 8-bit numbers (`kv_type=q8_0`); none where that can't be, or is chosen already.
    pub leaner: Option<&'a dyn Fn(u32) -> Need>,
    /// Tokens that it would be used with.
    pub context: u32,
    /// Tokens that it was made for; none when not known.
    pub trained: Option<u32>,
    /// The test of this very model.
    pub ran: Option<Ran>,
}

/// What is known of the machine.
pub struct Place<'a> {
    /// Its memory.
    pub memory: Memory,
    /// Memory of graphics cards that models may use.
    pub graphics: u64,
    /// Tests of all models.
    pub tests: &'a [Ran],
}

const GIB: u64 = 1 << 30;
/// Reading is faster than speaking from here on.
const PLEASANT: f64 = 8.0;
/// From here on waiting is the better part.
const BEARABLE: f64 = 3.0;
/// Weights below this stay in the processor's own memory and say nothing about larger ones.
const TELLING: u64 = 64 << 20;

/// Thinks about it.
pub fn advise(question: &Question<'_>, place: &Place<'_>) -> Advice {
    let need = (question.need)(question.context);
    let memory = place.memory.total.saturating_add(place.graphics);
    let others = for_others(place.memory.total);
    let with_ease = memory.saturating_sub(others);
    let at_most = memory.saturating_sub(others / 4);
    let verdict = match need.total {
        total if total <= with_ease => Verdict::Fits,
        total if total <= at_most => Verdict::Tight,
        _ => Verdict::TooBig,
    };
    let suggested_context = contexts(question.trained)
        .filter(|context| (question.need)(*context).total <= with_ease)
        .last()
        .or_else(|| {
            contexts(question.trained).next().filter(|least| (question.need)(*least).total <= at_most)
        });
    let pace = pace(question, need.weights, place.tests);
    let mut reasons = reasons(verdict, &need, question, place, pace.as_ref());
    reasons.extend(leaner(question, &need, suggested_context, with_ease, at_most));
    Advice {
        verdict,
        need,
        context: question.context,
        suggested_context,
        available: with_ease,
        pace,
        reasons,
    }
}

/// Whether a cache of 8-bit numbers would be a gain: when little memory is left, or a longer context would fit.
fn leaner(
    question: &Question<'_>,
    need: &Need,
    suggested: Option<u32>,
    with_ease: u64,
    at_most: u64,
) -> Option<(&'static str, String)> {
    let lean = question.leaner?;
    let (now, then) = (need.kv, lean(question.context).kv);
    let saved = need.total.saturating_sub(lean(question.context).total);
    let longer = contexts(question.trained).filter(|context| lean(*context).total <= with_ease).last();
    let context = longer.filter(|longer| suggested.is_none_or(|suggested| *longer > suggested));
    let gain = if need.total > with_ease && lean(question.context).total <= at_most {
        format!("it takes {} less", bytes(saved))
    } else {
        format!("{} tokens of context would fit", context?)
    };
    // What a conversation takes is the smaller part of the need: then it is not worth the advice.
    (saved >= need.total / 50).then(|| {
        let said = format!(
            "with kv_type=q8_0 the conversation takes {} in place of {}: {gain} (flash attention comes with it; reading \
             is about a tenth slower on a processor)",
            bytes(then),
            bytes(now)
        );
        ("kv_type", said)
    })
}

/// What the system and other programs want: a quarter, at least 2 GiB where there is that much, at most 8.
fn for_others(total: u64) -> u64 {
    (total / 4).clamp(2 * GIB, 8 * GIB).min(total / 2)
}

fn contexts(trained: Option<u32>) -> impl Iterator<Item = u32> {
    let trained = trained.unwrap_or(32_768);
    let steps = [2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072];
    let below: Vec<u32> = steps.into_iter().filter(|step| *step < trained).collect();
    below.into_iter().chain(std::iter::once(trained.min(131_072)))
}

fn pace(question: &Question<'_>, weights: u64, tests: &[Ran]) -> Option<Pace> {
    if let Some(ran) = question.ran {
        return Some(Pace { generation: ran.generation, prompt: Some(ran.prompt), measured: true });
    }
    // The test of the model whose size is nearest tells most.
    let distance = |ran: &&Ran| ((ran.weights as f64).ln() - (weights.max(1) as f64).ln()).abs();
    let telling = tests.iter().filter(|ran| ran.weights >= TELLING.min(weights));
    let nearest = telling.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let scale = nearest.weights as f64 / weights.max(1) as f64;
    Some(Pace {
        generation: nearest.generation * scale,
        prompt: Some(nearest.prompt * scale),
        measured: false,
    })
}

fn reasons(
    verdict: Verdict,
    need: &Need,
    question: &Question<'_>,
    place: &Place<'_>,
    pace: Option<&Pace>,
) -> Vec<(&'static str, String)> {
    let (context, total) = (question.context, bytes(place.memory.total));
    let about = if need.guessed { "about " } else { "" };
    let needs = format!("it needs {about}{} of memory with {context} tokens of context", bytes(need.total));
    let mut reasons = vec![match verdict {
        Verdict::Fits => ("memory_fits", format!("{needs}, and {total} are there")),
        Verdict::Tight => ("memory_tight", format!("{needs}; of {total}, little is left for other programs")),
        Verdict::TooBig => ("memory_too_big", format!("{needs}, and only {total} are there")),
    }];
    if place.memory.limit.is_some() {
        reasons.push(("memory_limit", format!("a container limits the memory to {total}")));
    }
    if verdict != Verdict::TooBig && need.total > place.memory.available.saturating_add(place.graphics) {
        let free = bytes(place.memory.available);
        reasons.push(("memory_busy", format!("only {free} are free now: close other programs first")));
    }
    if let Some(trained) = question.trained.filter(|trained| *trained < context) {
        reasons.push(("context_trained", format!("it was made for {trained} tokens of context")));
    }
    let speed = |pace: &Pace| format!("{:.1} tokens per second", pace.generation);
    let source = |pace: &Pace| if pace.measured { "measured" } else { "by tests of other models" };
    reasons.push(match pace {
        None => ("speed_unknown", "how fast it is here is not known before a test".to_owned()),
        Some(pace) if pace.generation < BEARABLE => (
            "speed_slow",
            format!("it writes {} ({}): slower than most people want to wait", speed(pace), source(pace)),
        ),
        Some(pace) if pace.generation < PLEASANT => (
            "speed_bearable",
            format!("it writes {} ({}): about as fast as one reads", speed(pace), source(pace)),
        ),
        Some(pace) => ("speed_good", format!("it writes {} ({})", speed(pace), source(pace))),
    });
    reasons
}

/// The need of a model of which only the size of its file is known, as other models of this size have it.
pub fn guess_need(file_bytes: u64, context: u32) -> Need {
    // Bytes of keys and values for a token: 33 kB for 1B, 115 to 147 kB for 3 to 8B, about 200 kB for 14B models in
    // four bits.
    let of_token = (file_bytes / 20_000).clamp(8 << 10, 160 << 10).max(file_bytes / 60_000);
    let kv = of_token.saturating_mul(context.into());
    let compute = (file_bytes / 20).saturating_add(100 << 20);
    Need {
        weights: file_bytes,
        kv,
        compute,
        total: file_bytes.saturating_add(kv).saturating_add(compute),
        guessed: true,
    }
}

/// Bytes of weights that the machine reads in a second, by the tests of models that are large enough to tell.
pub fn weights_per_second(tests: &[Ran]) -> Option<u64> {
    let telling = tests.iter().filter(|ran| ran.weights >= TELLING);
    telling.map(|ran| (ran.weights as f64 * ran.generation) as u64).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(total: u64, tests: &[Ran]) -> Place<'_> {
        Place { memory: Memory { total, available: total, limit: None }, graphics: 0, tests }
    }

    fn about(size: u64, total: u64, tests: &[Ran]) -> Advice {
        let need = move |context| guess_need(size, context);
        advise(
            &Question { need: &need, leaner: None, context: 8192, trained: Some(32_768), ran: None },
            &place(total, tests),
        )
    }

    #[test]
    fn what_fits_is_told_from_what_does_not() {
        let four_b = 2_500_000_000;
        assert_eq!(about(four_b, 16 * GIB, &[]).verdict, Verdict::Fits);
        assert_eq!(about(four_b, 16 * GIB, &[]).suggested_context, Some(32_768));
        assert_eq!(about(four_b, 6 * GIB, &[]).verdict, Verdict::Fits);
        assert_eq!(about(5_000_000_000, 8 * GIB, &[]).verdict, Verdict::Tight);
        assert_eq!(about(four_b, 3 * GIB, &[]).verdict, Verdict::TooBig);
        assert_eq!(about(40_000_000_000, 16 * GIB, &[]).suggested_context, None);
    }

    #[test]
    fn speed_is_scaled_from_the_model_of_the_nearest_size() {
        let small = Ran { weights: 3 << 20, prompt: 90_000.0, generation: 3000.0 };
        let large = Ran { weights: 1_000_000_000, prompt: 100.0, generation: 20.0 };
        let advice = about(2_000_000_000, 16 * GIB, &[small, large]);
        assert_eq!(advice.pace, Some(Pace { generation: 10.0, prompt: Some(50.0), measured: false }));
        assert_eq!(about(2_000_000_000, 16 * GIB, &[small]).pace, None, "a tiny model says nothing");
        assert_eq!(weights_per_second(&[small, large]), Some(20_000_000_000));
    }

    #[test]
    fn a_slow_model_and_a_full_memory_are_said() {
        let need = |context| guess_need(2_500_000_000, context);
        let ran = Some(Ran { weights: 2_500_000_000, prompt: 20.0, generation: 2.0 });
        let memory = Memory { total: 16 * GIB, available: GIB, limit: Some(16 * GIB) };
        let question = Question { need: &need, leaner: None, context: 8192, trained: Some(4096), ran };
        let advice = advise(&question, &Place { memory, graphics: 0, tests: &[] });
        let codes: Vec<&str> = advice.reasons.iter().map(|(code, _)| *code).collect();
        assert_eq!(codes, ["memory_fits", "memory_limit", "memory_busy", "context_trained", "speed_slow"]);
        assert!(advice.pace.unwrap().measured);
    }

    #[test]
    fn a_smaller_cache_is_advised_where_it_helps() {
        let need = |context| guess_need(5_000_000_000, context);
        let lean = |context| {
            let usual = guess_need(5_000_000_000, context);
            Need { kv: usual.kv / 2, total: usual.total - usual.kv / 2, ..usual }
        };
        let advised = |total, leaner| {
            let question =
                Question { need: &need, leaner, context: 16_384, trained: Some(32_768), ran: None };
            let advice = advise(&question, &place(total, &[]));
            advice.reasons.into_iter().find(|(code, _)| *code == "kv_type").map(|(_, text)| text)
        };
        assert_eq!(advised(64 * GIB, Some(&lean)), None, "there is room for all of it");
        assert_eq!(advised(9 * GIB, None), None, "it can't be had");
        let tight = advised(9 * GIB, Some(&lean)).unwrap();
        assert!(tight.contains("kv_type=q8_0") && tight.contains("flash attention"), "{tight}");
        let longer = advised(12 * GIB, Some(&lean));
        assert!(longer.is_none_or(|text| text.contains("tokens of context would fit")));
    }
}
