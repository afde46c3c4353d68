//! Makes a case smaller that shows a mistake: by leaving out parts of the lists of choices that it is made of, and by making
//! choices simpler, as long as it shows the same kind of mistake.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use super::{Case, Engines};

/// How long smaller cases are looked for: hundreds are tried.
const TIME: Duration = Duration::from_secs(20);

/// Returns the smallest case found, and what is wrong with it.
pub fn shrink(engines: &mut Engines, case: &Case, wrong: &str) -> (Case, String) {
    let mut best = (case.clone(), wrong.to_string());
    let start = Instant::now();
    let late = || start.elapsed() > TIME;
    let kind = |wrong: &str| wrong.split(':').next().unwrap_or_default().split(',').next_back().map(str::to_string);
    let wanted = kind(wrong);
    let size = |case: &Case| (case.statement.sql.len(), case.setup.iter().map(String::len).sum::<usize>());
    loop {
        let before = size(&best.0);
        // The statement first: what it does not name can be left out of the tables.
        for list in [2, 1, 0] {
            let mut step = best.0.choices()[list].len().next_power_of_two() / 2;
            while step > 0 {
                let mut from = 0;
                while from < best.0.choices()[list].len() {
                    let mut smaller = false;
                    for way in [Way::Remove, Way::Zero, Way::Halve] {
                        let mut choices = best.0.choices().clone();
                        let end = (from + step).min(choices[list].len());
                        if late() || from >= end || !simplify(&mut choices[list], from..end, way) {
                            continue;
                        }
                        let candidate = Case::replay(choices);
                        if size(&candidate) >= size(&best.0) {
                            continue;
                        }
                        if let Some((_, wrong)) = engines.check(std::slice::from_ref(&candidate))
                            && kind(&wrong) == wanted
                        {
                            best = (candidate, wrong);
                            smaller = true;
                        }
                    }
                    from += if smaller { 0 } else { step };
                }
                step /= 2;
            }
        }
        if late() || size(&best.0) >= before {
            return best;
        }
    }
}

/// What can be done to a run of choices.
#[derive(Clone, Copy)]
enum Way {
    Remove,
    Zero,
    Halve,
}

/// Makes a run of choices simpler; tells whether anything changed.
fn simplify(choices: &mut Vec<u32>, run: Range<usize>, way: Way) -> bool {
    match way {
        Way::Remove => choices.drain(run).next().is_some(),
        Way::Zero => {
            let changes = choices[run.clone()].iter().any(|choice| *choice > 0);
            choices[run].fill(0);
            changes
        }
        Way::Halve => {
            let changes = run.len() == 1 && choices[run.start] > 1;
            choices[run.start] /= 2;
            changes
        }
    }
}
