//! Chooses the tools that are shown in full when there are many.
//!
//! Invariant: pure. What was chosen for a question stays chosen while it is answered, and in the turns after it: a model
//! that has read a definition has it in its history, and taking it away would have the history read anew. Only when that
//! has become much more than a question needs, it begins anew.

use super::index::{finder, is_finder};
use super::rank::{Ranking, query};
use super::{ChosenBecause, ChosenTool, ExposurePolicy, LeftOutTool, MAX_LEFT_OUT};
use crate::ids::ToolName;
use crate::tool::ToolSpec;

/// A word of an earlier question or call counts this much beside one of the question.
const RECENT_WEIGHT: f32 = 0.4;

/// Turns whose calls are recent.
const RECENT_TURNS: usize = 4;

/// Tools that one search of the finder adds at most.
const FOUND: usize = 5;

/// Tools that are shown because they were shown before, in questions' worth.
const SHOWN_QUESTIONS: usize = 2;

/// A turn, as far as the choice depends on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Asked {
    /// The user's question.
    pub question: String,
    /// Tools that were called, or that the model asked for, in this turn.
    pub wanted: Vec<ToolName>,
}

/// The tools that are shown in full, and why.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    /// In the order in which they are shown: as the tools stand, what was wanted later behind them.
    pub tools: Vec<ToolSpec>,
    pub chosen: Vec<ChosenTool>,
    pub left_out: Vec<LeftOutTool>,
    pub left_out_count: u32,
    /// Whether there are more tools than are shown, so that the model needs the list of names.
    pub needs_index: bool,
}

/// Chooses among the tools for the last of these turns.
pub(crate) fn choose(tools: &[ToolSpec], policy: &ExposurePolicy, turns: &[Asked]) -> Choice {
    let choosing = Choosing { tools, policy, ranking: Ranking::of(tools) };
    let mut shown = vec![false; tools.len()];
    for at in 1..turns.len() {
        let reasons = choosing.reasons(&turns[..at], &shown).0;
        shown = reasons.iter().map(Option::is_some).collect();
    }
    let (reasons, scores) = choosing.reasons(turns, &shown);
    choosing.choice(turns, &reasons, &scores)
}

struct Choosing<'a> {
    tools: &'a [ToolSpec],
    policy: &'a ExposurePolicy,
    ranking: Ranking,
}

impl Choosing<'_> {
    fn room(&self) -> usize {
        usize::try_from(self.policy.relevant).unwrap_or(usize::MAX).max(1)
    }

    /// Why each tool is shown in the last turn, and how well it fits.
    fn reasons(&self, turns: &[Asked], shown: &[bool]) -> (Vec<Option<ChosenBecause>>, Vec<f32>) {
        let Some((turn, before)) = turns.split_last() else {
            return (vec![None; self.tools.len()], Vec::new());
        };
        let used = before.iter().rev().take(RECENT_TURNS).flat_map(|turn| turn.wanted.iter().rev());
        let used: Vec<&ToolName> = used.collect();
        let earlier = before.last().map_or("", |turn| turn.question.as_str());
        let asked = [(turn.question.clone(), 1.0), (earlier.to_owned(), RECENT_WEIGHT)];
        let called = used.iter().map(|tool| (tool.as_str().to_owned(), RECENT_WEIGHT));
        // What only resembles a call is no answer to a question.
        let fits = self.ranking.scores(&query(asked.clone()));
        let scores = self.ranking.scores(&query(asked.into_iter().chain(called)));
        let because = |spec: &ToolSpec| {
            if self.policy.pinned.contains(&spec.name) {
                Some(ChosenBecause::Pinned)
            } else if used.first() == Some(&&spec.name) {
                // "And the other one?" goes on with the tool that was used last.
                Some(ChosenBecause::Used)
            } else {
                None
            }
        };
        let mut reasons: Vec<Option<ChosenBecause>> = self.tools.iter().map(because).collect();
        let ranked = ranked(&scores);
        let fitting = |at: &usize| fits[*at] > 0.0;
        fill(&mut reasons, ranked.iter().copied().filter(fitting), self.room(), ChosenBecause::Relevant);
        self.keep_shown(&mut reasons, shown);
        let on_top = |why: &&Option<ChosenBecause>| matches!(why, None | Some(ChosenBecause::Pinned));
        let free = self.room().saturating_sub(reasons.iter().filter(|why| !on_top(why)).count());
        fill(&mut reasons, ranked.iter().copied(), free, ChosenBecause::Room);
        // Last, so that nothing else that a step shows depends on what the one before it asked for.
        let is_wanted = |at: &usize| turn.wanted.contains(&self.tools[*at].name);
        let wanted = (0..self.tools.len()).filter(is_wanted);
        fill(&mut reasons, wanted, usize::MAX, ChosenBecause::Wanted);
        (reasons, scores)
    }

    /// What was shown before stays, unless it is too much.
    fn keep_shown(&self, reasons: &mut [Option<ChosenBecause>], shown: &[bool]) {
        let count = reasons.iter().zip(shown).filter(|(why, shown)| why.is_some() || **shown).count();
        if count > self.room().saturating_mul(SHOWN_QUESTIONS).saturating_add(self.policy.pinned.len()) {
            return;
        }
        for (why, shown) in reasons.iter_mut().zip(shown) {
            if *shown && why.is_none() {
                *why = Some(ChosenBecause::Shown);
            }
        }
    }

    fn choice(&self, turns: &[Asked], reasons: &[Option<ChosenBecause>], scores: &[f32]) -> Choice {
        let tools = self.tools;
        let wanted = turns.last().map_or(&[][..], |turn| &turn.wanted);
        let place = |spec: &ToolSpec| wanted.iter().position(|tool| *tool == spec.name);
        let mut order: Vec<usize> = (0..tools.len()).filter(|at| reasons[*at].is_some()).collect();
        order.sort_by_key(|at| {
            let late = reasons[*at] == Some(ChosenBecause::Wanted);
            (late, if late { place(&tools[*at]).unwrap_or(0) } else { *at })
        });
        let mut choice = Choice::default();
        for at in order {
            let Some(why) = reasons[at] else { continue };
            choice.chosen.push(ChosenTool { tool: tools[at].name.clone(), why, score: Some(scores[at]) });
            choice.tools.push(tools[at].clone());
        }
        let left: Vec<usize> = ranked(scores).into_iter().filter(|at| reasons[*at].is_none()).collect();
        let named = left.iter().take(MAX_LEFT_OUT);
        let left_out = |at: &usize| LeftOutTool { tool: tools[*at].name.clone(), score: Some(scores[*at]) };
        choice.left_out = named.map(left_out).collect();
        choice.left_out_count = u32::try_from(left.len()).unwrap_or(u32::MAX);
        // The list stands before the history, so it does not depend on the turn.
        choice.needs_index = tools.len().saturating_sub(self.policy.pinned.len()) > self.room();
        if choice.needs_index {
            add_finder(tools, &mut choice);
        }
        choice
    }
}

/// The tools that a search of the finder names: those called so, else those that fit best.
pub(crate) fn find(tools: &[ToolSpec], text: &str) -> Vec<ToolName> {
    let is_named = |spec: &&ToolSpec| {
        let named = |name: &str| {
            text.split(|c: char| c.is_whitespace() || ",;`'\"".contains(c)).any(|part| part == name)
        };
        named(spec.name.as_str()) || named(&spec.original_name)
    };
    let named: Vec<ToolName> =
        tools.iter().filter(is_named).map(|spec| spec.name.clone()).take(FOUND).collect();
    if !named.is_empty() {
        return named;
    }
    let scores = Ranking::of(tools).scores(&query([(text.to_owned(), 1.0)]));
    let fitting = ranked(&scores).into_iter().filter(|at| scores[*at] > 0.0);
    fitting.take(FOUND).map(|at| tools[at].name.clone()).collect()
}

/// Gives a reason to so many of these tools that have none.
fn fill(
    reasons: &mut [Option<ChosenBecause>],
    tools: impl Iterator<Item = usize>,
    most: usize,
    why: ChosenBecause,
) {
    let mut left = most;
    for at in tools {
        if left > 0 && reasons[at].is_none() {
            reasons[at] = Some(why);
            left -= 1;
        }
    }
}

fn add_finder(tools: &[ToolSpec], choice: &mut Choice) {
    let finder = finder();
    if is_finder(&finder.name, tools) {
        choice.chosen.push(ChosenTool { tool: finder.name.clone(), why: ChosenBecause::Finder, score: None });
        choice.tools.push(finder);
    }
}

/// Positions, the best first.
fn ranked(scores: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // Stable: equal ones stay in the order of the tools.
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order
}
