//! Whatever comes, however it is cut, nothing panics, and the cuts change nothing.

use lectern_cloud::{Provider, decode, recorded};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::recorded::recordings;

/// Lines that nearly are a stream.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let json = prop_oneof![
        Just(r#"{"candidates":[{"content":{"parts":[{"text":"a€"}]}}]}"#.to_owned()),
        Just(r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[3].b","stringValue":"x"}],"willContinue":true}}]}}]}"#.to_owned()),
        Just(r#"{"candidates":[{"finishReason":"STOP","content":null}],"usageMetadata":{"promptTokenCount":4294967296}}"#.to_owned()),
        Just(r#"{"choices":[{"delta":{"tool_calls":[{"index":-7,"id":4,"function":{"arguments":{"a":[]}}}]}}]}"#.to_owned()),
        Just(r#"{"choices":[{"delta":{"content":["x",{"text":"y"}],"reasoning":"z"},"finish_reason":""}]}"#.to_owned()),
        Just(r#"{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{"}}]},"finish_reason":"stop"}]}"#.to_owned()),
        Just(r#"{"error":{"code":-1,"details":[{"@type":3},{"@type":"x.RetryInfo","retryDelay":"-1s"}]}}"#.to_owned()),
        Just("[DONE]".to_owned()),
        Just("[".repeat(3_000)),
        "[{}\\[\\]\",:a-z0-9.e+-]{0,40}",
    ];
    let prefix = prop_oneof![
        Just("data: "),
        Just("data:"),
        Just(""),
        Just(": "),
        Just("event: "),
        Just("\u{feff}data: ")
    ];
    let end = prop_oneof![Just("\n\n"), Just("\r\n\r\n"), Just("\r\r"), Just("\n"), Just("\r"), Just("")];
    prop_oneof![
        8 => (prefix, json, end).prop_map(|(prefix, json, end)| format!("{prefix}{json}{end}").into_bytes()),
        1 => vec(any::<u8>(), 0..40),
    ]
}

fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

fn same(bytes: &[u8], places: &[prop::sample::Index]) {
    for provider in [Provider::Gemini, Provider::OpenAi] {
        let whole = recorded(provider, bytes, 0);
        assert_eq!(decode::pieces(provider, cut(bytes, places).into_iter()), whole);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn near_streams(lines in vec(line(), 0..12), places in vec(any::<prop::sample::Index>(), 0..30)) {
        same(&lines.concat(), &places);
    }

    #[test]
    fn any_bytes(bytes in vec(any::<u8>(), 0..400), places in vec(any::<prop::sample::Index>(), 0..10)) {
        same(&bytes, &places);
    }

    #[test]
    fn recordings_with_holes(
        which in any::<prop::sample::Index>(),
        from in any::<prop::sample::Index>(),
        length in 0usize..60,
        junk in vec(any::<u8>(), 0..20),
        places in vec(any::<prop::sample::Index>(), 0..30),
    ) {
        let all = recordings();
        let mut bytes = all[which.index(all.len())].1.clone();
        let from = from.index(bytes.len() + 1);
        let to = (from + length).min(bytes.len());
        bytes.splice(from..to, junk);
        same(&bytes, &places);
    }
}
