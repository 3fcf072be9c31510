//! `lectern models presets`: values of several settings under one name.
//!
//! Invariant: what a preset may hold is decided by the engine.

use clap::{Args, Subcommand};
use lectern_app::Engine;
use lectern_app::view::{GenerationView, PresetView, Problem};
use serde_json::{Value, json};

use super::words::{self, line};
use crate::generation::pairs;
use crate::output::one_line;

/// What to do with presets.
#[derive(Debug, Args)]
pub struct Presets {
    #[command(subcommand)]
    pub what: Option<What>,
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum What {
    /// List them
    List,
    /// Keep values under a name, in place of what it held; `lectern models set MODEL preset=NAME` uses them
    Save {
        /// Its name
        name: String,
        /// Settings as KEY=VALUE
        #[arg(required_unless_present = "from", value_name = "KEY=VALUE")]
        settings: Vec<String>,
        /// Begin with what is set for this model
        #[arg(long, value_name = "MODEL")]
        from: Option<String>,
    },
    /// Forget one
    #[command(visible_alias = "remove")]
    Rm {
        /// Its name
        name: String,
    },
}

/// Does it.
pub fn run(engine: &Engine, asked: Presets) -> Result<(), Problem> {
    match asked.what.unwrap_or(What::List) {
        What::List => show(&engine.generation(None, None)?, asked.json),
        What::Save { name, settings, from } => {
            let mut kept = match from {
                Some(model) => of_model(&engine.generation(Some(&model.as_str().into()), None)?),
                None => serde_json::Map::new(),
            };
            kept.extend(pairs(&settings)?);
            let view = engine.save_preset(&name, &kept)?;
            show(&view, asked.json);
        }
        What::Rm { name } => {
            engine.delete_preset(&name)?;
            if asked.json {
                words::json(&json!({ "removed": name }));
            } else {
                line(&format!("removed {name}"));
            }
        }
    }
    Ok(())
}

/// What is set for a model and could be a conversation's too: a preset may be used for both.
fn of_model(view: &GenerationView) -> serde_json::Map<String, Value> {
    let kept = view.settings.iter().filter(|setting| setting.set_here && setting.per_conversation);
    let named = kept.map(|setting| (setting.key.name(), setting.value.clone()));
    named.filter(|(name, _)| name != "preset").collect()
}

fn show(view: &GenerationView, as_json: bool) {
    if as_json {
        return words::json(&json!({ "presets": view.presets }));
    }
    view.presets.iter().for_each(|preset| line(&in_words(preset)));
}

fn in_words(preset: &PresetView) -> String {
    let values: Vec<String> =
        preset.settings.iter().map(|(name, value)| one_line(&format!("{name}={value}"), 60)).collect();
    let kind = if preset.built_in { "built in" } else { "yours" };
    format!("{:<18} {kind:<9} {}", one_line(&preset.name, 60), values.join(" "))
}
