//! Drawing of aligned grids, shared by result tables and reports.

use arrow::record_batch::RecordBatch;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Result, text::Cells};

/// No column is cut below this many characters.
const LEAST_WIDTH: usize = 8;

/// One value as it is shown: a line, or several where the value has line breaks.
pub struct Cell {
    lines: Vec<(String, usize)>,
    width: usize,
    /// Whether it stands for null.
    pub null: bool,
}

impl Cell {
    /// Makes a cell of a value.
    pub fn new(value: &str) -> Self {
        // Control characters would break the grid, and escape sequences the terminal.
        let clean = |line: &str| match line.contains(char::is_control) {
            true => {
                line.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.into() }).collect()
            }
            false => line.to_owned(),
        };
        let measured = |line: &str| {
            let line: String = clean(line);
            let width = line.width();
            (line, width)
        };
        let lines: Vec<(String, usize)> = value.split('\n').map(measured).collect();
        Cell { width: lines.iter().map(|(_, width)| *width).max().unwrap_or(0), lines, null: false }
    }

    fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|(line, _)| line.as_str()).collect();
        lines.join("\n")
    }

    /// Makes a cell that stands for null.
    pub fn null() -> Self {
        Cell { null: true, ..Cell::new("NULL") }
    }
}

/// Makes the cells of all rows.
pub fn cells<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Result<Vec<Vec<Cell>>> {
    let (mut rows, mut value) = (Vec::new(), String::new());
    for batch in batches {
        let cells = Cells::new(batch)?;
        for row in 0..batch.num_rows() {
            let line = (0..cells.width())
                .map(|column| Ok(if cells.spell(row, column, &mut value)? { Cell::new(&value) } else { Cell::null() }));
            rows.push(line.collect::<Result<Vec<_>>>()?);
        }
    }
    Ok(rows)
}

/// Spells all rows, nulls as `NULL`.
pub fn spell<'a>(batches: impl IntoIterator<Item = &'a RecordBatch>) -> Result<Vec<Vec<String>>> {
    Ok(cells(batches)?.iter().map(|row| row.iter().map(Cell::text).collect()).collect())
}

/// Draws a whole grid without colours.
pub fn draw(header: &[&str], right: &[bool], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let names: Vec<Cell> = header.iter().map(|name| Cell::new(name)).collect();
    let rows: Vec<Vec<Cell>> = rows.into_iter().map(|row| row.iter().map(|value| Cell::new(value)).collect()).collect();
    let widths = widths(&names, rows.iter(), None);
    let mut text = String::new();
    rule(&mut text, &widths, ['┌', '┬', '┐']);
    line(&mut text, &names, &widths, right, |_| ("", ""));
    rule(&mut text, &widths, ['├', '┼', '┤']);
    for row in &rows {
        line(&mut text, row, &widths, right, |_| ("", ""));
    }
    rule(&mut text, &widths, ['└', '┴', '┘']);
    text
}

/// Returns the width of each column: what its cells need, less where a line would be longer than `limit`.
pub fn widths<'a>(names: &[Cell], rows: impl Iterator<Item = &'a Vec<Cell>>, limit: Option<usize>) -> Vec<usize> {
    let mut widths: Vec<usize> = names.iter().map(|n| n.width).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width);
        }
    }
    fit(&mut widths, limit);
    widths
}

/// Cuts the widest columns until a line fits, as far as that goes.
fn fit(widths: &mut [usize], limit: Option<usize>) {
    let Some(limit) = limit else { return };
    // Each column costs its width, two spaces and a bar; one more bar ends the line.
    let mut total: usize = widths.iter().map(|w| w + 3).sum::<usize>() + 1;
    while total > limit {
        let Some(widest) = widths.iter_mut().max() else { return };
        if *widest <= LEAST_WIDTH {
            return;
        }
        *widest -= 1;
        total -= 1;
    }
}

/// Draws a horizontal rule.
pub fn rule(text: &mut String, widths: &[usize], [left, middle, right]: [char; 3]) {
    text.push(left);
    for (index, width) in widths.iter().enumerate() {
        if index > 0 {
            text.push(middle);
        }
        text.extend(std::iter::repeat_n('─', width + 2));
    }
    text.push(right);
    text.push('\n');
}

/// Draws one row; `paint` gives what stands before and after a cell's text.
pub fn line<'a>(
    text: &mut String,
    cells: &[Cell],
    widths: &[usize],
    right: &[bool],
    paint: impl Fn(&Cell) -> (&'a str, &'a str),
) {
    let height = cells.iter().map(|cell| cell.lines.len()).max().unwrap_or(0);
    for index in 0..height {
        for ((cell, &width), &right) in cells.iter().zip(widths).zip(right) {
            let (begin, end) = paint(cell);
            let (shown, shown_width) = match cell.lines.get(index) {
                Some((text, text_width)) => cut(text, *text_width, width),
                None => ("".into(), 0),
            };
            let padding = width - shown_width;
            let (before, after) = if right { (padding, 0) } else { (0, padding) };
            text.push_str("│ ");
            text.extend(std::iter::repeat_n(' ', before));
            text.push_str(begin);
            text.push_str(&shown);
            text.push_str(end);
            text.extend(std::iter::repeat_n(' ', after + 1));
        }
        text.push_str("│\n");
    }
}

/// Cuts a text to at most `limit` columns, with a sign that something is missing.
fn cut(text: &str, width: usize, limit: usize) -> (std::borrow::Cow<'_, str>, usize) {
    if width <= limit {
        return (text.into(), width);
    }
    let (mut kept, mut used) = (String::new(), 0);
    for character in text.chars() {
        let next = character.width().unwrap_or(0);
        if used + next + 1 > limit {
            break;
        }
        kept.push(character);
        used += next;
    }
    kept.push('…');
    (kept.into(), used + 1)
}

/// Writes a number with its thousands separated.
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1234567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn wide_columns_are_cut_to_fit() {
        let mut widths = vec![100, 10, 50];
        fit(&mut widths, Some(60));
        assert_eq!(widths.iter().map(|w| w + 3).sum::<usize>() + 1, 60);
        assert_eq!(widths[1], 10);
        assert_eq!(cut("abcdef", 6, 4).0, "abc…");
        assert_eq!(cut("日本語", 6, 4), ("日…".into(), 3));
    }
}
