//! `lectern models`: list, inspect, add, remove, choose.

use std::path::Path;

use lectern_app::view::{ModelView, Problem};
use lectern_app::{Engine, EngineOptions, Home};
use serde_json::{Value, json};

use crate::args::Models;
use crate::exit::Exit;
use crate::output::{data, printable};

/// Does what was asked.
pub async fn run(home: impl Fn() -> Result<Home, Problem>, models: Models) -> Result<Exit, Problem> {
    let engine = Engine::open(home()?, EngineOptions { without_servers: true, ..EngineOptions::default() })?;
    let done = act(&engine, models).await;
    engine.shutdown().await;
    done
}

async fn act(engine: &Engine, models: Models) -> Result<Exit, Problem> {
    match models {
        Models::List { json } => list(engine, json),
        Models::Inspect { path, json } => inspect(engine, &path, json).await?,
        Models::Add { path, json } => {
            let model = engine.add_model(&path)?;
            if json { value(&model)? } else { data(&format!("added {}", line(&model))) }
        }
        Models::Rm { id } => {
            engine.remove_model(&id.as_str().into()).await?;
            data(&format!("removed {id}; its file stays"))
        }
        Models::Use { id } => {
            engine.select_model(&id.as_str().into())?;
            data(&format!("{id} answers from now on"))
        }
    };
    Ok(Exit::Done)
}

fn list(engine: &Engine, as_json: bool) -> bool {
    let (chosen, models) = (engine.model(), engine.models());
    if as_json {
        return data(&json!({"model": chosen, "models": models}).to_string());
    }
    models.iter().all(|model| {
        let mark = if model.id == chosen { '*' } else { ' ' };
        let problem = model.problem.as_ref().map(|problem| format!("\n    {}", printable(&problem.message)));
        data(&format!("{mark} {}{}", line(model), problem.unwrap_or_default()))
    })
}

async fn inspect(engine: &Engine, path: &Path, as_json: bool) -> Result<bool, Problem> {
    let info = engine.inspect_model(path).await?;
    if as_json {
        return Ok(data(&info.to_string()));
    }
    let fields = info.as_object().into_iter().flatten();
    Ok(fields.into_iter().all(|(name, value)| {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        data(&format!("{:16} {}", name.replace('_', " "), printable(&value)))
    }))
}

/// E.g. `starter  Lectern Starter  llama, 1.4 M weights, F16, 2.8 MB, 4096 tokens`.
fn line(model: &ModelView) -> String {
    let facts = [
        model.architecture.clone(),
        model.parameters.map(|count| format!("{} weights", scaled(count))),
        model.quantisation.clone(),
        model.size.map(|bytes| format!("{}B", scaled(bytes))),
        model.context_length.map(|tokens| format!("{tokens} tokens")),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    let kind = if model.starter { "  (built in; a very small model)" } else { "" };
    printable(&format!("{}  {}  {}{kind}", model.id, model.name, facts.join(", ")))
}

fn scaled(count: u64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let size = count as f64;
    match units.iter().find(|(unit, _)| size >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", size / unit),
        None => format!("{count} "),
    }
}

fn value(model: &ModelView) -> Result<bool, Problem> {
    let text = serde_json::to_string(model).map_err(|error| Problem::new("defect", error.to_string()))?;
    Ok(data(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short() {
        assert_eq!(scaled(1_403_136), "1.4 M");
        assert_eq!(scaled(8_030_261_312), "8.0 G");
        assert_eq!(scaled(12), "12 ");
    }
}
