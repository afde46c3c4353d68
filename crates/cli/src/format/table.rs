//! Aligned tables for people: numbers to the right, the middle of long results elided, wide columns cut to the terminal.
//!
//! All shown rows are held until the end, because the widths of the columns depend on them; rows that will be elided
//! are counted and dropped as they pass.

use std::{collections::VecDeque, io::Write};

use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};

use super::{
    Result, Style, Writer,
    grid::{Cell, cells, line, rule, spell, thousands, widths},
    text::is_number,
};
use crate::output::OutputSink;

/// Collects and prints a table.
pub struct TableWriter {
    schema: SchemaRef,
    sink: OutputSink,
    style: Style,
    head: Vec<RecordBatch>,
    tail: VecDeque<RecordBatch>,
    head_rows: usize,
    tail_rows: usize,
    rows: usize,
}

impl TableWriter {
    /// Starts a table.
    pub fn new(schema: &SchemaRef, sink: OutputSink, style: Style) -> Self {
        TableWriter {
            schema: schema.clone(),
            sink,
            style,
            head: Vec::new(),
            tail: VecDeque::new(),
            head_rows: 0,
            tail_rows: 0,
            rows: 0,
        }
    }

    /// Drops rows from the front of the tail while enough remain after it.
    fn trim_tail(&mut self, wanted: usize) {
        while let Some(front) = self.tail.front() {
            let spare = self.tail_rows - wanted.min(self.tail_rows);
            if spare == 0 {
                break;
            }
            if spare >= front.num_rows() {
                self.tail_rows -= front.num_rows();
                self.tail.pop_front();
            } else {
                let rest = front.slice(spare, front.num_rows() - spare);
                self.tail_rows -= spare;
                self.tail[0] = rest;
            }
        }
    }

    /// Tells whether this is the result of EXPLAIN, which is text rather than rows.
    fn is_plan(&self) -> bool {
        self.schema.fields().iter().map(|field| field.name().as_str()).eq(["plan_type", "plan"])
    }

    fn print_plan(&mut self) -> Result {
        for row in spell(self.head.iter().chain(&self.tail))? {
            let title = if row[0].is_empty() { String::new() } else { format!("{}:\n", row[0]) };
            writeln!(self.sink, "{title}{}", row[1].trim_end()).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn print(&mut self) -> Result {
        let elided = self.rows - self.head_rows - self.tail_rows;
        let head = cells(&self.head)?;
        let tail = cells(&self.tail)?;
        let names: Vec<Cell> = self.schema.fields().iter().map(|f| Cell::new(f.name())).collect();
        let right: Vec<bool> = self.schema.fields().iter().map(|f| is_number(f.data_type())).collect();
        let widths = widths(&names, head.iter().chain(&tail), self.style.width);
        let (bold, dim, plain) = if self.style.color { ("\x1b[1m", "\x1b[2m", "\x1b[0m") } else { ("", "", "") };

        let mut text = String::new();
        rule(&mut text, &widths, ['┌', '┬', '┐']);
        line(&mut text, &names, &widths, &right, |_| (bold, plain));
        rule(&mut text, &widths, ['├', '┼', '┤']);
        for row in &head {
            line(&mut text, row, &widths, &right, |c| if c.null { (dim, plain) } else { ("", "") });
        }
        if elided > 0 {
            let dots: Vec<Cell> = widths.iter().map(|_| Cell::new("⋮")).collect();
            line(&mut text, &dots, &widths, &right, |_| (dim, plain));
        }
        for row in &tail {
            line(&mut text, row, &widths, &right, |c| if c.null { (dim, plain) } else { ("", "") });
        }
        rule(&mut text, &widths, ['└', '┴', '┘']);
        let plural = if self.rows == 1 { "" } else { "s" };
        match elided {
            0 => text.push_str(&format!("{} row{plural}\n", thousands(self.rows))),
            _ => text.push_str(&format!(
                "{} row{plural} ({} shown)\n",
                thousands(self.rows),
                thousands(self.head_rows + self.tail_rows)
            )),
        }
        self.sink.write_all(text.as_bytes()).map_err(|e| e.to_string())
    }
}

impl Writer for TableWriter {
    fn write(&mut self, batch: &RecordBatch) -> Result {
        self.rows += batch.num_rows();
        let limit = if self.is_plan() { None } else { self.style.rows };
        let Some(limit) = limit else {
            self.head_rows += batch.num_rows();
            self.head.push(batch.clone());
            return Ok(());
        };
        let (first, last) = (limit.div_ceil(2), limit / 2);
        let taken = batch.num_rows().min(first - self.head_rows.min(first));
        if taken > 0 {
            self.head.push(batch.slice(0, taken));
            self.head_rows += taken;
        }
        if taken < batch.num_rows() {
            self.tail.push_back(batch.slice(taken, batch.num_rows() - taken));
            self.tail_rows += batch.num_rows() - taken;
            self.trim_tail(last);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result {
        if self.is_plan() {
            self.print_plan()?;
        } else if !self.schema.fields().is_empty() {
            self.print()?;
        }
        self.sink.flush().map_err(|e| e.to_string())
    }
}
