//! Makes the request of a step fit into the context: exact where the model counts, with room for what comes next.
//!
//! Invariant: first results of earlier turns are shortened, then huge ones of this turn; then the oldest turns are
//! summarised, then everything that is left is shortened. What was cut stays cut, so that the evaluated prefix holds
//! until the next cut is due. A request that can't fit is refused with the number of tokens and the way out.

use std::collections::HashSet;

use futures::StreamExt;

use super::assemble::Assembler;
use super::compose::{self, Composed};
use super::exposing::Offer;
use super::journal::store_error;
use super::run::Turn;
use crate::event::{EventKind, TurnError, TurnErrorCode};
use crate::fit::shorten::{LEAST, length};
use crate::fit::{Fit, SummaryUsed, estimate, summary};
use crate::ids::{ConversationId, ToolCallId};
use crate::message::{Message, UserMessage};
use crate::model::{ChatRequest, FinishReason, ModelErrorCode, Purpose, Sampling, ThinkingOptions, ToolMode};
use crate::store::StoredMessage;

/// Tokens that are kept free for the answer, unless it is said how long that may be.
const USUAL_ANSWER: u32 = 1_024;

/// An answer needs at least so many.
const LEAST_ANSWER: u32 = 64;

/// Cuts that are tried one after the other.
const ROUNDS: usize = 16;

/// Summaries in one step at most; each goes further than the one before.
const SUMMARIES: usize = 3;

/// Tokens that instructions and template of a summary take.
const SUMMARY_OVERHEAD: u32 = 400;

/// What a prompt may take.
#[derive(Clone, Copy)]
struct Budget {
    context: u32,
    /// With a comfortable answer.
    room: u32,
    /// With the shortest answer.
    hard: u32,
    /// What cuts aim at, so that the next step needs none.
    goal: u32,
}

impl Budget {
    fn of(context: u32, max_tokens: Option<u32>) -> Self {
        let answer = max_tokens.unwrap_or(USUAL_ANSWER).min(context / 4);
        let room = context - answer;
        Self { context, room, hard: context - answer.min(LEAST_ANSWER), goal: room - room / 4 }
    }
}

/// The size of a request.
#[derive(Clone, Copy)]
struct Size {
    tokens: u32,
    exact: bool,
}

/// The request of a step, made to fit.
pub(super) async fn request(turn: &mut Turn, offer: &Offer) -> Result<(ChatRequest, Option<Fit>), TurnError> {
    let composed = compose::composed(turn, offer)?;
    let Some(context) = turn.input.model.info().context_length.filter(|context| *context > 0) else {
        return Ok((composed.request, None));
    };
    let budget = Budget::of(context, turn.input.sampling.max_tokens);
    let untouched = composed.shortened.is_empty() && !composed.summarised;
    if untouched && estimate::at_most(&composed.request) <= budget.room {
        return Ok((composed.request, None));
    }
    let mut size = measure(turn, &composed.request).await?;
    let mut fitting = Fitting { turn, offer, budget, composed, new_summary: false };
    if size.tokens > budget.room {
        size = fitting.cut(size).await?;
    }
    if size.tokens > budget.hard {
        return Err(fitting.too_long(size).await);
    }
    let fit = fitting.fit(size);
    Ok((fitting.composed.request, Some(fit)))
}

struct Fitting<'a> {
    turn: &'a mut Turn,
    offer: &'a Offer,
    budget: Budget,
    composed: Composed,
    new_summary: bool,
}

impl Fitting<'_> {
    async fn cut(&mut self, mut size: Size) -> Result<Size, TurnError> {
        size = self.shorten_earlier(size).await?;
        let huge = usize::try_from(self.budget.room).unwrap_or(usize::MAX);
        size = self.shorten_largest(size, huge).await?;
        for _ in 0..SUMMARIES {
            if size.tokens <= self.budget.room || !self.summarise(size).await? {
                break;
            }
            size = self.compose().await?;
        }
        self.shorten_largest(size, LEAST).await
    }

    /// Results of the turns before, the oldest first.
    async fn shorten_earlier(&mut self, mut size: Size) -> Result<Size, TurnError> {
        for _ in 0..ROUNDS {
            let mut excess = usize::try_from(size.tokens.saturating_sub(self.budget.goal)).unwrap_or(0);
            let mut cuts = Vec::new();
            for (call, characters) in self.results(Turns::Earlier) {
                if excess > 0 && characters > 2 * LEAST {
                    // Estimated low, so that more is cut rather than less.
                    excess = excess.saturating_sub((characters - LEAST) / 6);
                    cuts.push((call, LEAST));
                }
            }
            if size.tokens <= self.budget.room || cuts.is_empty() {
                return Ok(size);
            }
            size = self.apply(cuts).await?;
        }
        Ok(size)
    }

    /// Results of any turn, the largest first, as long as they have more than this many characters.
    async fn shorten_largest(&mut self, mut size: Size, least: usize) -> Result<Size, TurnError> {
        for _ in 0..ROUNDS {
            if size.tokens <= self.budget.room {
                return Ok(size);
            }
            let largest = self.results(Turns::All).into_iter().max_by_key(|(_, characters)| *characters);
            // The marker takes some characters itself.
            let Some((call, characters)) = largest.filter(|(_, characters)| *characters > least + LEAST)
            else {
                return Ok(size);
            };
            let excess = usize::try_from(size.tokens.saturating_sub(self.budget.goal)).unwrap_or(0);
            let keep = characters.saturating_sub(excess * 4).max(characters / 4).max(least);
            size = self.apply(vec![(call, keep)]).await?;
        }
        Ok(size)
    }

    async fn apply(&mut self, cuts: Vec<(ToolCallId, usize)>) -> Result<Size, TurnError> {
        let cuts = cuts.into_iter().collect();
        let kept = self.turn.input.store.keep_cuts(&self.turn.key.conversation, &cuts);
        kept.map_err(|error| store_error(&error))?;
        self.turn.cuts.extend(cuts);
        self.compose().await
    }

    async fn compose(&mut self) -> Result<Size, TurnError> {
        self.composed = compose::composed(self.turn, self.offer)?;
        measure(self.turn, &self.composed.request).await
    }

    /// The results as the model gets them now, the oldest first, with their characters.
    fn results(&self, turns: Turns) -> Vec<(ToolCallId, usize)> {
        let messages = &self.composed.request.messages;
        let begin = messages.iter().rposition(is_question).unwrap_or(0);
        let end = match turns {
            Turns::Earlier => begin,
            Turns::All => messages.len(),
        };
        let results = messages[..end].iter().filter_map(|message| match message {
            Message::Tool(result) => Some((result.call.clone(), length(result))),
            Message::User(_) | Message::Assistant(_) => None,
        });
        results.collect()
    }

    /// Lets a summary stand for the oldest turns. False when there is only the present one.
    async fn summarise(&mut self, size: Size) -> Result<bool, TurnError> {
        let turn = &mut *self.turn;
        let (_, messages) = compose::stored(turn)?;
        let excess = usize::try_from(size.tokens.saturating_sub(self.budget.goal)).unwrap_or(usize::MAX);
        let Some(place) = boundary(&messages, excess) else { return Ok(false) };
        let (Some(last), before) = (messages.get(place - 1), &messages[..place]) else { return Ok(false) };
        turn.journal.tell(EventKind::Notice {
            code: "summarising".to_owned(),
            message: format!("the conversation no longer fits; {place} messages are summarised"),
        });
        let older = turn.summary.as_ref();
        let text = ask_summary(turn, older.map(|older| older.text.as_str()), before, self.budget).await?;
        let known = older.map_or(0, |older| older.messages);
        let count = known.saturating_add(u32::try_from(place).unwrap_or(u32::MAX));
        let conversation = &turn.key.conversation;
        let kept = turn.input.store.keep_summary(conversation, &last.id, count, &text);
        turn.summary = Some(kept.map_err(|error| store_error(&error))?);
        self.new_summary = true;
        Ok(true)
    }

    fn fit(&self, size: Size) -> Fit {
        let summary = self.turn.summary.as_ref().filter(|_| self.composed.summarised);
        Fit {
            tokens: size.tokens,
            exact: size.exact,
            room: self.budget.room,
            shortened: self.composed.shortened.clone(),
            summary: summary.map(|summary| SummaryUsed {
                up_to: summary.up_to.clone(),
                messages: summary.messages,
                text: summary.text.clone(),
                new: self.new_summary,
            }),
        }
    }

    /// Which message is too long, by how much, and what can be done.
    async fn too_long(&self, size: Size) -> TurnError {
        let request = &self.composed.request;
        let question = request.messages.iter().rfind(|message| is_question(message)).cloned();
        let alone = ChatRequest { messages: question.into_iter().collect(), ..request.clone() };
        let room = self.budget.hard;
        let alone = measure(self.turn, &alone).await.map_or(size.tokens, |size| size.tokens);
        let about = if size.exact { "" } else { "about " };
        let message = if alone > room {
            format!(
                "your message is too long: with instructions and tools it needs {about}{alone} tokens, and {room} of \
                 the context of {} can be used, so {} are too many",
                self.budget.context,
                alone - room
            )
        } else {
            format!(
                "this question and what its tools returned need {about}{} tokens even when they are cut, and {room} of \
                 the context of {} can be used, so {} are too many",
                size.tokens,
                self.budget.context,
                size.tokens - room
            )
        };
        let larger = self.turn.input.largest_context.filter(|largest| *largest > self.budget.context);
        let hint = match larger {
            Some(largest) => {
                format!(
                    "Split the message, or give the model more context: it can have up to {largest} tokens here."
                )
            }
            None => "Split the message, or choose a model with a larger context.".to_owned(),
        };
        TurnError {
            code: TurnErrorCode::Model(ModelErrorCode::ContextFull),
            message,
            hint: Some(hint),
            detail: None,
        }
    }
}

/// Which results.
enum Turns {
    Earlier,
    All,
}

fn is_question(message: &Message) -> bool {
    matches!(message, Message::User(_))
}

/// Counts the tokens, or estimates them where nobody counts.
async fn measure(turn: &Turn, request: &ChatRequest) -> Result<Size, TurnError> {
    let counted = tokio::select! {
        biased;
        () = turn.cancel.cancelled() => return Err(TurnError::interrupted()),
        counted = turn.input.model.count(request.clone()) => counted,
    };
    Ok(match counted {
        Ok(Some(tokens)) => Size { tokens, exact: true },
        Ok(None) | Err(_) => Size { tokens: estimate::about(request), exact: false },
    })
}

/// Where to cut so that about this many tokens go. The present turn always stays, the one before if that is enough.
fn boundary(messages: &[StoredMessage], excess: usize) -> Option<usize> {
    let boundaries = summary::boundaries(messages);
    let enough = |at: &usize| {
        let texts = messages[..*at].iter().map(|stored| tokens_of(&stored.message));
        texts.sum::<usize>() / 2 >= excess.saturating_add(usize::try_from(summary::TOKENS).unwrap_or(0))
    };
    boundaries.iter().copied().find(enough).or(boundaries.last().copied())
}

fn tokens_of(message: &Message) -> usize {
    match message {
        Message::User(user) => estimate::tokens(&crate::message::text_of(&user.parts)),
        Message::Assistant(reply) => estimate::tokens(&reply.text()),
        Message::Tool(result) => estimate::tokens(&result.text()).min(LEAST),
    }
}

/// The model's summary; empty when it gives none, and then the messages are left out.
async fn ask_summary(
    turn: &Turn,
    older: Option<&str>,
    messages: &[StoredMessage],
    budget: Budget,
) -> Result<String, TurnError> {
    let room = budget.context.saturating_sub(summary::TOKENS + SUMMARY_OVERHEAD).max(budget.context / 4);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let mut transcript = summary::transcript(older, messages, room.saturating_mul(3));
    let tokens = estimate::tokens(&transcript);
    if tokens > room {
        let fitting = transcript.chars().count().saturating_mul(room) / tokens.max(1);
        transcript = summary::transcript(older, messages, fitting);
        transcript = transcript.chars().take(fitting).collect();
    }
    let request = ChatRequest {
        // A conversation of its own: the cache of this one is not to be lost.
        conversation: ConversationId::fresh(),
        system: Some(summary::INSTRUCTIONS.to_owned()),
        messages: vec![Message::User(UserMessage::text(transcript))],
        tool_mode: ToolMode::Off,
        purpose: Purpose::Side,
        thinking: ThinkingOptions { enabled: Some(false), budget: None },
        sampling: Sampling {
            temperature: Some(0.2),
            max_tokens: Some(summary::TOKENS),
            ..Sampling::default()
        },
        ..ChatRequest::default()
    };
    let why = match stream(turn, request).await? {
        Ok(text) if !text.is_empty() => return Ok(text),
        Ok(_) => "it wrote nothing".to_owned(),
        Err(why) => why,
    };
    let message = format!("the oldest messages are left out without a summary: {why}");
    turn.journal.tell(EventKind::Notice { code: "summary_failed".to_owned(), message });
    Ok(String::new())
}

async fn stream(turn: &Turn, request: ChatRequest) -> Result<Result<String, String>, TurnError> {
    let mut stream = turn.input.model.stream(request, turn.cancel.clone());
    let mut reply = Assembler::new(turn.input.model.info().id.clone());
    let mut ids = HashSet::new();
    loop {
        let delta = tokio::select! {
            biased;
            () = turn.cancel.cancelled() => return Err(TurnError::interrupted()),
            delta = stream.next() => delta,
        };
        match delta {
            Some(Ok(delta)) => _ = reply.take(delta, &mut ids),
            Some(Err(error)) => return Ok(Err(error.message)),
            None => break,
        }
    }
    Ok(match reply.finish {
        Some(FinishReason::Stop | FinishReason::Length | FinishReason::ToolCalls) => {
            Ok(summary::cleaned(&reply.whole().text()))
        }
        Some(FinishReason::Filtered | FinishReason::Failed | FinishReason::Cancelled) | None => {
            Err("its reply broke off".to_owned())
        }
    })
}
