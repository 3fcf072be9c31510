//! Schemas of tools: what comes out has keywords of the subset only, and comes to an end.
#![no_main]

use serde_json::Value;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let Ok(schema) = serde_json::from_slice::<Value>(input) else { return };
    if let Ok(reduced) = lectern_cloud::gemini::reduce(&schema)
        && let Some(schema) = reduced.schema
    {
        assert_eq!(schema["type"], "OBJECT");
        assert!(schema["properties"].as_object().is_some_and(|all| !all.is_empty()));
    }
});
