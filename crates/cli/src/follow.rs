//! Follows one turn to its end: shows its events, answers its questions, stops it.

use std::io;

use lectern_app::Engine;
use lectern_app::view::{Problem, SendReceipt};
use lectern_core::{
    Event, EventKind, Grant, PermissionAnswer, Question, QuestionId, ServerId, ToolCall, TurnOutcome,
};
use tokio_util::sync::CancellationToken;

use crate::args::Use;
use crate::permit::{Asker, Reply};
use crate::question::{Answered, Answerer};

/// Who is asked, about calls and by servers.
#[derive(Clone, Copy, Debug)]
pub struct People {
    permits: Asker,
    answers: Answerer,
}

impl People {
    /// The person at the terminal, if there is one and nothing else was said.
    pub fn of(with: &Use) -> Self {
        Self { permits: Asker::at_terminal(), answers: Answerer::of(with.elicitation) }
    }
}

/// Where the events of a turn go.
pub trait Sink {
    /// One event. An error means that nobody reads any more.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// A remark of the shell itself.
    fn remark(&mut self, text: &str) -> io::Result<()>;
}

/// Shows a turn until it is over and says how it ended.
pub async fn turn(
    engine: &Engine,
    receipt: &SendReceipt,
    sink: &mut impl Sink,
    people: People,
    cancel: &CancellationToken,
) -> Result<TurnOutcome, Problem> {
    let mut events = engine.attach_turn(&receipt.turn, -1)?;
    let mut listening = true;
    let mut outcome = None;
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            () = cancel.cancelled(), if listening => {
                listening = false;
                engine.cancel_turn(&receipt.turn)?;
                continue;
            }
        };
        let Some(event) = event else { break };
        if sink.event(&event).is_err() {
            // Nobody reads any more; the turn is stopped and still settled.
            engine.cancel_turn(&receipt.turn)?;
        }
        match event.kind {
            EventKind::PermissionRequested { call, choices } => {
                answer(engine, receipt, sink, people.permits, &call, &choices, cancel).await?;
            }
            EventKind::QuestionAsked { question_id, server, question, .. } => {
                let asked = Asked { id: question_id, server, question };
                answer_server(engine, receipt, sink, people.answers, &asked, cancel).await?;
            }
            EventKind::TurnFinished { outcome: how } => outcome = Some(how),
            EventKind::TurnStarted { .. }
            | EventKind::StepStarted { .. }
            | EventKind::ModelLoading { .. }
            | EventKind::PromptProgress { .. }
            | EventKind::TextDelta { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolCallDelta { .. }
            | EventKind::StepFinished { .. }
            | EventKind::PermissionAnswered { .. }
            | EventKind::ToolStarted { .. }
            | EventKind::ToolProgress { .. }
            | EventKind::ToolWire { .. }
            | EventKind::ToolLog { .. }
            | EventKind::QuestionAnswered { .. }
            | EventKind::SampleFinished { .. }
            | EventKind::ToolFinished { .. }
            | EventKind::Retrying { .. }
            | EventKind::Notice { .. } => {}
        }
    }
    outcome.ok_or_else(|| Problem::new("defect", "the turn ended without a word"))
}

async fn answer(
    engine: &Engine,
    receipt: &SendReceipt,
    sink: &mut impl Sink,
    asker: Asker,
    call: &ToolCall,
    choices: &[Grant],
    cancel: &CancellationToken,
) -> Result<(), Problem> {
    let reply = tokio::select! {
        reply = asker.ask(call, choices) => reply,
        () = cancel.cancelled() => return Ok(()),
    };
    let answer = match reply {
        Reply::Answer(answer) => answer,
        Reply::Stop => return engine.cancel_turn(&receipt.turn),
        Reply::Nobody => {
            let tool = &call.tool;
            let said = format!("! {tool} was denied: nobody to ask; --allow {tool} or --yes lets it run");
            let _ = sink.remark(&said);
            PermissionAnswer::Deny
        }
    };
    // A rule may have answered in the meantime, or the turn been stopped.
    let _ = engine.answer_permission(&receipt.turn, &call.id, answer);
    Ok(())
}

/// A question of a server.
struct Asked {
    id: QuestionId,
    server: ServerId,
    question: Question,
}

async fn answer_server(
    engine: &Engine,
    receipt: &SendReceipt,
    sink: &mut impl Sink,
    answerer: Answerer,
    asked: &Asked,
    cancel: &CancellationToken,
) -> Result<(), Problem> {
    let answered = tokio::select! {
        answered = answerer.answer(&asked.server, &asked.question) => answered,
        () = withdrawn(engine, receipt, &asked.id) => {
            let _ = sink.remark("! the server no longer asks; press Enter");
            return Ok(());
        }
        () = cancel.cancelled() => return Ok(()),
    };
    match answered {
        Answered::Stop => engine.cancel_turn(&receipt.turn),
        Answered::Answer(answer, remark) => {
            if let Some(remark) = remark {
                let _ = sink.remark(&remark);
            }
            // It may have been withdrawn in the meantime.
            let _ = engine.answer_question(&receipt.turn, &asked.id, answer);
            Ok(())
        }
    }
}

/// Returns when a question is over without our doing.
async fn withdrawn(engine: &Engine, receipt: &SendReceipt, id: &QuestionId) {
    let Ok(mut events) = engine.attach_turn(&receipt.turn, -1) else { return };
    while let Some(event) = events.next().await {
        if matches!(event.kind, EventKind::QuestionAnswered { question_id, .. } if question_id == *id) {
            return;
        }
    }
}
