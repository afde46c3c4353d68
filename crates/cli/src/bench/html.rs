//! The record as a page that needs nothing else: a chart of all queries and the table under it, for light and dark screens.

use crate::format::grid::thousands;

use super::{
    record::{LIMIT, OWN, OWN_CPU, Record},
    table,
};

/// Colours of the contenders in order: ours first, the loops grey; chosen to be told apart on white and on black.
const COLORS: [&str; 7] = ["#e4572e", "#f3a712", "#4c8bf5", "#2e9e6b", "#9b5de5", "#00a5b5", "#b5838d"];
const GREY: &str = "#8a8f98";

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1d2129; --paper: #ffffff; --line: #d9dde3; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #14171c; --line: #343a43; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto; max-width: 72rem;
  padding: 0 1rem; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg line { stroke: var(--line); } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line); } th:first-child, td:first-child
  { text-align: left; } tfoot td { font-weight: 600; } .own { font-weight: 700; } .scroll { overflow-x: auto; }
.key { display: inline-block; width: .8em; height: .8em; margin: 0 .3em 0 1em; border-radius: 2px; } pre { white-space:
  pre-wrap; }";

/// Writes the page.
pub fn render(record: &Record) -> String {
    let name = format!("{} {}", record.suite.to_uppercase(), record.size);
    let about = table::title(record).replace('\n', "<br>\n");
    let lead = record.mean(|query| record.lead(query));
    let lead = lead.map_or(String::new(), |lead| {
        format!("<p>Geometric mean of the fastest peer over tandem: <strong>{lead:.2} ×</strong></p>\n")
    });
    let clients =
        record.clients.as_ref().map_or(String::new(), |clients| format!("<p>{}</p>\n", escape(&clients.line())));
    let mut failures = String::new();
    let lines: Vec<String> = record.failures().into_iter().chain(record.notes()).map(|l| escape(&l)).collect();
    if !lines.is_empty() {
        failures = format!("<h2>Failures and notes</h2>\n<ul>\n<li>{}</li>\n</ul>\n", lines.join("</li>\n<li>"));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{name}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{name}</h1>\n<p>{about}</p>\n{lead}<p>{}</p>\n{}\n\
         <div class=\"scroll\">\n{}</div>\n{clients}{failures}</body>\n</html>\n",
        legend(record),
        chart(record),
        grid(record),
    )
}

fn color(record: &Record, contender: usize) -> &'static str {
    if record.contenders[contender].0 == LIMIT {
        return GREY;
    }
    let before = (0..contender).filter(|&at| record.contenders[at].0 != LIMIT).count();
    COLORS[before % COLORS.len()]
}

fn legend(record: &Record) -> String {
    let key = |(at, (name, version)): (usize, &(String, String))| {
        let color = color(record, at);
        format!("<span class=\"key\" style=\"background:{color}\"></span>{} {}", escape(name), escape(version))
    };
    record.contenders.iter().enumerate().map(key).collect::<Vec<_>>().join("\n")
}

/// The widest letter of an axis, and what is left free beside its labels, in units of the chart.
const LETTER: f64 = 8.0;
const GAP: f64 = 6.0;

/// Returns a power of ten of milliseconds and its label: in digits, with a comma for each thousand.
fn mark(power: i32) -> (f64, String) {
    let label = match power {
        0.. => thousands(10usize.saturating_pow(power.unsigned_abs())),
        _ => format!("{:.*}", power.unsigned_abs() as usize, 10f64.powi(power)),
    };
    (10f64.powi(power), format!("{label} ms"))
}

/// Draws a group of bars for each query, on a logarithmic scale of milliseconds: engines differ by powers of ten.
fn chart(record: &Record) -> String {
    let (width, height, bottom, top) = (1100.0, 420.0, 36.0, 12.0);
    let queries = record.queries.len();
    let times = (0..queries).flat_map(|q| (0..record.contenders.len()).filter_map(move |c| record.best(q, c)));
    let times: Vec<f64> = times.map(|seconds| seconds * 1e3).collect();
    let low = times.iter().copied().fold(f64::INFINITY, f64::min).max(1e-3).log10().floor();
    let high = times.iter().copied().fold(0.0, f64::max).max(1e-2).log10().ceil().max(low + 1.0);
    if times.is_empty() {
        return "<p>No query ran.</p>".to_string();
    }
    let marks: Vec<(f64, String)> = (low as i32..=high as i32).map(mark).collect();
    let letters = marks.iter().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
    let left = letters as f64 * LETTER + 2.0 * GAP;
    let y = |ms: f64| top + (height - top - bottom) * (1.0 - (ms.log10() - low) / (high - low)).clamp(0.0, 1.0);
    let mut svg = format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Time of each query\">\n");
    for (ms, label) in marks {
        let at = y(ms);
        svg.push_str(&format!("<line x1=\"{left}\" x2=\"{width}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>"));
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>\n",
            left - GAP,
            at + 4.0
        ));
    }
    let group = (width - left) / queries as f64;
    let bar = group * 0.86 / record.contenders.len() as f64;
    for query in 0..queries {
        let start = left + group * query as f64 + group * 0.07;
        for contender in 0..record.contenders.len() {
            let Some(ms) = record.best(query, contender).map(|seconds| seconds * 1e3) else { continue };
            let (name, color) = (escape(&record.contenders[contender].0), color(record, contender));
            svg.push_str(&format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{color}\"><title>{} {name}: {ms:.1} ms</title></rect>\n",
                start + bar * contender as f64,
                y(ms),
                (bar - 1.0).max(0.5),
                (height - bottom - y(ms)).max(0.5),
                record.queries[query].name,
            ));
        }
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\n",
            left + group * (query as f64 + 0.5),
            height - bottom + 18.0,
            record.queries[query].name
        ));
    }
    svg + "</svg>"
}

fn grid(record: &Record) -> String {
    let cell = |value: Option<f64>| value.map_or("–".to_string(), |value| format!("{value:.2}"));
    let mut text = "<table>\n<thead><tr><th>query</th>".to_string();
    for (name, _) in &record.contenders {
        let class = if name == OWN { " class=\"own\"" } else { "" };
        text.push_str(&format!("<th{class}>{} ms</th>", escape(name)));
    }
    let on_devices = record.find(OWN_CPU).is_some();
    if on_devices {
        text.push_str("<th>mode gpu ÷ cpu</th><th>ran on</th>");
    }
    text.push_str("<th>fastest peer ÷ tandem</th><th>tandem ÷ limit</th></tr></thead>\n<tbody>\n");
    for query in 0..record.queries.len() {
        text.push_str(&format!("<tr><td>{}</td>", record.queries[query].name));
        for contender in 0..record.contenders.len() {
            let error = record.outcomes[query][contender].error.as_deref().map(escape);
            let title = error.map_or(String::new(), |error| format!(" title=\"{error}\""));
            text.push_str(&format!("<td{title}>{}</td>", cell(record.best(query, contender).map(|s| s * 1e3))));
        }
        if on_devices {
            let places = escape(&record.places(query));
            text.push_str(&format!("<td>{}</td><td>{places}</td>", cell(record.over_cpu(query))));
        }
        text.push_str(&format!(
            "<td>{}</td><td>{}</td></tr>\n",
            cell(record.lead(query)),
            cell(record.over_limit(query))
        ));
    }
    text.push_str("</tbody>\n<tfoot><tr><td>geometric mean ÷ tandem</td>");
    for contender in 0..record.contenders.len() {
        text.push_str(&format!("<td>{}</td>", cell(record.mean(|query| record.ratio(query, contender)))));
    }
    if on_devices {
        text.push_str(&format!("<td>{}</td><td></td>", cell(record.mean(|query| record.over_cpu(query)))));
    }
    let (lead, over) = (record.mean(|query| record.lead(query)), record.mean(|query| record.over_limit(query)));
    text + &format!("<td>{}</td><td>{}</td></tr></tfoot>\n</table>\n", cell(lead), cell(over))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    #[test]
    fn marks_of_the_axis_are_short() {
        let labels = [-3, -1, 0, 2, 4, 6].map(|power| super::mark(power).1);
        assert_eq!(labels, ["0.001 ms", "0.1 ms", "1 ms", "100 ms", "10,000 ms", "1,000,000 ms"]);
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(super::escape("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
