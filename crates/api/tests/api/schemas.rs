//! OpenAI's public schemas, which every body of `/v1` is held to.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

macro_rules! schema {
    ($name:ident, $file:literal) => {
        static $name: LazyLock<Validator> = LazyLock::new(|| {
            let schema: Value = serde_json::from_str(include_str!($file)).unwrap();
            jsonschema::validator_for(&schema).unwrap()
        });
    };
}

schema!(COMPLETION, "../schemas/chat_completion.schema.json");
schema!(CHUNK, "../schemas/chat_completion_chunk.schema.json");
schema!(ERROR, "../schemas/error.schema.json");
schema!(MODEL, "../schemas/model.schema.json");
schema!(MODELS, "../schemas/model_list.schema.json");

fn hold(validator: &Validator, value: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{} at {}", error, error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:?} in {value:#}");
}

pub fn completion(value: &Value) {
    hold(&COMPLETION, value);
}

pub fn chunk(value: &Value) {
    hold(&CHUNK, value);
}

pub fn error(value: &Value) {
    hold(&ERROR, value);
}

pub fn model(value: &Value) {
    hold(&MODEL, value);
}

pub fn models(value: &Value) {
    hold(&MODELS, value);
}
