//! Leaving rules out changes no plan.

use super::capture::{Tables, Values};
use crate::planning::optimize::optimize;

fn tables() -> Tables {
    let mut tables = Tables::default();
    for table in ["t", "u", "v"] {
        let columns = vec![("a", Values::Key), ("b", Values::Range(1, 90, 90.0)), ("s", Values::Text)];
        tables.add(table, 1000.0, columns);
    }
    tables
}

#[tokio::test]
async fn rules_that_are_left_out_would_change_nothing() {
    let statements = [
        "select 1",
        "select a, b from t where b = 7",
        "select t.a from t join u on t.a = u.b join v on u.a = v.a and v.b < 5 where t.b > 3",
        "select t.a, u.a from t left join u on t.a = u.b where u.s = 'x'",
        "select distinct b from t",
        "select distinct on (b) a, b from t order by b, a",
        "select b, count(distinct a) from t group by b",
        "select 1, count(*) from t group by 1",
        "select a + b, sum(a + b) from t group by a + b",
        "select a from t union all select b from u union select a from v",
        "select a from t order by b limit 5 offset 3",
        "select * from (select a, b from t limit 10) where b > 3",
        "select a from t where exists (select 1 from u where u.b = t.b)",
        "select a from t where b in (select b from u where u.a = t.a) or s like 'x%'",
        "select a, (select max(b) from u where u.a = t.a) from t",
        "select a from t where b > (select avg(b) from u)",
        "select a from t where b > all (select b from u)",
        "select t.a, l.b from t, lateral (select b from u where u.a = t.a) l",
        "select a, sum(b) over (partition by s order by a) from t where a < 10",
        "select a from t where 1 = 0",
        "select t.a from t, u, v where t.a = u.a and u.b = v.b and t.b = v.a and t.s like 'a%'",
    ];
    for sql in statements {
        // Names that are numbered begin anew with each session.
        let (ours, hosts) = (tables(), tables());
        let ours = optimize(&ours.unoptimized(sql).await, &ours.state()).unwrap();
        let hosts = hosts.state().optimize(&hosts.unoptimized(sql).await).unwrap();
        assert_eq!(ours.display_indent().to_string(), hosts.display_indent().to_string(), "{sql}");
    }
}
