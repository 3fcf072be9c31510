//! Bodies of this provider.
#![no_main]

mod common;

libfuzzer_sys::fuzz_target!(|input: &[u8]| common::read(lectern_cloud::Provider::Gemini, input));
