//! Looking: the list, a file, this machine, advice.

use std::path::{Path, PathBuf};

use lectern_app::Engine;
use lectern_app::units::bytes;
use lectern_app::view::{AdviceView, CuratedView, Problem};
use lectern_core::ToolMode;
use serde_json::{Value, json};

use super::words::{self, line};
use crate::output::{data, printable};

/// The list, with what is new in the folders.
pub async fn list(engine: &Engine, as_json: bool) -> Result<(), Problem> {
    engine.scan_model_folders().await?;
    let (chosen, models) = (engine.model(), engine.models());
    if as_json {
        words::json(&json!({"model": chosen, "models": models}));
        return Ok(());
    }
    for model in models {
        let mark = if model.id == chosen { '*' } else { ' ' };
        line(&format!("{mark} {}", words::model(&model)));
        if let Some(problem) = &model.problem {
            line(&format!("    {}", problem.message));
        }
    }
    Ok(())
}

/// What a file says of itself, and whether it suits this machine.
pub async fn inspect(
    engine: &Engine,
    path: &Path,
    context: Option<u32>,
    as_json: bool,
) -> Result<(), Problem> {
    let path = file_of(engine, path).await?;
    let mut info = engine.inspect_model(&path).await?;
    let details = engine.model_details(&path, context).await?;
    if as_json {
        if let Some(fields) = info.as_object_mut() {
            let value = |view: Option<Value>| view.unwrap_or(Value::Null);
            fields.insert("size".into(), details.size.into());
            fields.insert("parts".into(), details.parts.into());
            fields.insert("advice".into(), value(serde_json::to_value(&details.advice).ok()));
            fields.insert("bench".into(), value(serde_json::to_value(&details.bench).ok()));
        }
        data(&info.to_string());
        return Ok(());
    }
    let tools = match details.tool_mode {
        ToolMode::Native => "known to its template",
        ToolMode::Prompted => "described in the prompt",
        ToolMode::Off => "off",
    };
    let facts = [
        ("name", details.name),
        ("file", details.path),
        ("size", format!("{} in {} file{}", bytes(details.size), details.parts, plural(details.parts))),
        ("architecture", details.architecture),
        ("weights", words::scaled(details.parameters)),
        ("quantisation", details.quantisation),
        ("context", format!("{} tokens", details.context_length)),
        ("tools", tools.to_owned()),
        ("parallel calls", yes(details.parallel_calls)),
        ("thinking", yes(details.thinking)),
        ("template", details.template_error.unwrap_or_else(|| yes(details.has_template))),
    ];
    for (name, value) in facts {
        line(&format!("{name:16} {value}"));
    }
    details.advice.iter().flat_map(words::advice).for_each(|text| line(&text));
    Ok(())
}

/// Five seconds.
pub async fn bench(engine: &Engine, model: Option<String>, as_json: bool) -> Result<(), Problem> {
    let bench = match model {
        Some(text) => engine.bench_named(&text).await?,
        None => engine.bench_model(&engine.model()).await?,
    };
    if as_json {
        words::json(&bench);
        return Ok(());
    }
    line(&format!(
        "{}: reads {:.1} and writes {:.1} tokens per second ({} and {} tokens, {} thread{}, loaded in {:.1} s)",
        bench.model,
        bench.prompt_tokens_per_second,
        bench.generation_tokens_per_second,
        bench.prompt_tokens,
        bench.generated_tokens,
        bench.threads,
        plural(bench.threads),
        bench.load_ms as f64 / 1000.0
    ));
    Ok(())
}

/// Whether something suits this machine.
pub async fn advise(
    engine: &Engine,
    what: Option<String>,
    context: Option<u32>,
    as_json: bool,
) -> Result<(), Problem> {
    let Some(what) = what else { return curated(engine, as_json).await };
    let advised: Vec<(String, AdviceView)> = engine.advise(&what, context).await?;
    if as_json {
        let entries = advised.iter().map(|(name, advice)| json!({"name": name, "advice": advice}));
        words::json(&json!({"target": what, "advice": entries.collect::<Vec<_>>()}));
        return Ok(());
    }
    if let [(name, advice)] = &advised[..] {
        line(name);
        words::advice(advice).iter().for_each(|text| line(text));
        return Ok(());
    }
    for (name, advice) in &advised {
        let pace = words::pace(advice).map(|pace| format!(", {pace}")).unwrap_or_default();
        let need = bytes(advice.need.total);
        line(&format!("{:8} {name}  (about {need} of memory{pace})", words::verdict(advice.verdict)));
    }
    Ok(())
}

/// The curated list.
pub async fn curated(engine: &Engine, as_json: bool) -> Result<(), Problem> {
    engine.hardware().await?;
    let models: Vec<CuratedView> = engine.curated().await?;
    if as_json {
        words::json(&json!({"models": models}));
        return Ok(());
    }
    for model in models {
        let advice = model.advice.as_ref();
        let fits = advice.map(|advice| words::verdict(advice.verdict)).unwrap_or_default();
        let pace = advice.and_then(words::pace).map(|pace| format!(", {pace}")).unwrap_or_default();
        let here = model.model.as_ref().map(|id| format!(", here as {id}")).unwrap_or_default();
        line(&format!("{} ({}, {fits}{pace}{here})", model.title, bytes(model.size)));
        line(&format!("    {} {}", model.note, licence(&model)));
        line(&format!("    lectern models download {} --file {}", model.repository, model.file));
    }
    Ok(())
}

fn licence(model: &CuratedView) -> String {
    format!("{}; {}.", model.licence, model.languages.join(", "))
}

/// This machine.
pub async fn hardware(engine: &Engine, as_json: bool) -> Result<(), Problem> {
    let found = engine.hardware().await?;
    if as_json {
        words::json(&found);
        return Ok(());
    }
    let cores = match found.physical_cores {
        Some(physical) => format!("{physical} cores, {} threads", found.logical_cores),
        None => format!("{} threads", found.logical_cores),
    };
    let limit = found.memory_limit.map(|limit| format!(", limited to {}", bytes(limit))).unwrap_or_default();
    line(&format!("processor        {} ({cores})", found.processor));
    line(&format!("instructions     {}", found.instruction_sets.join(", ")));
    line(&format!(
        "memory           {} ({} free now{limit})",
        bytes(found.memory_total),
        bytes(found.memory_available)
    ));
    for device in &found.devices {
        let memory = bytes(device.memory_total);
        line(&format!("device           {}: {}, {memory}", device.name, device.description));
    }
    if let Some(problem) = &found.devices_problem {
        line(&format!("devices          not known: {}", problem.message));
    }
    line(&match found.weights_per_second {
        Some(speed) => format!("speed            {} of weights per second, by tests", bytes(speed)),
        None => "speed            not known before a test: lectern models bench".to_owned(),
    });
    Ok(())
}

/// A file, or that of a model of the list.
async fn file_of(engine: &Engine, named: &Path) -> Result<PathBuf, Problem> {
    let id = named.to_str().unwrap_or_default();
    match engine.models().into_iter().find(|model| model.id.as_str() == id) {
        Some(model) => engine.model_file(&model.id).await,
        None => Ok(named.to_owned()),
    }
}

fn yes(is: bool) -> String {
    printable(if is { "yes" } else { "no" })
}

fn plural(count: u32) -> &'static str {
    if count == 1 { "" } else { "s" }
}
