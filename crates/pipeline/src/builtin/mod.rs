//! The built-in functions: one table, one line for each.
//!
//! Everything that must know a function by name, number or type reads this table or is checked against it: the verifier,
//! printer and parser, the protobuf form (`proto/pipeline.proto`), the random generators, the lowering of SQL, the tables of
//! `docs/01-sql.md` and Spark's translation (`tests` of this module). What a function computes is in
//! [`scalar::function`](fn@crate::scalar::function), by its variant.
//!
//! A function keeps its protobuf number for ever; a new one takes the next.

mod rules;
#[cfg(test)]
mod tests;

pub use rules::{ArgumentRule, Gives, Nulls};

use crate::DateField;

/// What the table says of a function.
#[derive(Debug)]
pub struct Entry {
    /// The variant's name, which is also that in the .proto file (`FUNCTION_…`).
    pub variant: &'static str,
    /// What kind of function it is, for documents.
    pub group: Group,
    /// Its number in the protobuf form.
    pub number: i32,
    /// Its name in the text form; that of a date function goes on with its field.
    pub name: &'static str,
    /// The names and operators of SQL that mean it.
    pub sql: &'static [&'static str],
    /// The expressions of Spark that are translated to it.
    pub spark: &'static [&'static str],
    /// What it takes.
    pub arguments: &'static [ArgumentRule],
    /// The type of its result.
    pub gives: Gives,
    /// What nulls among the arguments do, and whether the result may be null.
    pub nulls: Nulls,
    /// Which arguments raise an error; empty if none do.
    pub fails: &'static str,
    /// What it computes, in a line.
    pub meaning: &'static str,
    make: fn(Option<DateField>) -> Option<Function>,
}

/// The kinds of functions, as documents list them.
#[allow(missing_docs)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Conditional,
    Date,
    Text,
    Pattern,
    Number,
    Bit,
}

/// Makes the function of a variant and, if it has one, its field.
macro_rules! make {
    ($name:ident) => {
        |field| field.is_none().then_some(Function::$name)
    };
    ($name:ident $field:ident) => {
        |field| field.map(Function::$name)
    };
}

/// Makes the enum, the table and the way from one to the other.
macro_rules! functions {
    ($($group:ident { $(
        $name:ident $(($field:ident))? = $number:literal, $text:literal, sql $sql:tt, spark $spark:tt,
            $arguments:tt => $gives:ident, $nulls:ident, $fails:literal, $meaning:literal;
    )+ })+) => {
        /// The built-in functions; the table says of each what it takes, gives and means.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function {
            $($(
                #[doc = concat!("Gives ", $meaning, ".")]
                $name $(($field))?,
            )+)+
        }

        /// The table, in the order of documents.
        pub const TABLE: &[Entry] = {
            use rules::ArgumentRule::*;
            &[$($(Entry {
                variant: stringify!($name),
                group: Group::$group,
                number: $number,
                name: $text,
                sql: &$sql,
                spark: &$spark,
                arguments: &$arguments,
                gives: Gives::$gives,
                nulls: Nulls::$nulls,
                fails: $fails,
                meaning: $meaning,
                make: make!($name $($field)?),
            },)+)+]
        };

        /// The places of functions in the table.
        enum Place {
            $($($name,)+)+
        }

        impl Function {
            /// Returns what the table says of the function.
            pub fn entry(self) -> &'static Entry {
                match self {
                    $($(Function::$name { .. } => &TABLE[Place::$name as usize],)+)+
                }
            }
        }
    };
}

functions! {
    Conditional {
        Coalesce = 1, "coalesce", sql ["coalesce", "nvl"], spark ["Coalesce"],
            [Same, Repeated(&Same)] => First, Skipped, "", "the first argument that is not null";
        NullIf = 2, "nullif", sql ["nullif"], spark [],
            [Same, Same] => First, Special, "", "null if both are equal, else the first";
        Greatest = 37, "greatest", sql ["greatest"], spark [],
            [Same, Repeated(&Same)] => First, Skipped, "", "the largest argument; NaN is largest";
        Least = 38, "least", sql ["least"], spark [],
            [Same, Repeated(&Same)] => First, Skipped, "", "the smallest argument";
        SingleRow = 60, "single_row", sql [], spark [],
            [Integer] => Boolean, Strict, "more than one", "true; of the number of rows of a subquery that stands for a value";
    }
    Date {
        Extract(DateField) = 3, "extract", sql ["date_part"],
            spark ["Year", "Quarter", "Month", "WeekOfYear", "DayOfMonth", "DayOfYear", "DayOfWeek"],
            [Instant] => Int32, Partial, "", "a field of a date or time (with a zone: in it); null outside the calendar";
        Truncate(DateField) = 4, "truncate", sql ["date_trunc"], spark [],
            [Instant] => First, Strict, "a start outside the type", "the start of the field that it lies in";
        ToDate = 52, "to_date", sql ["to_date"], spark [],
            [Text, Text, Repeated(&Text)] => Date, Strict, "a text of none of the formats",
            "the date that a text says in the first of some formats of strftime that fits";
        DateDiff(DateField) = 53, "date_diff", sql ["date_diff"], spark [],
            [PlainInstant, AsFirst] => Int64, Strict, "",
            "how many starts of the field (years, months, weeks from Monday, …) lie after the first and not after the second";
    }
    Text {
        Upper = 5, "upper", sql ["upper"], spark [],
            [Text] => Text, Strict, "", "the text in capital letters";
        Lower = 6, "lower", sql ["lower"], spark [],
            [Text] => Text, Strict, "", "the text in small letters";
        Trim = 7, "trim", sql ["btrim", "trim"], spark ["StringTrim"],
            [Text, Optional(&Text)] => Text, Strict, "", "the text without spaces, or given characters, at both ends";
        TrimStart = 8, "trim_start", sql ["ltrim"], spark ["StringTrimLeft"],
            [Text, Optional(&Text)] => Text, Strict, "", "the text without spaces, or given characters, at its start";
        TrimEnd = 9, "trim_end", sql ["rtrim"], spark ["StringTrimRight"],
            [Text, Optional(&Text)] => Text, Strict, "", "the text without spaces, or given characters, at its end";
        CharLength = 10, "char_length", sql ["character_length", "length", "char_length"], spark ["Length"],
            [Text] => Int32, Strict, "", "the number of characters";
        OctetLength = 11, "octet_length", sql ["octet_length"], spark ["OctetLength"],
            [TextOrBytes] => Int32, Strict, "", "the number of bytes";
        Substring = 12, "substring", sql ["substr", "substring"], spark ["Substring"],
            [Text, Integer, Optional(&Integer)] => Text, Strict, "a negative length",
            "the characters from a position from 1, all or so many";
        Left = 13, "left", sql ["left"], spark [],
            [Text, Integer] => Text, Strict, "", "the first n characters; of −n: all but the last n";
        Right = 14, "right", sql ["right"], spark [],
            [Text, Integer] => Text, Strict, "", "the last n characters; of −n: all but the first n";
        Concat = 15, "concat", sql ["concat"], spark ["Concat"],
            [Repeated(&Text)] => Text, Never, "", "the texts one behind the other; nulls are skipped";
        Replace = 16, "replace", sql ["replace"], spark [],
            [Text, Text, Text] => Text, Strict, "a result of more than 2 GB",
            "the text with every occurrence of the second replaced by the third; of the empty text there is none";
        Position = 17, "position", sql ["strpos", "instr", "position"], spark [],
            [Text, Text] => Int32, Strict, "", "the first position from 1 of the second text, or 0";
        StartsWith = 18, "starts_with", sql ["starts_with"], spark ["StartsWith"],
            [Text, Text] => Boolean, Strict, "", "whether the text starts with the second";
        EndsWith = 19, "ends_with", sql ["ends_with"], spark ["EndsWith"],
            [Text, Text] => Boolean, Strict, "", "whether the text ends with the second";
        Contains = 20, "contains", sql ["contains"], spark ["Contains"],
            [Text, Text] => Boolean, Strict, "", "whether the text contains the second";
        Reverse = 21, "reverse", sql ["reverse"], spark [],
            [Text] => Text, Strict, "", "the characters in reverse order";
        SplitPart = 44, "split_part", sql ["split_part"], spark [],
            [Text, Text, Integer] => Text, Strict, "part 0",
            "the part with a number from 1 (−1: the last) between occurrences of the second text; empty if there is none";
        PadStart = 45, "pad_start", sql ["lpad"], spark ["StringLPad"],
            [Text, Integer, Optional(&Text)] => Text, Strict, "a result of more than 2 GB",
            "the text cut to so many characters, or filled up at its start with spaces or a given text";
        PadEnd = 46, "pad_end", sql ["rpad"], spark ["StringRPad"],
            [Text, Integer, Optional(&Text)] => Text, Strict, "a result of more than 2 GB",
            "the text cut to so many characters, or filled up at its end with spaces or a given text";
        InitCap = 47, "initcap", sql ["initcap"], spark [],
            [Text] => Text, Strict, "", "the text with each word in small letters but its first";
        Repeat = 48, "repeat", sql ["repeat"], spark ["StringRepeat"],
            [Text, Integer] => Text, Strict, "a result of more than 2 GB", "the text so many times; negative: none";
        Translate = 49, "translate", sql ["translate"], spark ["StringTranslate"],
            [Text, Text, Text] => Text, Strict, "",
            "the text with each character of the second replaced by that at its place in the third, or removed";
        Md5 = 39, "md5", sql ["md5"], spark ["Md5"],
            [TextOrBytes] => Text, Strict, "", "the MD5 digest in hexadecimal digits";
        Sha256 = 40, "sha256", sql ["sha256"], spark [],
            [TextOrBytes] => Bytes, Strict, "", "the SHA-256 digest";
    }
    Pattern {
        RegexpLike = 41, "regexp_like", sql ["regexp_like", "~"], spark [],
            [Text, Text, Optional(&Text)] => Boolean, Strict, "a pattern that is none",
            "whether a regular expression, with flags, matches somewhere";
        RegexpReplace = 42, "regexp_replace", sql ["regexp_replace"], spark [],
            [Text, Text, Text, Optional(&Text)] => Text, Strict, "a pattern that is none; a result of more than 2 GB",
            "the text with the first match (flag g: all) replaced; in the third, \\1 is the first group";
        RegexpMatch = 43, "regexp_match", sql ["regexp_match"], spark [],
            [Text, Text, Integer, Optional(&Text)] => Text, Partial, "a pattern that is none",
            "the group with a number from 1 of the first match, the match if it has no groups; null without one";
    }
    Number {
        Abs = 22, "abs", sql ["abs"], spark ["Abs"],
            [Number] => First, Strict, "the smallest integer", "the magnitude";
        Sign = 23, "sign", sql ["signum"], spark [],
            [Number] => SignOf, Strict, "a decimal type without a digit before the point", "−1, 0 or 1; NaN of NaN";
        Round = 24, "round", sql ["round"], spark [],
            [Number, Optional(&Integer)] => Rounded, Strict, "a result that does not fit",
            "the number rounded half away from zero, to so many digits behind the point";
        Floor = 25, "floor", sql ["floor"], spark [],
            [Number] => Rounded, Strict, "a result that does not fit", "the largest whole number not above";
        Ceil = 26, "ceil", sql ["ceil"], spark [],
            [Number] => Rounded, Strict, "a result that does not fit", "the smallest whole number not below";
        SquareRoot = 27, "sqrt", sql [], spark [],
            [Number] => Float, Strict, "", "the square root; NaN of negative numbers";
        Power = 28, "power", sql ["power", "pow"], spark [],
            [Number, Number] => Float, Strict, "zero raised to a negative power", "the first raised to the second";
        Exp = 29, "exp", sql ["exp"], spark [],
            [Number] => Float, Strict, "", "e raised to the number";
        Ln = 30, "ln", sql ["ln"], spark [],
            [Number] => Float, Strict, "", "the natural logarithm";
        Log10 = 31, "log10", sql ["log10", "log"], spark [],
            [Number] => Float, Strict, "", "the logarithm to base 10";
        Log2 = 32, "log2", sql ["log2"], spark [],
            [Number] => Float, Strict, "", "the logarithm to base 2";
        Sin = 33, "sin", sql ["sin"], spark [],
            [Number] => Float, Strict, "", "the sine";
        Cos = 34, "cos", sql ["cos"], spark [],
            [Number] => Float, Strict, "", "the cosine";
        Tan = 35, "tan", sql ["tan"], spark [],
            [Number] => Float, Strict, "", "the tangent";
        ArcTan = 36, "atan", sql ["atan"], spark [],
            [Number] => Float, Strict, "", "the angle with this tangent";
        CubeRoot = 50, "cbrt", sql ["cbrt"], spark [],
            [Number] => Float, Strict, "", "the cube root";
        ArcTan2 = 51, "atan2", sql ["atan2"], spark [],
            [Number, Number] => Float, Strict, "", "the angle of the point (second, first)";
    }
    Bit {
        BitAnd = 54, "bit_and", sql ["&"], spark ["BitwiseAnd"],
            [SameInteger, SameInteger] => First, Strict, "", "the bits that both have";
        BitOr = 55, "bit_or", sql ["|"], spark ["BitwiseOr"],
            [SameInteger, SameInteger] => First, Strict, "", "the bits that either has";
        BitXor = 56, "bit_xor", sql ["^"], spark ["BitwiseXor"],
            [SameInteger, SameInteger] => First, Strict, "", "the bits that one has and the other has not";
        BitNot = 57, "bit_not", sql [], spark ["BitwiseNot"],
            [SameInteger] => First, Strict, "", "the bits that it has not";
        ShiftLeft = 58, "shift_left", sql ["<<"], spark ["ShiftLeft"],
            [SameInteger, SameInteger] => First, Strict, "",
            "the bits moved up by the second, modulo the width of the type";
        ShiftRight = 59, "shift_right", sql [">>"], spark ["ShiftRight"],
            [SameInteger, SameInteger] => First, Strict, "",
            "the bits moved down by the second, modulo the width of the type; the sign stays";
    }
}

impl Function {
    /// Returns the name; the field of a date function is a part of it.
    pub fn name(self) -> String {
        let name = self.entry().name;
        self.field().map_or_else(|| name.to_owned(), |field| format!("{name}_{}", field.name()))
    }

    /// Returns the field of dates that is a part of it.
    pub fn field(self) -> Option<DateField> {
        match self {
            Function::Extract(field) | Function::Truncate(field) | Function::DateDiff(field) => Some(field),
            _ => None,
        }
    }

    /// Finds the function of a name.
    pub fn from_name(name: &str) -> Option<Function> {
        TABLE.iter().find_map(|entry| {
            let field = name.strip_prefix(entry.name)?;
            match field.strip_prefix('_') {
                Some(field) => (entry.make)(Some(DateField::from_name(field)?)),
                None if field.is_empty() => (entry.make)(None),
                None => None,
            }
        })
    }

    /// Finds the function without a field that a name of SQL means.
    pub fn from_sql(name: &str) -> Option<Function> {
        TABLE.iter().find(|entry| entry.sql.contains(&name)).and_then(|entry| (entry.make)(None))
    }

    /// Returns every function.
    pub fn all() -> impl Iterator<Item = Function> {
        TABLE.iter().flat_map(|entry| {
            let fields = DateField::all().filter_map(|field| (entry.make)(Some(field)));
            (entry.make)(None).into_iter().chain(fields)
        })
    }

    /// Tells whether no arguments raise an error.
    pub fn is_total(self) -> bool {
        self.entry().fails.is_empty()
    }
}

impl Entry {
    /// Finds the entry of a protobuf number.
    pub fn of_number(number: i32) -> Option<&'static Entry> {
        TABLE.iter().find(|entry| entry.number == number)
    }

    /// Makes the function; `None` if it needs a field and has none, or has one and needs none.
    pub fn function(&self, field: Option<DateField>) -> Option<Function> {
        (self.make)(field)
    }

    /// Tells whether a field of dates is a part of the function.
    pub fn takes_field(&self) -> bool {
        self.function(None).is_none()
    }
}
