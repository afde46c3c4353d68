//! The record as one aligned table for a terminal.

use super::record::{LIMIT, OWN, OWN_CPU, Record};

/// Writes the table and what belongs under it.
pub fn render(record: &Record) -> String {
    let limit = record.find(LIMIT);
    let engines: Vec<usize> = (0..record.contenders.len()).filter(|at| Some(*at) != limit).collect();
    let has_peers = record.peers().next().is_some();
    let on_devices = record.find(OWN_CPU).is_some();
    let mut head = vec!["query".to_string()];
    head.extend(engines.iter().map(|&at| record.contenders[at].0.clone()));
    if on_devices {
        head.extend(["mode gpu ÷ cpu".into(), "ran on".into()]);
    }
    if has_peers {
        head.push("fastest peer ÷ tandem".into());
    }
    if limit.is_some() {
        head.extend(["limit".into(), "tandem ÷ limit".into()]);
    }

    let mut rows: Vec<Vec<String>> = Vec::new();
    for query in 0..record.queries.len() {
        let mut row = vec![record.queries[query].name.to_string()];
        row.extend(engines.iter().map(|&at| milliseconds(record.best(query, at), true)));
        if on_devices {
            row.extend([factor(record.over_cpu(query)), record.places(query)]);
        }
        if has_peers {
            row.push(factor(record.lead(query)));
        }
        if let Some(limit) = limit {
            row.extend([milliseconds(record.best(query, limit), false), factor(record.over_limit(query))]);
        }
        rows.push(row);
    }
    let mut total = vec!["total".to_string()];
    total.extend(engines.iter().map(|&at| milliseconds(record.total(at), false)));
    let mut mean = vec!["geomean ÷ tandem".to_string()];
    let relative = |at: usize| (record.contenders[at].0 != OWN).then(|| record.mean(|query| record.ratio(query, at)));
    mean.extend(engines.iter().map(|&at| relative(at).map_or(String::new(), factor)));
    if on_devices {
        total.extend([String::new(), String::new()]);
        mean.extend([factor(record.mean(|query| record.over_cpu(query))), String::new()]);
    }
    if has_peers {
        total.push(String::new());
        mean.push(factor(record.mean(|query| record.lead(query))));
    }
    if limit.is_some() {
        total.extend([String::new(), String::new()]);
        mean.extend([String::new(), factor(record.mean(|query| record.over_limit(query)))]);
    }

    let mut text = title(record);
    text.push_str("\n\n");
    text.push_str(&align(&head, &rows, &[total, mean]));
    text.push('\n');
    if let Some(clients) = &record.clients {
        text.push_str(&format!("{}\n", clients.line()));
    }
    for (kind, lines) in [("failed", record.failures()), ("note", record.notes())] {
        for line in lines {
            text.push_str(&format!("{kind}: {line}\n"));
        }
    }
    text
}

/// Says what ran on what.
pub fn title(record: &Record) -> String {
    let machine = &record.machine;
    let versions: Vec<String> = record
        .contenders
        .iter()
        .filter(|(name, _)| name != LIMIT && (name == OWN || !name.starts_with(OWN)))
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    let devices = match record.devices.is_empty() {
        true => String::new(),
        false => format!("\ntandem in mode gpu on {}", record.devices.join(" and ")),
    };
    format!(
        "{} {}, from {}, {} threads, best of {}{}, milliseconds, {}\n{}, {} cores, {}, {:.1} GB, {:.1} GB/s read, {}\n{}",
        record.suite.to_uppercase(),
        record.size,
        format!("{:?}", record.from).to_lowercase(),
        record.threads,
        record.repeat,
        if record.isolated { " (one engine after the other)" } else { "" },
        record.date,
        machine.processor,
        machine.cores,
        machine.vectors,
        machine.memory_gb,
        machine.bandwidth_gb_s,
        machine.system,
        versions.join(", "),
    ) + &devices
}

fn milliseconds(seconds: Option<f64>, expected: bool) -> String {
    match seconds {
        Some(seconds) => format!("{:.1}", seconds * 1e3),
        None if expected => "failed".into(),
        None => String::new(),
    }
}

fn factor(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| format!("{value:.2}"))
}

/// Aligns names to the left and figures to the right, with a line under the head and above the foot.
pub fn align(head: &[String], rows: &[Vec<String>], foot: &[Vec<String>]) -> String {
    let all = || std::iter::once(head).chain(rows.iter().chain(foot).map(Vec::as_slice));
    let width = |at: usize| all().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String]| {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_string() + "\n"
    };
    let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * (widths.len() - 1)) + "\n";
    let mut text = line(head) + &rule;
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text.push_str(&rule);
    foot.iter().for_each(|row| text.push_str(&line(row)));
    text
}
