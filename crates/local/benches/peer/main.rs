//! The same model file, in this application and in llama-cpp-python: tokens per second, the wait for the first token,
//! the cost of grammars, what guessing, saved caches and restarts bring.
//!
//! `cargo bench -p lectern-local --bench peer -- [--peer PYTHON --script peer.py] [--models FOLDER]`
//! `LECTERN_BENCH_SIZE` is `1b` (the shape of Llama-3.2-1B in Q4_0, 910 MB) or `small`; `LECTERN_BENCH_ROUNDS` how
//! often each is measured; `LECTERN_BENCH_LOCAL` which parts (`compare`, `quote`, `resting`, `restart`; all of them).
//! Invariant: every figure is measured in this run, the sides one after the other in each round; noise fails nothing.

#![expect(clippy::print_stdout, reason = "it prints its figures")]
#![expect(clippy::expect_used, clippy::unwrap_used, reason = "a benchmark may stop")]

mod other;
mod ours;
mod scenarios;
mod table;

use std::path::{Path, PathBuf};

use lectern_local::{CacheOptions, LocalModel, LocalOptions, Lookup, SpeedOptions};
use lectern_test_gguf::{QUOTED_WORDS, QuotingModel, Size};
use serde_json::json;

use other::{Peer, number};
use scenarios::{Step, Words};
use table::{Line, median};

/// Tokens of context on both sides.
const CONTEXT: u32 = 8192;
/// Tokens of a long conversation.
const LONG: usize = 4000;

struct Setup {
    model: QuotingModel,
    path: PathBuf,
    threads: u32,
    rounds: usize,
    peer: Option<Peer>,
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(run());
}

async fn run() {
    let mut setup = set_up();
    let mut lines = Vec::new();
    let options = |lookup| LocalOptions {
        context: Some(CONTEXT),
        speed: SpeedOptions { lookup, threads: Some(setup.threads), ..SpeedOptions::default() },
        ..LocalOptions::default()
    };
    let (guessing, plain) = (options(Lookup::Auto), options(Lookup::Off));
    if wanted("compare") {
        let model = ours::open(&setup.path, guessing.clone()).await;
        compare(&model, &mut setup, &mut lines).await;
        crash(&model, &setup, &mut lines).await;
        model.unload().await;
    }
    setup.peer = None;
    if wanted("quote") {
        // Both new: a cache that holds other conversations costs a little more for each token.
        let with = ours::open(&setup.path, guessing).await;
        let without = ours::open(&setup.path, plain).await;
        quote(&with, &without, &setup, &mut lines).await;
        with.unload().await;
        without.unload().await;
    }
    if wanted("resting") {
        resting(&setup, &mut lines).await;
    }
    if wanted("restart") {
        restart(&setup, &mut lines).await;
    }
    table::print(&lines, ("Lectern", "other"));
    println!(
        "\nMedians of {} rounds, {} threads. Ratios above 1 are ours. A busy machine moves single figures by a tenth \
         and more; run it again before believing a small difference.",
        setup.rounds, setup.threads
    );
}

fn wanted(part: &str) -> bool {
    std::env::var("LECTERN_BENCH_LOCAL").map_or(true, |parts| parts.split(',').any(|one| one == part))
}

fn set_up() -> Setup {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(PathBuf::from)
    };
    let (size, name) = match std::env::var("LECTERN_BENCH_SIZE").as_deref() {
        Ok("small") => (Size::Small, "bench-small.gguf"),
        Ok(_) | Err(_) => (Size::OneBillion, "bench-1b.gguf"),
    };
    let folder = option("--models").unwrap_or_else(std::env::temp_dir);
    let path = folder.join(name);
    let model = QuotingModel::new(size);
    write_model(&model, &path);
    let rounds =
        std::env::var("LECTERN_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(3);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = u32::try_from(threads).unwrap_or(1);
    let peer = option("--peer")
        .zip(option("--script"))
        .and_then(|(python, script)| start_peer(&python, &script, &path, threads));
    Setup { model, path, threads, rounds, peer }
}

/// Made once; another size of file means another version of the recipe.
fn write_model(model: &QuotingModel, path: &Path) {
    if std::fs::metadata(path).is_ok_and(|meta| meta.len() == model.file_bytes()) {
        return;
    }
    println!("Making {} (random weights in the true shape) …", path.display());
    std::fs::create_dir_all(path.parent().unwrap()).expect("a folder for the model");
    let partial = path.with_extension("part");
    model.write(&partial).expect("room for the benchmark's model");
    std::fs::rename(partial, path).expect("the model in its place");
}

fn start_peer(python: &Path, script: &Path, model: &Path, threads: u32) -> Option<Peer> {
    let mut peer = Peer::start(python, script).ok()?;
    let load = json!({ "do": "load", "model": model, "threads": threads, "context": CONTEXT });
    match peer.ask(&load) {
        Ok(answer) => {
            println!(
                "Beside llama-cpp-python {} (loaded in {:.1} s)",
                answer["version"].as_str().unwrap_or_default(),
                number(&answer, "seconds")
            );
            Some(peer)
        }
        Err(error) => {
            println!("llama-cpp-python cannot be used ({error}): only our side is measured.");
            None
        }
    }
}

/// Pairs of figures, ours and theirs, as they come.
#[derive(Default)]
struct Pairs(Vec<f64>, Vec<f64>);

impl Pairs {
    fn add(&mut self, pair: [Option<f64>; 2]) {
        self.0.extend(pair[0]);
        self.1.extend(pair[1]);
    }

    fn line(self, what: &str, unit: &'static str, more: bool, aim: Option<f64>) -> Line {
        let ours = median(self.0).unwrap_or(f64::NAN);
        Line { what: what.to_owned(), ours, other: median(self.1), unit, more, aim }
    }
}

async fn compare(model: &LocalModel, setup: &mut Setup, lines: &mut Vec<Line>) {
    let [mut prompt, mut reply, mut pasted, mut typed, mut looked_at, mut step, mut found, mut grammar] =
        std::array::from_fn(|_| Pairs::default());
    // The first round warms up: files in memory, threads started.
    for round in 0..=setup.rounds {
        let words = Words { model: &setup.model, round };
        let [one, two] = scenarios::throughput(model, setup.peer.as_mut(), &words).await;
        if round == 0 {
            continue;
        }
        prompt.add(one);
        reply.add(two);
        let turn = scenarios::second_turn(model, setup.peer.as_mut(), &words).await;
        pasted.add([turn.pasted, turn.theirs]);
        typed.add([turn.typed, turn.theirs]);
        looked_at.add([turn.looked_at, turn.theirs]);
        for (pairs, one) in [(&mut step, Step::writes(&words)), (&mut found, Step::searches(&words))] {
            pairs.add(scenarios::second_step(model, setup.peer.as_mut(), &words, &one).await);
        }
        grammar.add(scenarios::grammar(model, setup.peer.as_mut(), &words).await);
        println!("round {round} of {}", setup.rounds);
    }
    lines.push(prompt.line("prompt of 500 tokens", "tok/s", true, Some(1.0)));
    lines.push(reply.line("reply of 64 tokens", "tok/s", true, Some(1.0)));
    // Nothing that is known before can be saved here, so this is not met: both sides read what is new.
    lines.push(pasted.line(
        "second turn, 32 words pasted and sent at once: first token",
        "s",
        false,
        Some(3.0),
    ));
    lines.push(typed.line("second turn, 32 words typed, sent with the last letter", "s", false, Some(3.0)));
    lines.push(looked_at.line("second turn, 32 words typed, sent after a moment", "s", false, Some(3.0)));
    lines.push(step.line("second step, after a call that wrote a note: first token", "s", false, Some(3.0)));
    // Nor here: the result is most of what is new, and both sides read it.
    lines.push(found.line("second step, after a search: first token", "s", false, Some(3.0)));
    lines.push(grammar.line("a token more under a grammar", "ms", false, None));
}

async fn quote(model: &LocalModel, without: &LocalModel, setup: &Setup, lines: &mut Vec<Line>) {
    let mut share = Vec::new();
    for (what, from, aim) in [
        ("quoting a note: with guesses, without", 0, Some(1.5)),
        ("half of it quoted: with guesses, without", QUOTED_WORDS / 2, None),
        ("nothing quoted: with guesses, without", QUOTED_WORDS - 1, None),
    ] {
        let mut pairs = Pairs::default();
        for round in 0..setup.rounds {
            let words = Words { model: &setup.model, round };
            let (with, right) = scenarios::quoting(model, &words, from).await;
            let (plain, _) = scenarios::quoting(without, &words, from).await;
            pairs.add([Some(with), Some(plain)]);
            share.push(right);
        }
        lines.push(pairs.line(what, "tok/s", true, aim));
    }
    if let Some(share) = median(share) {
        println!("{:.0} % of the guessed tokens were right.", share * 100.0);
    }
}

/// Beside conversations that wait in memory, against beside conversations that stay in the cache.
async fn resting(setup: &Setup, lines: &mut Vec<Line>) {
    let mut paces = Vec::new();
    for memory_bytes in [CacheOptions::default().memory_bytes, 0] {
        let cache = CacheOptions { memory_bytes, ..CacheOptions::default() };
        let speed =
            SpeedOptions { lookup: Lookup::Off, threads: Some(setup.threads), ..SpeedOptions::default() };
        let options = LocalOptions { context: Some(CONTEXT), speed, cache, ..LocalOptions::default() };
        let model = ours::open(&setup.path, options).await;
        let words = Words { model: &setup.model, round: 1 };
        paces.push(scenarios::beside_others(&model, &words, setup.rounds).await);
        model.unload().await;
    }
    lines.push(Line {
        what: "a reply while 4,000 tokens of others rest: in memory, in the cache".to_owned(),
        ours: paces[0],
        other: Some(paces[1]),
        unit: "tok/s",
        more: true,
        aim: None,
    });
}

async fn restart(setup: &Setup, lines: &mut Vec<Line>) {
    let folder = tempfile::tempdir().expect("a folder for saved states");
    let open = async |saved: bool| {
        let cache =
            CacheOptions { folder: saved.then(|| folder.path().to_owned()), ..CacheOptions::default() };
        let speed = SpeedOptions { threads: Some(setup.threads), ..SpeedOptions::default() };
        ours::open(
            &setup.path,
            LocalOptions { context: Some(CONTEXT), speed, cache, ..LocalOptions::default() },
        )
        .await
    };
    // Half a minute each without the saved state: once is enough.
    let words = Words { model: &setup.model, round: 1 };
    let [warm, cold] = scenarios::restart(open, &words, LONG).await;
    lines.push(Line {
        what: "restart of a conversation of 4,000 tokens: with its saved state, without".to_owned(),
        ours: warm,
        other: Some(cold),
        unit: "s",
        more: false,
        aim: Some(10.0),
    });
}

async fn crash(model: &LocalModel, setup: &Setup, lines: &mut Vec<Line>) {
    let mut pairs = Pairs::default();
    for round in 0..setup.rounds {
        let words = Words { model: &setup.model, round };
        pairs.add([Some(scenarios::after_crash(model, &words).await), None]);
    }
    lines.push(pairs.line("after a crash: spawn, load, first token", "s", false, None));
}
