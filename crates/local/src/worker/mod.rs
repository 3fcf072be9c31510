//! The worker: a child process of the application's own executable, in which llama.cpp runs.
//!
//! llama.cpp aborts the process on some inputs and hangs on others; here that costs one reply. The worker ends
//! when its standard input does, so it never outlives the application. (Linux could also send a signal when the
//! parent dies, but it counts the parent's thread as the parent, and threads come and go.)
//! Invariant: one job at a time, on the main thread; the reading thread only queues and cancels.

mod advance;
mod ahead;
mod asked;
mod backends;
mod calls;
mod cells;
mod constraint;
mod continuity;
mod draft;
mod guess;
mod guesser;
mod history;
mod images;
mod keep;
mod loading;
mod measure;
mod output;
mod own;
mod pauses;
mod pieces;
mod placed;
#[cfg(test)]
mod prefixes;
mod prompt;
mod protect;
mod reply;
pub(crate) mod schemas;
#[cfg(test)]
mod scripted;
mod session;
mod sight;
mod slots;
mod sources;
mod switches;
mod text;
mod threads;
mod told;
mod trust;
mod verbatim;
mod writer;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use llama_cpp_2::llama_backend::LlamaBackend;

use crate::native::{Templates, capture_log};
use crate::parse::parse_with;
use crate::protocol::{Event, Generate, Load, Misbehaviour, Parse, Request, TemplateSource, WorkerError};
pub(crate) use backends::AVOID_VARIABLE;
#[cfg(test)]
pub(crate) use calls::writing;
use draft::{Draft, load_draft};
use guesser::Guesser;
use loading::{load_model, with_log};
use output::{Abort, Output, exit_now, read_requests};
pub(crate) use own::GUESSES as OWN_GUESSES;
use session::Session;
pub(crate) use session::{BATCH, CHUNK, SEQUENCES};
pub(crate) use sight::WHOLE_IMAGE;
use sight::load_sight;
pub(crate) use slots::CHECKPOINTS;

/// Set to allow requests that make the worker misbehave.
pub(crate) const MISBEHAVE_VARIABLE: &str = "LECTERN_WORKER_MISBEHAVE";

/// What a template is tried with.
const SAID: &str = "Hello there";

static ABORT: Abort = Abort::new();
/// Set by tests of recovery.
static ABORT_IN_LOAD: AtomicBool = AtomicBool::new(false);

/// What an executable does when it was started as a worker.
pub fn worker_main() -> ExitCode {
    give_back_at_once();
    threads::look_at_others();
    let Ok(output) = Output::take_stdout() else { return ExitCode::FAILURE };
    let (sender, requests) = channel();
    std::thread::spawn(move || read_requests(sender, &ABORT));
    capture_log();
    backends::load(&output);
    let Ok(backend) = LlamaBackend::init() else { return ExitCode::FAILURE };
    capture_log();
    let output = Arc::new(output);
    let mut next = requests.recv().ok();
    while let Some(request) = next {
        next = match request {
            Request::Load(load) => run_model(&load, &backend, &requests, &output),
            other => {
                answer(other, None, &output);
                requests.recv().ok()
            }
        };
    }
    exit_now()
}

/// Large buffers are the system's again as soon as they are freed. glibc would keep those of up to 32 MB after the first one
/// is freed (`mallopt(3)`, `M_MMAP_THRESHOLD`), and copies of states leave holes of other sizes than the next ones have.
fn give_back_at_once() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a function without conditions, called before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// Loads a model and serves it until another is asked for.
fn run_model(
    load: &Load,
    backend: &LlamaBackend,
    requests: &Receiver<Request>,
    output: &Arc<Output>,
) -> Option<Request> {
    ABORT.begin(load.job);
    if ABORT_IN_LOAD.load(Ordering::Relaxed) {
        std::process::abort();
    }
    let (model, notes) = match load_model(load, backend, output) {
        Ok(loaded) => loaded,
        Err(error) => {
            output.send(&Event::Failed { job: load.job, error });
            return requests.recv().ok();
        }
    };
    if let Err(error) = session::check(&model, load) {
        output.send(&Event::Failed { job: load.job, error });
        return requests.recv().ok();
    }
    let draft = match load_draft(load, &model, backend) {
        Ok(draft) => draft,
        Err(error) => {
            output.send(&Event::Failed { job: load.job, error });
            return requests.recv().ok();
        }
    };
    let sight = match load_sight(load, &model, backend) {
        Ok(sight) => sight,
        Err(error) => {
            output.send(&Event::Failed { job: load.job, error });
            return requests.recv().ok();
        }
    };
    let mut session = match Session::new(&model, sight, load, &ABORT, output) {
        Ok(session) => session,
        Err(error) => {
            let error = WorkerError::Load { reason: with_log(&error.to_string()) };
            output.send(&Event::Failed { job: load.job, error });
            return requests.recv().ok();
        }
    };
    if let Some(draft) = &draft {
        match Draft::new(draft, load, ABORT.flag()) {
            Ok(draft) => session.guesser = Guesser::Draft(draft),
            Err(error) => {
                output.send(&Event::Failed { job: load.job, error });
                return requests.recv().ok();
            }
        }
    }
    output.send(&Event::Loaded { job: load.job, context: session.context_size(), notes });
    let next = serve(&mut session, requests, output);
    session.save_all();
    next
}

/// Answers until another model is asked for or the application goes. While nothing is asked, states are saved.
fn serve(session: &mut Session<'_>, requests: &Receiver<Request>, output: &Output) -> Option<Request> {
    loop {
        let request = match session.rest() {
            Some(rest) => match requests.recv_timeout(rest) {
                Ok(request) => request,
                Err(RecvTimeoutError::Timeout) => {
                    session.save_one();
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            },
            None => requests.recv().ok()?,
        };
        match request {
            Request::Load(_) => return Some(request),
            other => answer(other, Some(session), output),
        }
    }
}

fn answer(request: Request, session: Option<&mut Session<'_>>, output: &Output) {
    let (job, result) = match request {
        Request::Generate(generate) => {
            ABORT.begin(generate.job);
            let result = match session {
                Some(session) => session.reply(&generate, output).map(|done| Event::Done(Box::new(done))),
                None => Err(no_model()),
            };
            (generate.job, result)
        }
        Request::Describe { job, template } => (job, describe(job, &template, session)),
        Request::Parse(parse) => (parse.job, parse_text(&parse, session)),
        Request::Tokenize { job, text } => (job, tokenize(job, &text, session)),
        Request::Devices { job } => (job, Ok(Event::Devices { job, devices: measure::devices() })),
        Request::Bench { job, millis } => {
            ABORT.begin(job);
            let measured = session.ok_or_else(no_model).and_then(|session| measure::bench(&*session, millis));
            (job, measured.map(|measure| Event::Measured { job, measure }))
        }
        Request::Misbehave { job, how } => (job, misbehave(job, how, session)),
        Request::ReadAhead { job, one, other } => {
            ABORT.begin(job);
            (job, ahead::read_ahead(&one, &other, session))
        }
        Request::Count(generate) => (generate.job, tokens_of(&generate, session)),
        Request::Forget { job, conversation } => {
            // Without a model there is nothing here; files are deleted by the application too.
            if let Some(session) = session {
                session.forget(conversation.as_deref());
            }
            (job, Ok(Event::Forgotten { job }))
        }
        // Loading and cancelling are dealt with before.
        Request::Load(load) => (load.job, Err(no_model())),
        Request::Cancel { job } => (job, Err(no_model())),
    };
    output.send(&result.unwrap_or_else(|error| Event::Failed { job, error }));
}

fn no_model() -> WorkerError {
    WorkerError::Refused { reason: "no model is loaded".to_owned() }
}

fn refused(error: crate::native::NativeError) -> WorkerError {
    WorkerError::Refused { reason: error.0 }
}

fn with_templates<T>(
    source: &TemplateSource,
    session: Option<&mut Session<'_>>,
    work: impl FnOnce(&Templates) -> Result<T, WorkerError>,
) -> Result<T, WorkerError> {
    match (source, session) {
        (TemplateSource::Text(text), _) => work(&Templates::of_text(text, "", "").map_err(refused)?),
        (TemplateSource::Loaded, Some(session)) => work(&session.renderer.templates),
        (TemplateSource::Loaded, None) => Err(no_model()),
    }
}

fn describe(
    job: u64,
    source: &TemplateSource,
    session: Option<&mut Session<'_>>,
) -> Result<Event, WorkerError> {
    with_templates(source, session, |templates| {
        let probe = serde_json::json!({ "messages": [{ "role": "user", "content": SAID }] });
        let (applied, _) = templates.apply(&probe).map_err(refused)?;
        Ok(Event::Described {
            job,
            tools: templates.knows_tools(),
            parallel: templates.knows_parallel_calls(),
            thinking: !applied.thinking_start_tag.is_empty(),
            says: applied.prompt.contains(SAID),
            writing: calls::writing(templates),
        })
    })
}

fn parse_text(parse: &Parse, session: Option<&mut Session<'_>>) -> Result<Event, WorkerError> {
    with_templates(&parse.template, session, |templates| {
        let message = parse_with(templates, &parse.tools, &parse.text, parse.partial).map_err(refused)?;
        Ok(Event::Parsed { job: parse.job, message })
    })
}

fn tokenize(job: u64, text: &str, session: Option<&mut Session<'_>>) -> Result<Event, WorkerError> {
    let session = session.ok_or_else(no_model)?;
    Ok(Event::Tokens { job, tokens: session.typed_tokens(text) })
}

fn tokens_of(request: &Generate, session: Option<&mut Session<'_>>) -> Result<Event, WorkerError> {
    let session = session.ok_or_else(no_model)?;
    Ok(Event::Counted { job: request.job, tokens: session.count_prompt(request)? })
}

fn misbehave(job: u64, how: Misbehaviour, session: Option<&mut Session<'_>>) -> Result<Event, WorkerError> {
    if std::env::var_os(MISBEHAVE_VARIABLE).is_none() {
        return Err(WorkerError::Refused { reason: "not in a test".to_owned() });
    }
    match (how, session) {
        (Misbehaviour::Abort, _) => std::process::abort(),
        (Misbehaviour::Print, _) => print_noise(),
        (Misbehaviour::AbortInLoad, _) => ABORT_IN_LOAD.store(true, Ordering::Relaxed),
        (Misbehaviour::AbortInReply | Misbehaviour::HangInReply, Some(session)) => {
            session.misbehaviour = Some(how);
        }
        (Misbehaviour::AbortInReply | Misbehaviour::HangInReply, None) => return Err(no_model()),
    }
    Ok(Event::Tokens { job, tokens: Vec::new() })
}

#[expect(clippy::print_stdout, reason = "a test of what libraries do")]
fn print_noise() {
    println!("{{\"event\":\"done\"}} noise of a library");
}
