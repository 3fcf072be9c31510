//! What holds a reply: the sampler with the settings of a request and the grammar of its prompt.
//!
//! Invariant: a grammar or a schema that llama.cpp refuses is an error or a plainer grammar, never an abort.

use llama_cpp_2::model::LlamaModel;

use super::prompt::{Force, Prompt, Renderer};
use super::schemas::Detail;
use super::slots::Slot;
use crate::native::{Sampler, SamplerOptions, recent_log};
use crate::protocol::{Generate, WorkerError};

/// The prompt of a request with what chooses the tokens of its reply. Grammars that llama.cpp refuses are made again
/// from plainer schemas, and the reply says so.
pub(super) fn held_prompt(
    renderer: &Renderer<'_>,
    request: &Generate,
    slot: &Slot,
) -> Result<(Prompt, Sampler), WorkerError> {
    let mut refused = None;
    for detail in Detail::ALL {
        let prompt = renderer.prompt(request, slot, detail);
        let held = prompt
            .and_then(|prompt| sampler_of(renderer.model, request, &prompt).map(|sampler| (prompt, sampler)));
        match held {
            Ok((mut prompt, sampler)) => {
                if let Some(error) = refused {
                    prompt.notes.push(format!("the arguments are held to less than their schemas: {error}"));
                }
                return Ok((prompt, sampler));
            }
            Err(error) if request.tools.is_empty() && request.described.is_empty() => return Err(error),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.unwrap_or(WorkerError::Cancelled))
}

/// Chooses the tokens of a reply.
pub(super) fn sampler_of(
    model: &LlamaModel,
    request: &Generate,
    prompt: &Prompt,
) -> Result<Sampler, WorkerError> {
    let (root, grammar) = match &prompt.force {
        Some(Force::Rule(rule)) => (Some(rule.clone()), None),
        Some(Force::Json(grammar) | Force::Answer(grammar)) => (None, Some(grammar.clone())),
        None => (prompt.lazy_root.clone(), None),
    };
    if grammar.as_ref().is_some_and(|grammar| grammar.trim().is_empty() || grammar.contains('\0')) {
        let reason = "the grammar of the answer is empty or holds a zero byte".to_owned();
        return Err(WorkerError::Refused { reason });
    }
    // A template that cannot leave thinking out is told to end it at once.
    let silent = (request.thinking.enabled == Some(false)).then_some(0);
    let options = SamplerOptions {
        thinking_budget: silent
            .or(request.thinking.budget.map(|most| i32::try_from(most).unwrap_or(i32::MAX))),
        root,
        calls: prompt.calls.clone(),
        trigger: prompt.trigger.clone(),
        grammar,
        ..chances(request)
    };
    let _ = recent_log();
    Sampler::new(model, Some(&prompt.format), &options).map_err(|error| {
        let what = match prompt.force {
            Some(Force::Answer(_)) => "the grammar of the answer",
            Some(Force::Rule(_) | Force::Json(_)) | None => "the grammar for these tools",
        };
        let log = recent_log();
        let why =
            log.iter().rev().find(|line| !line.trim().is_empty()).map(|line| format!(" ({})", line.trim()));
        WorkerError::Refused { reason: format!("{what} cannot be used: {error}{}", why.unwrap_or_default()) }
    })
}

/// Chooses the tokens of a reply that has gone where no grammar follows.
pub(super) fn free_sampler(model: &LlamaModel, request: &Generate) -> Result<Sampler, WorkerError> {
    let sampler = Sampler::new(model, None, &chances(request));
    sampler.map_err(|error| WorkerError::Refused { reason: error.to_string() })
}

/// The settings of a request, without what holds it.
fn chances(request: &Generate) -> SamplerOptions {
    let given = &request.sampling;
    SamplerOptions {
        seed: given.seed,
        temperature: given.temperature,
        top_k: given.top_k.map(|k| i32::try_from(k).unwrap_or(i32::MAX)),
        top_p: given.top_p,
        min_p: given.min_p,
        repeat_penalty: given.repeat_penalty,
        frequency_penalty: given.frequency_penalty,
        presence_penalty: given.presence_penalty,
        ..SamplerOptions::default()
    }
}
