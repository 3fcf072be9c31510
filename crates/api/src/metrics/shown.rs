//! The counts as a window shows them, read from the same registry.

use std::collections::BTreeMap;

use lectern_app::view::{
    AddressNumbers, ErrorNumbers, MetricsView, TimeRange, TimesView, TokenNumbers, ToolNumbers,
};
use prometheus::core::Collector;
use prometheus::proto::{Histogram, Metric};

use super::Metrics;

/// Addresses at which models answer.
const ANSWERS: [&str; 2] = ["/v1/chat/completions", "/api/chat/completions"];

impl Metrics {
    /// All numbers.
    pub fn view(&self) -> MetricsView {
        let addresses = self.addresses();
        let answers = addresses.iter().filter(|one| ANSWERS.contains(&one.address.as_str()));
        MetricsView {
            since: self.since,
            requests: addresses.iter().map(|one| one.requests).sum(),
            running: u64::try_from(self.running.get()).unwrap_or_default(),
            answers: self.answers.get(),
            answers_with_tools: self.with_tools.get(),
            first_token: metrics(&self.first_token).first().map(times).unwrap_or_default(),
            answer: answers.fold(TimesView::default(), |sum, one| together(sum, &one.time)),
            tools: self.tool_numbers(),
            tokens: self.token_numbers(),
            errors: self.error_numbers(),
            addresses,
        }
    }

    fn addresses(&self) -> Vec<AddressNumbers> {
        let mut all: BTreeMap<String, AddressNumbers> = BTreeMap::new();
        for metric in metrics(&self.requests) {
            let address = label(&metric, "path");
            let one = all.entry(address.clone()).or_insert_with(|| AddressNumbers {
                address,
                requests: 0,
                refused: 0,
                time: TimesView::default(),
            });
            one.requests += count(&metric);
            // Statuses have three digits.
            if label(&metric, "status").as_str() >= "400" {
                one.refused += count(&metric);
            }
        }
        for metric in metrics(&self.request_time) {
            if let Some(one) = all.get_mut(&label(&metric, "path")) {
                one.time = times(&metric);
            }
        }
        all.into_values().collect()
    }

    fn tool_numbers(&self) -> Vec<ToolNumbers> {
        let mut all: BTreeMap<String, ToolNumbers> = BTreeMap::new();
        for metric in metrics(&self.tool_calls) {
            let tool = label(&metric, "tool");
            let one = all.entry(tool.clone()).or_insert_with(|| ToolNumbers {
                tool,
                calls: 0,
                failed: 0,
                denied: 0,
                cancelled: 0,
                time: TimesView::default(),
            });
            let calls = count(&metric);
            one.calls += calls;
            match label(&metric, "outcome").as_str() {
                "failed" => one.failed += calls,
                "denied" => one.denied += calls,
                "cancelled" => one.cancelled += calls,
                _ => {}
            }
        }
        for metric in metrics(&self.tool_time) {
            if let Some(one) = all.get_mut(&label(&metric, "tool")) {
                one.time = times(&metric);
            }
        }
        let mut all: Vec<ToolNumbers> = all.into_values().collect();
        all.sort_by_key(|one| std::cmp::Reverse(one.calls));
        all
    }

    fn token_numbers(&self) -> TokenNumbers {
        let mut numbers = TokenNumbers::default();
        for metric in metrics(&self.tokens) {
            match label(&metric, "kind").as_str() {
                "prompt" => numbers.prompt = count(&metric),
                "reused" => numbers.reused = count(&metric),
                "written" => numbers.written = count(&metric),
                _ => {}
            }
        }
        numbers
    }

    fn error_numbers(&self) -> Vec<ErrorNumbers> {
        let one = |metric: &Metric| ErrorNumbers { code: label(metric, "code"), count: count(metric) };
        let mut all: Vec<ErrorNumbers> = metrics(&self.errors).iter().map(one).collect();
        all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.code.cmp(&b.code)));
        all
    }
}

fn metrics(collector: &impl Collector) -> Vec<Metric> {
    collector.collect().into_iter().flat_map(|mut family| family.take_metric()).collect()
}

fn label(metric: &Metric, name: &str) -> String {
    let found = metric.get_label().iter().find(|label| label.name() == name);
    found.map(|label| label.value().to_owned()).unwrap_or_default()
}

fn count(metric: &Metric) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and never negative")]
    let count = metric.get_counter().get_value() as u64;
    count
}

fn times(metric: &Metric) -> TimesView {
    let times: &Histogram = metric.get_histogram();
    let mut below = 0;
    let mut ranges: Vec<TimeRange> = Vec::new();
    for bucket in times.get_bucket() {
        let all = bucket.cumulative_count();
        ranges.push(TimeRange { up_to: Some(bucket.upper_bound()), count: all.saturating_sub(below) });
        below = all;
    }
    let longer = times.get_sample_count().saturating_sub(below);
    ranges.push(TimeRange { up_to: None, count: longer });
    TimesView { count: times.get_sample_count(), seconds: times.get_sample_sum(), ranges }
}

/// The same ranges, counted together.
fn together(sum: TimesView, other: &TimesView) -> TimesView {
    if sum.ranges.is_empty() {
        return other.clone();
    }
    let ranges = sum.ranges.iter().zip(&other.ranges);
    TimesView {
        count: sum.count + other.count,
        seconds: sum.seconds + other.seconds,
        ranges: ranges.map(|(one, two)| TimeRange { count: one.count + two.count, ..*one }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lectern_core::ToolOutcome;

    use super::*;

    #[test]
    fn what_was_counted_is_shown_and_names_do_not_pile_up() {
        let metrics = Metrics::new().unwrap();
        for number in 0..300 {
            let ran = Some(Duration::from_millis(20));
            metrics.tool(Some(&format!("t{number}")), ToolOutcome::Succeeded, ran);
        }
        metrics.tool(Some("t1"), ToolOutcome::Failed, None);
        metrics.tool(None, ToolOutcome::Denied, None);
        metrics.error("model_not_found");
        let view = metrics.view();
        assert_eq!(view.tools.len(), 201);
        let other = &view.tools[0];
        assert_eq!(
            (other.tool.as_str(), other.calls, other.denied, other.time.count),
            ("other", 101, 1, 100)
        );
        let failed = &view.tools[1];
        assert_eq!((failed.tool.as_str(), failed.calls, failed.failed), ("t1", 2, 1));
        let in_range: Vec<(Option<f64>, u64)> =
            failed.time.ranges.iter().map(|r| (r.up_to, r.count)).collect();
        assert_eq!(in_range[1], (Some(0.03), 1));
        assert_eq!(in_range.last(), Some(&(None, 0)));
        assert_eq!(view.errors, [ErrorNumbers { code: "model_not_found".to_owned(), count: 1 }]);
    }
}
