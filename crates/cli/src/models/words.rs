//! Models and advice in words.
//!
//! Invariant: pure; what comes from files and servers is made printable by whoever prints.

use lectern_app::units::{bytes, time};
use lectern_app::view::{AdviceView, DownloadView, ModelView, SpeedSource, Verdict};
use serde::Serialize;

use crate::output::{data, printable};

/// Prints a view as one line of JSON.
pub fn json(view: &impl Serialize) {
    // Views have no maps with other keys than texts, so this can't fail.
    data(&serde_json::to_string(view).unwrap_or_default());
}

/// Prints a line for people.
pub fn line(text: &str) {
    data(&printable(text));
}

/// E.g. `starter  Lectern Starter  llama, 1.4 M weights, F16, 2.8 MB, 4096 tokens`.
pub fn model(model: &ModelView) -> String {
    let facts = [
        model.architecture.clone(),
        model.parameters.map(|count| format!("{} weights", scaled(count))),
        model.quantisation.clone(),
        model.size.map(bytes),
        model.context_length.map(|tokens| format!("{tokens} tokens")),
        model.advice.as_ref().map(|advice| verdict(advice.verdict).to_owned()),
        model.advice.as_ref().and_then(pace),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    if let Some(remote) = &model.remote {
        let length = model.context_length.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
        let leaves = if remote.leaves_machine { "leaves this computer" } else { "on this computer" };
        let (name, provider) = (&model.name, &remote.provider_name);
        return format!(
            "{}  {name}  {} at {provider}, {}{length} ({leaves})",
            model.id, remote.model, remote.host
        );
    }
    let kind = if model.starter { "  (built in; a very small model)" } else { "" };
    format!("{}  {}  {}{kind}", model.id, model.name, facts.join(", "))
}

/// In a word or two.
pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Fits => "fits",
        Verdict::Tight => "tight",
        Verdict::TooBig => "too big",
    }
}

/// E.g. `about 12 tokens/s`.
pub fn pace(advice: &AdviceView) -> Option<String> {
    advice.speed.map(|speed| match speed.source {
        SpeedSource::Measured => format!("{:.1} tokens/s", speed.generation),
        SpeedSource::Estimated => format!("about {:.1} tokens/s", speed.generation),
    })
}

/// Advice, a line for each reason.
pub fn advice(advice: &AdviceView) -> Vec<String> {
    let need = &advice.need;
    let guessed = if need.guessed { "about " } else { "" };
    let mut lines = vec![
        format!("verdict          {}", verdict(advice.verdict)),
        format!(
            "memory           {guessed}{} with {} tokens of context: weights {}, conversation {}, computing {}",
            bytes(need.total),
            advice.context,
            bytes(need.weights),
            bytes(need.kv),
            bytes(need.compute)
        ),
    ];
    if let Some(context) = advice.suggested_context {
        lines.push(format!("good context     {context} tokens"));
    }
    lines.extend(pace(advice).map(|pace| format!("speed            {pace}")));
    lines.extend(advice.reasons.iter().map(|reason| format!("                 {}", reason.message)));
    lines
}

/// E.g. `1.2 GB of 2.5 GB, 48 %, 8.1 MB/s, 2 min left`.
pub fn progress(download: &DownloadView) -> String {
    let mut parts = vec![match download.total {
        Some(total) => format!("{} of {}", bytes(download.done), bytes(total)),
        None => bytes(download.done),
    }];
    parts.extend(percent(download).map(|percent| format!("{percent} %")));
    parts.extend(download.bytes_per_second.map(|speed| format!("{}/s", bytes(speed))));
    let left = download.seconds_left.map(std::time::Duration::from_secs);
    parts.extend(left.map(|left| format!("{} left", time(left))));
    parts.join(", ")
}

/// How much is here, of a hundred.
pub fn percent(download: &DownloadView) -> Option<u64> {
    let total = download.total.filter(|total| *total > 0)?;
    Some((u128::from(download.done) * 100 / u128::from(total)) as u64)
}

/// E.g. `1.4 M`.
pub fn scaled(count: u64) -> String {
    let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let size = count as f64;
    match units.iter().find(|(unit, _)| size >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", size / unit),
        None => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use lectern_app::view::DownloadState;

    use super::*;

    #[test]
    fn counts_are_short() {
        assert_eq!(scaled(1_403_136), "1.4 M");
        assert_eq!(scaled(8_030_261_312), "8.0 G");
        assert_eq!(scaled(12), "12");
    }

    #[test]
    fn progress_is_one_line() {
        let mut download = DownloadView {
            id: "a".into(),
            name: "m.gguf".into(),
            path: "/m.gguf".into(),
            target: "o/r".into(),
            host: "h".into(),
            done: 1_200_000_000,
            total: Some(2_500_000_000),
            bytes_per_second: Some(8_100_000),
            seconds_left: Some(160),
            state: DownloadState::Running,
            notice: None,
        };
        assert_eq!(progress(&download), "1.2 GB of 2.5 GB, 48 %, 8.1 MB/s, 3 min left");
        download.total = Some(0);
        (download.bytes_per_second, download.seconds_left) = (None, None);
        assert_eq!(progress(&download), "1.2 GB of 0 bytes");
    }
}
