//! LIKE: patterns of `%` (any text) and `_` (any one character), as Arrow matches them.
//!
//! A pattern is compiled once. An escape character makes the next one literal; at the end of the pattern it stands for
//! itself. Ignoring case compares characters by their simple upper and lower case.

/// The code of `_` in [`Matcher::codes`].
pub const ANY_CHARACTER: u16 = 256;
/// The code of `%` in [`Matcher::codes`].
pub const ANY_TEXT: u16 = 257;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Matcher {
    /// The pattern's parts between `%`, in order.
    parts: Vec<Vec<Part>>,
    /// The whole pattern's shape, where plain text search does.
    shape: PatternShape,
    /// Compare without regard to case.
    ignore_case: bool,
}

/// One character of a pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Any,
    Exactly(char),
}

/// What a pattern amounts to: executors turn the first four into ranges of a sorted dictionary or plain searches.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternShape {
    /// No wildcard.
    Equal(String),
    /// `text%`.
    StartsWith(String),
    /// `%text`.
    EndsWith(String),
    /// `%text%`.
    Contains(String),
    /// Anything else, or case is ignored.
    General,
}

impl Matcher {
    /// Compiles a pattern; the escape character is the backslash unless given.
    pub fn new(pattern: &str, escape: Option<char>, ignore_case: bool) -> Matcher {
        let escape = escape.unwrap_or('\\');
        let mut parts = vec![Vec::new()];
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            let last = parts.last_mut().expect("there is always a last part");
            if character == escape {
                last.push(Part::Exactly(characters.next().unwrap_or(escape)));
            } else if character == '%' {
                parts.push(Vec::new());
            } else if character == '_' {
                last.push(Part::Any);
            } else {
                last.push(Part::Exactly(character));
            }
        }
        let shape = if ignore_case { PatternShape::General } else { PatternShape::of(&parts) };
        Matcher { parts, shape, ignore_case }
    }

    /// Returns what the pattern amounts to.
    pub fn shape(&self) -> &PatternShape {
        &self.shape
    }

    /// Returns the pattern for a matcher of bytes: the bytes of characters, [`ANY_CHARACTER`] and [`ANY_TEXT`].
    pub fn codes(&self) -> Vec<u16> {
        let mut codes = Vec::new();
        for (at, part) in self.parts.iter().enumerate() {
            codes.extend((at > 0).then_some(ANY_TEXT));
            for part in part {
                match part {
                    Part::Any => codes.push(ANY_CHARACTER),
                    Part::Exactly(character) => {
                        codes.extend(character.encode_utf8(&mut [0; 4]).bytes().map(u16::from));
                    }
                }
            }
        }
        codes
    }

    /// Tells whether the text matches.
    pub fn matches(&self, text: &str) -> bool {
        match &self.shape {
            PatternShape::Equal(wanted) => text == wanted,
            PatternShape::StartsWith(wanted) => text.starts_with(&wanted[..]),
            PatternShape::EndsWith(wanted) => text.ends_with(&wanted[..]),
            PatternShape::Contains(wanted) => text.contains(&wanted[..]),
            PatternShape::General => self.general(text),
        }
    }

    /// Matches part by part: the first at the start, the last at the end, those between as early as they occur.
    fn general(&self, text: &str) -> bool {
        let characters: Vec<char> = text.chars().collect();
        let (first, rest) = self.parts.split_first().expect("there is always a first part");
        let Some((last, middle)) = rest.split_last() else {
            return characters.len() == first.len() && self.at(&characters, 0, first);
        };
        if characters.len() < first.len() + last.len() || !self.at(&characters, 0, first) {
            return false;
        }
        let end = characters.len() - last.len();
        let mut position = first.len();
        for part in middle {
            let found = (position..=end).find(|start| start + part.len() <= end && self.at(&characters, *start, part));
            match found {
                Some(start) => position = start + part.len(),
                None => return false,
            }
        }
        self.at(&characters, end, last)
    }

    /// Tells whether the part matches at a position where as many characters are left.
    fn at(&self, characters: &[char], position: usize, part: &[Part]) -> bool {
        let here = characters.get(position..position + part.len());
        here.is_some_and(|here| {
            here.iter().zip(part).all(|(character, part)| match part {
                Part::Any => true,
                Part::Exactly(wanted) => character == wanted || self.ignore_case && same_letter(*character, *wanted),
            })
        })
    }
}

impl PatternShape {
    /// Finds the shape of a pattern's parts.
    fn of(parts: &[Vec<Part>]) -> PatternShape {
        let text = |part: &[Part]| -> Option<String> {
            part.iter().map(|part| if let Part::Exactly(c) = part { Some(*c) } else { None }).collect()
        };
        let found = match parts {
            [only] => text(only).map(PatternShape::Equal),
            [start, end] if end.is_empty() => text(start).map(PatternShape::StartsWith),
            [start, end] if start.is_empty() => text(end).map(PatternShape::EndsWith),
            [start, middle, end] if start.is_empty() && end.is_empty() => text(middle).map(PatternShape::Contains),
            _ => None,
        };
        found.unwrap_or(PatternShape::General)
    }
}

/// Tells whether two characters differ in case only.
fn same_letter(left: char, right: char) -> bool {
    left.to_lowercase().eq(right.to_lowercase()) || left.to_uppercase().eq(right.to_uppercase())
}
