//! What the verifier rejects, and in which words.

use crate::{parse, verify};

/// Verifies text and returns what is wrong.
fn wrong(text: &str) -> String {
    let query = parse(text).unwrap_or_else(|error| panic!("{error} in {text}"));
    verify(&query).expect_err(text).message
}

const BUILD: &str = "pipeline 0\n scan d [k@0: int32, y@1: int32?]\n build keys ($0) payload ($1)\n";

#[test]
fn accepts_a_star_join() {
    let text = format!(
        "{BUILD}pipeline 1\n scan f [k@3: int32, v@1: int64]\n filter $1 > 5 and $0 is distinct from 3:int32\n \
         probe inner 0 on ($0) adds ($2 y@0: int32?)\n let $3 w: int64 = $1 * 2 [overflow wrap]\n \
         aggregate by ($2) (sum($3): int64, count_rows(): int64)\n"
    );
    let query = parse(&text).unwrap();
    verify(&query).unwrap();
    let names: Vec<String> = query.output().into_iter().map(|slot| slot.name).collect();
    assert_eq!(names, ["y", "sum(w)", "count_rows(*)"]);
    assert_eq!(query.pipelines[1].liveness()[1], [false, true, true, false]);
}

#[test]
fn rejects_columns_that_no_message_has_room_for() {
    let scan = |column: u64| format!("pipeline 0\n scan t [a@{column}: int32]\n materialize output ($0)\n");
    verify(&parse(&scan(u32::MAX.into())).unwrap()).unwrap();
    assert!(wrong(&scan(1 << 32)).contains("table t has no columns beyond the first 4294967295"));
}

#[test]
fn rejects_what_does_not_fit() {
    let scan = "pipeline 0\n scan t [a@0: int32, b@1: string, c@2: boolean, d@3: decimal(9,2)]\n";
    let cases = [
        ("filter $0\nmaterialize output ()", "step 0 (filter) is not well-formed: a condition must be of type boolean"),
        ("filter $9 = $9\nmaterialize output ()", "slot $9 does not exist here: there are 4"),
        ("filter $0 = $1\nmaterialize output ()", "int32 cannot be compared with string"),
        ("filter $0 = 5\nmaterialize output ()", "int32 cannot be compared with int64"),
        ("filter $0 in (99999999999)\nmaterialize output ()", "does not fit int32"),
        ("filter $0 like 'x'\nmaterialize output ()", "the text of a pattern must be of type string"),
        ("filter and(300:int8 = 1:int8)\nmaterialize output ()", "literal 300 does not fit int8"),
        ("filter upper($0) = 'x'\nmaterialize output ()", "function upper: an argument must be of type string"),
        ("filter cast($2 as date) is null\nmaterialize output ()", "there is no cast from boolean to date"),
        ("let $4 x: int64 = $0 + $0\nmaterialize output ()", "slot x must be of type int64, not int32"),
        ("let $4 x: int32 = $0 + $3\nmaterialize output ()", "int32 + decimal(9,2) does not give int32"),
        ("let $4 x: int32 = @0($0)\nmaterialize output ()", "there is no user function 0"),
        ("let $4 x: decimal(39,2) = $3\nmaterialize output ()", "is not a decimal of 1 to 38 digits"),
        ("probe inner 0 on ($0)\nmaterialize output ()", "pipeline 0 does not come before it"),
        ("materialize output ($4)", "pipeline 0 sink is not well-formed: slot $4 does not exist here"),
        ("aggregate by () (sum($1): int64)", "sum: string does not give int64"),
        ("aggregate by () (sum(): int64)", "sum needs an argument"),
        ("aggregate by () (sum($0 where $1): int64)", "a filter must be of type boolean"),
        ("aggregate partial by () (count(distinct $0): int64)", "of distinct values cannot be computed in parts"),
        ("aggregate final by () (average($0): float64)", "state 0 must be of type float64"),
        ("partition by ($0) into 0 output ()", "rows are divided into 1 to"),
        ("window by () order () compute (rank() as string) output ()", "a rank is an integer"),
    ];
    for (text, expected) in cases {
        let message = wrong(&format!("{scan}{text}"));
        assert!(message.contains(expected), "{text}: {message}");
    }
    let probes = [
        ("probe inner 0 on () ", "it has 0 keys for the 1 of pipeline 0"),
        ("probe inner 0 on ($1) ", "a key must be of type int32, not int64"),
        ("probe inner 0 on ($0) adds ($2 y@7: int32)", "payload 7 does not exist"),
        ("probe semi 0 on ($0) adds ($2 y@0: int32)", "a semi join adds no payload"),
        ("probe inner 0 on ($0) null aware", "only anti and mark joins"),
        ("probe inner 0 on ($0) where $3 = 1:int32", "slot $3 does not exist here"),
    ];
    for (step, expected) in probes {
        let message =
            wrong(&format!("{BUILD}pipeline 1\nscan f [k@3: int32, v@1: int64] {step} materialize output ()"));
        assert!(message.contains(expected), "{step}: {message}");
        assert!(message.contains("pipeline 1 step 0 (probe)"), "{message}");
    }
    assert!(wrong("pipeline 0 values [a: int8] (1000) materialize output ()").contains("row 0 has 1000 for a"));
    assert!(wrong("pipeline 0 values [a: int8] (null) materialize output ()").contains("row 0 has null for a"));
    let union = format!("{BUILD}pipeline 1 result 0 [y: int32] materialize output ()");
    assert!(wrong(&union).contains("pipeline 0 ends in a build"));
}

#[test]
fn rejects_functions_that_are_not_well_formed() {
    let header = "function 0 f(a: int64) returns int64 locals (l: list(int64), s: string)\n";
    let cases = [
        ("break", "a break or continue is outside loops"),
        ("set $0 = 'x'", "local $0 must be of type int64, not string"),
        ("return $2", "the result must be of type int64, not string"),
        ("store $0, 1, 1", "int64 is not a list"),
        ("set $0 = element($2, 0)", "string is not a list"),
        ("for $2 from 0 to 1 end", "must be of type int64"),
        ("while $0 end", "a condition must be of type boolean"),
        ("return @0($0)", "there is no user function 0 before it"),
    ];
    for (body, expected) in cases {
        let text = format!("{header}{body}\nend\npipeline 0 values [] () materialize output ()");
        let message = wrong(&text);
        assert!(message.contains(expected) && message.contains("function 0 (f)"), "{body}: {message}");
    }
}

#[test]
fn bounds_recursion() {
    let deep = format!(
        "pipeline 0 values [a: boolean] filter {}$0{} materialize output ()",
        "not(".repeat(100_000),
        ")".repeat(100_000)
    );
    assert!(parse(&deep).unwrap_err().message.contains("less nesting"));
    let mut expr = crate::Expr::Slot(0);
    for _ in 0..1000 {
        expr = crate::Expr::Not(Box::new(expr));
    }
    let mut query = parse("pipeline 0 values [a: boolean] filter $0 materialize output ()").unwrap();
    query.pipelines[0].steps = vec![crate::Step::Filter(expr)];
    assert!(verify(&query).unwrap_err().message.contains("nested more than"));
}
