//! Values of several settings under one name.

use serde_json::{Map, Value, json};

use crate::view::PresetView;

/// The presets that come with Lectern.
pub fn built_in() -> Vec<PresetView> {
    let preset = |name: &str, settings: Value| PresetView {
        name: name.to_owned(),
        built_in: true,
        settings: settings.as_object().cloned().unwrap_or_default(),
    };
    vec![
        // For looking things up: nearly the likeliest word each time.
        preset("precise", json!({"temperature": 0.1, "top_p": 0.9, "top_k": 20, "min_p": 0.05})),
        preset("balanced", json!({"temperature": 0.7, "top_p": 0.95, "top_k": 40, "min_p": 0.05})),
        preset(
            "creative",
            json!({"temperature": 1.1, "top_p": 1.0, "top_k": 0, "min_p": 0.03, "presence_penalty": 0.3}),
        ),
    ]
}

/// All presets, the user's own behind. A built-in name can't be taken.
pub fn all(own: &Map<String, Value>) -> Vec<PresetView> {
    let mut presets = built_in();
    for (name, settings) in own {
        if let Value::Object(settings) = settings
            && !presets.iter().any(|preset| preset.name == *name)
        {
            presets.push(PresetView { name: name.clone(), built_in: false, settings: settings.clone() });
        }
    }
    presets
}
