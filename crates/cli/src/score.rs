//! `lectern debug score`: asks fixed questions the way a person would, and counts the right answers.
//!
//! Invariant: works on copies; neither the user's notes nor the list of conversations is touched.

mod judge;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lectern_app::models::Source;
use lectern_app::settings::Settings;
use lectern_app::view::{Problem, SendRequest};
use lectern_app::{Engine, EngineOptions, Home, models, rules};
use lectern_core::{ConversationId, EventKind, TurnOutcome};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::args::Score;
use crate::exit::Exit;
use crate::interrupt::Interrupts;
use crate::output::{data, one_line};
use judge::{Done, Question, Vault, invented, judge};

/// One question with what came of it.
struct Verdict {
    question: Question,
    wrong: Option<String>,
    /// Notes that the answer names and that there are not.
    invented: Vec<String>,
    done: Done,
    /// From the question to the first thing that the model wrote.
    first: Option<Duration>,
}

/// Asks all questions and reports.
pub async fn run(home: impl Fn() -> Result<Home, Problem>, score: Score) -> Result<Exit, Problem> {
    let cancel = Interrupts::listen().next();
    let questions = questions(&score)?;
    let folder = tempfile::tempdir().map_err(|error| failed("make a temporary folder", &error))?;
    let scratch = Home::open(Some(folder.path()))?;
    let engine = Engine::open(scratch.clone(), options(&score, &home()?, folder.path())?)?;
    engine.servers_ready().await;
    let vault = PathBuf::from(&engine.app_view().vaults[0].path);
    let mut verdicts = Vec::new();
    for question in questions {
        if cancel.is_cancelled() {
            break;
        }
        let verdict = put(&engine, question, &vault, &cancel).await?;
        if !score.json {
            data(&line(&verdict));
        }
        verdicts.push(verdict);
    }
    engine.shutdown().await;
    if cancel.is_cancelled() {
        return Ok(Exit::Cancelled);
    }
    let right = report(&verdicts, score.json);
    let invents = verdicts.iter().any(|verdict| !verdict.invented.is_empty());
    Ok(if right >= score.floor && !(invents && score.floor > 0) { Exit::Done } else { Exit::Failed })
}

/// Puts what is asked before a question, then the question, in one conversation. Only the last turn is judged.
async fn put(
    engine: &Engine,
    question: Question,
    vault: &Path,
    cancel: &CancellationToken,
) -> Result<Verdict, Problem> {
    let note = question.path.as_ref().map(|path| vault.join(path));
    let text = || note.as_ref().and_then(|path| fs::read_to_string(path).ok());
    let mut conversation = None;
    for earlier in &question.before {
        conversation = Some(turn(engine, conversation, earlier, cancel).await?.conversation);
    }
    let before = text();
    let Turn { done, outcome, first, .. } = turn(engine, conversation, &question.question, cancel).await?;
    let notes = notes_in(vault).map_err(|error| failed("list the notes", &error))?;
    let after = text();
    let invented = invented(&done, &notes);
    let wrong = match outcome {
        Some(TurnOutcome::Completed) => {
            judge(&question, &done, &Vault { notes: &notes, before, after }).err()
        }
        other => Some(format!("the turn ended otherwise: {other:?}")),
    };
    Ok(Verdict { question, wrong, invented, done, first })
}

/// What became of one message.
struct Turn {
    conversation: ConversationId,
    done: Done,
    outcome: Option<TurnOutcome>,
    /// From the message to the first thing that the model wrote.
    first: Option<Duration>,
}

async fn turn(
    engine: &Engine,
    conversation: Option<ConversationId>,
    text: &str,
    cancel: &CancellationToken,
) -> Result<Turn, Problem> {
    let request = SendRequest { conversation, text: text.to_owned(), ..SendRequest::default() };
    let asked = Instant::now();
    let receipt = engine.send(request).await?;
    let mut events = engine.attach_turn(&receipt.turn, -1)?;
    let mut turn =
        Turn { conversation: receipt.conversation, done: Done::default(), outcome: None, first: None };
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = cancel.cancelled() => { engine.cancel_turn(&receipt.turn)?; events.next().await }
        };
        let Some(event) = event else { return Ok(turn) };
        turn.done.take(&event.kind);
        if turn.first.is_none() && writes(&event.kind) {
            turn.first = Some(asked.elapsed());
        }
        if let EventKind::TurnFinished { outcome } = event.kind {
            turn.outcome = Some(outcome);
        }
    }
}

fn writes(event: &EventKind) -> bool {
    matches!(
        event,
        EventKind::TextDelta { .. } | EventKind::ThinkingDelta { .. } | EventKind::ToolCallDelta { .. }
    )
}

/// Milliseconds from a question to what the model wrote first: in the middle, and at worst.
fn first_written(verdicts: &[Verdict]) -> Option<(u128, u128)> {
    let mut times: Vec<u128> =
        verdicts.iter().filter_map(|verdict| Some(verdict.first?.as_millis())).collect();
    times.sort_unstable();
    Some((*times.get(times.len() / 2)?, *times.last()?))
}

fn options(score: &Score, home: &Home, folder: &Path) -> Result<EngineOptions, Problem> {
    let mut options = EngineOptions { rules: vec![rules::parse_allow("all")?], ..EngineOptions::default() };
    if let Some(text) = &score.model {
        let model = models::named(text, &Settings::read(home)?)?;
        options.model = match model.source {
            Source::Starter => None,
            Source::File(path) => Some(path.display().to_string()),
            Source::Remote(_) => {
                return Err(Problem::new("not_local", format!("`{text}` does not run on this computer"))
                    .hint("Questions are scored with local models only."));
            }
        };
    }
    if let Some(vault) = &score.vault {
        let copy = folder.join("vault");
        copy_folder(vault, &copy).map_err(|error| failed(&format!("copy {}", vault.display()), &error))?;
        options.vaults = vec![copy];
    }
    Ok(options)
}

fn questions(score: &Score) -> Result<Vec<Question>, Problem> {
    let path = score.questions.display();
    let problem = |reason: String| {
        Problem::new("bad_questions", format!("{path}: {reason}"))
            .hint("Each line holds one question as JSON; samples/questions.jsonl is an example.")
    };
    let text = fs::read_to_string(&score.questions).map_err(|error| problem(error.to_string()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(number, line)| {
        serde_json::from_str(line).map_err(|error| problem(format!("line {}: {error}", number + 1)))
    });
    let questions: Vec<Question> = read.collect::<Result<_, _>>()?;
    let wanted = |question: &Question| score.only.as_ref().is_none_or(|only| question.id.starts_with(only));
    Ok(questions.into_iter().filter(wanted).collect())
}

/// Prints the counts and says how many are right.
fn report(verdicts: &[Verdict], as_json: bool) -> usize {
    let right = verdicts.iter().filter(|verdict| verdict.wrong.is_none()).count();
    let invented: Vec<&String> = verdicts.iter().flat_map(|verdict| &verdict.invented).collect();
    let kinds = counts(verdicts, |question| question.kind.as_str().to_owned());
    let languages = counts(verdicts, |question| question.lang.clone());
    let reuse = verdicts.iter().map(|verdict| verdict.done.reuse);
    let (known, reused) = reuse.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    if as_json {
        let questions: Vec<Value> = verdicts.iter().map(as_value).collect();
        let out = json!({
            "right": right, "asked": verdicts.len(), "kinds": as_map(&kinds), "languages": as_map(&languages),
            "first_ms": first_written(verdicts).map(|(middle, worst)| json!({"median": middle, "worst": worst})),
            "invented": invented,
            "reuse": {"known_tokens": known, "reused_tokens": reused}, "questions": questions,
        });
        data(&out.to_string());
        return right;
    }
    for (name, (right, asked)) in kinds.iter().chain(&languages) {
        data(&format!("{name:8} {right} of {asked}"));
    }
    if known > 0 {
        let share = reused as f64 / known as f64;
        data(&format!("reused   {reused} of {known} tokens that an earlier step had evaluated ({share:.3})"));
    }
    if let Some((middle, worst)) = first_written(verdicts) {
        data(&format!("first    {middle} ms from question to first token (median), {worst} ms at worst"));
    }
    data(&format!("invented {} notes {}", invented.len(), one_line(&format!("{invented:?}"), 200)));
    data(&format!("right    {right} of {}", verdicts.len()));
    right
}

type Counts = BTreeMap<String, (usize, usize)>;

fn counts(verdicts: &[Verdict], by: impl Fn(&Question) -> String) -> Counts {
    let mut counts = Counts::new();
    for verdict in verdicts {
        let (right, asked) = counts.entry(by(&verdict.question)).or_default();
        *right += usize::from(verdict.wrong.is_none());
        *asked += 1;
    }
    counts
}

fn as_map(counts: &Counts) -> Value {
    counts
        .iter()
        .map(|(name, (right, asked))| (name.clone(), json!({"right": right, "asked": asked})))
        .collect()
}

fn as_value(verdict: &Verdict) -> Value {
    json!({
        "id": verdict.question.id, "right": verdict.wrong.is_none(), "reason": verdict.wrong,
        "calls": verdict.done.calls.iter().map(|(call, _)| call).collect::<Vec<_>>(),
        "answer": verdict.done.answer,
    })
}

fn line(verdict: &Verdict) -> String {
    let id = &verdict.question.id;
    match &verdict.wrong {
        None => format!("right {id}"),
        Some(reason) => format!(
            "WRONG {id} {}\n      {}\n      answer: {}",
            one_line(&verdict.question.question, 100),
            one_line(reason, 200),
            one_line(&verdict.done.answer, 200)
        ),
    }
}

/// Paths of all notes in a vault, with `/`.
fn notes_in(vault: &Path) -> io::Result<BTreeSet<String>> {
    let mut notes = BTreeSet::new();
    let mut folders = vec![vault.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(inside) = path.strip_prefix(vault) {
                let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
                notes.insert(parts.join("/"));
            }
        }
    }
    notes.retain(|note| note.to_lowercase().ends_with(".md") && !note.starts_with('.'));
    Ok(notes)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&path, &copy)?;
        } else if kind.is_file() {
            fs::copy(&path, &copy)?;
        }
    }
    Ok(())
}

fn failed(what: &str, error: &io::Error) -> Problem {
    Problem::new("score_failed", format!("{what}: {error}"))
}
