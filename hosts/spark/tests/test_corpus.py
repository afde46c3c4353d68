"""Expressions, types, operators and tables: the same rows as plain Spark's, and whether Tandem ran them.

A query is followed by the reason that `explain` must give where Tandem does not take it; without one it must be taken.
"""

import os

import pytest
from conftest import assert_rows, check, final_plan, metric, plain, reasons, settings, tandem_nodes

TYPES = """
    id int, b boolean, i8 tinyint, i16 smallint, i32 int, i64 bigint, f32 float, f64 double, d7 decimal(7,2),
    d15 decimal(15,2), d38 decimal(38,6), dt date, ts timestamp, ntz timestamp_ntz, s string, bin binary"""


@pytest.fixture(scope="module")
def tables(spark):
    directory = spark.directory + "/corpus"
    spark.conf.set("spark.sql.ansi.enabled", "false")  # the values below overflow on purpose
    rows = """
      select cast(id as int) id,
        case when id % 11 = 0 then null else id % 2 = 0 end b,
        case when id % 7 = 0 then null else cast(id % 256 - 128 as tinyint) end i8,
        case when id % 7 = 1 then null else cast(id * 37 % 65536 - 32768 as smallint) end i16,
        case when id % 7 = 2 then null when id = 5 then 2147483647 when id = 6 then -2147483648
             else cast(id * 7919 % 1000 - 500 as int) end i32,
        case when id % 7 = 3 then null when id = 8 then 9223372036854775807L when id = 9 then -9223372036854775807L - 1L
             else id * 1000003L % 100000L - 50000L end i64,
        case id % 9 when 0 then cast('NaN' as float) when 1 then cast(-0.0 as float) when 2 then cast(0.0 as float)
             when 3 then null when 4 then cast('Infinity' as float) else cast(id / 8.0 as float) end f32,
        case id % 10 when 0 then double('NaN') when 1 then -0.0D when 2 then 0.0D when 3 then null
             when 4 then double('-Infinity') when 5 then double('Infinity') else id * 0.37 - 40 end f64,
        case when id % 5 = 0 then null else cast(id * 1.37 - 300 as decimal(7,2)) end d7,
        case when id % 5 = 1 then null else cast(id * 123456.78 - 999999 as decimal(15,2)) end d15,
        case when id % 5 = 2 then null else cast(id * 1234567890.123456 as decimal(38,6)) end d38,
        case when id % 6 = 0 then null else date_add(date '1969-06-01', cast(id * 13 % 20000 as int)) end dt,
        case when id % 6 = 1 then null else timestamp_micros(id * 86400000001 - 5000000000000) end ts,
        case when id % 6 = 2 then null else cast(timestamp_micros(id * 3600000001) as timestamp_ntz) end ntz,
        case when id % 8 = 0 then null when id % 8 = 1 then '' when id % 8 = 2 then concat('日本語', id)
             when id % 8 = 3 then concat('  x', id % 5, '  ') else concat('name', id % 20) end s,
        case when id % 8 = 0 then null else cast(concat('b', id % 4) as binary) end bin
      from range(1, 1001)"""
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frame = spark.sql(rows)
    frame.write.mode("overwrite").option("parquet.block.size", 16384).parquet(directory + "/types")
    spark.read.parquet(directory + "/types").createOrReplaceTempView("types")
    frame.where("false").coalesce(1).write.mode("overwrite").parquet(directory + "/nothing")
    spark.read.parquet(directory + "/nothing").createOrReplaceTempView("nothing")
    frame.withColumn("region", frame.id % 4).withColumn("label", frame.s.substr(1, 4)).write.mode("overwrite").partitionBy(
        "region", "label"
    ).parquet(directory + "/parts")
    spark.read.parquet(directory + "/parts").createOrReplaceTempView("parts")
    spark.sql(
        "select cast(id as int) k, cast(id % 4 as int) r, concat('dim', id) name from range(-600, 600) where id % 3 != 0"
        " union all select null, 1, 'null' union all select 5, 2, 'again'"
    ).coalesce(1).write.mode("overwrite").parquet(directory + "/dim")
    spark.read.parquet(directory + "/dim").createOrReplaceTempView("dim")
    spark.conf.unset("spark.sql.ansi.enabled")
    spark.conf.unset("spark.sql.parquet.outputTimestampType")
    return directory


NUMBERS = ["i8", "i16", "i32", "i64", "f32", "f64", "d7", "d15", "d38"]
ORDERED = NUMBERS + ["dt", "ts", "ntz", "s", "b", "bin"]

TAKEN = [
    # filters
    *[f"select id, {c} from types where {c} is not null" for c in ORDERED],
    *[f"select id from types where {c} = (select max({c}) from types where id < 500)" for c in ("i32", "d15", "dt")],
    "select id from types where i32 > 10 and i64 < 20000 or s is null",
    "select id from types where not (i32 > 10)",
    "select id from types where b",
    "select id from types where b = false and id > 10",
    "select id from types where i32 in (1, 2, 3, null) or id in (7, 8)",
    "select id from types where i32 not in (1, 2, 3)",
    "select id from types where i32 in (" + ", ".join(map(str, range(-100, 100))) + ")",
    "select id from types where s in ('name3', '', '日本語2')",
    "select id from types where i32 <=> null",
    "select id from types where i32 <=> i16",
    "select id from types where s like 'name1%'",
    "select id from types where s like '%本%'",
    "select id from types where s like '_本_1%'",
    r"select id from types where s like 'name\\_%' or s like '%1_'",
    "select id from types where s like 'n!_m%' escape '!' or s like '%!!%' escape '!' or s like 'name1_' escape '!'",
    "select id from types where startswith(s, '日') or endswith(s, '7') or contains(s, 'me1')",
    "select id from types where s > 'name15'",
    "select id from types where s >= '日'",
    "select id from types where dt between date '1980-01-01' and date '1990-01-01'",
    "select id from types where dt < date '1970-01-01'",
    "select id from types where ts > timestamp '1970-06-01 00:00:00'",
    "select id from types where ntz > timestamp_ntz '1970-01-10 00:00:00'",
    "select id from types where d7 > 100.5",
    "select id from types where d15 between -500000.00 and 12345678.90",
    "select id from types where bin = X'6231'",
    # floats: NaN is the largest and equals itself, −0.0 equals 0.0
    *[f"select id, {c} from types where {c} {op} {v}" for c in ("f32", "f64") for op in ("=", "<", ">=", "!=")
      for v in (f"cast('NaN' as {'float' if c == 'f32' else 'double'})", "0.0", "-0.0", "1.5")],
    "select id from types where f64 in (0.0D, double('NaN'), 2.5D)",
    "select id, isnan(f64) n from types where isnan(f32) or f64 is null",
    "select f64, count(*) from types group by f64",
    "select f32, count(*) from types group by f32",
    "select min(f64), max(f64), min(f32), max(f32) from types where id % 10 != 3",
    "select min(f64), max(f64) from types where id % 10 in (1, 2)",
    # expressions
    "select id, i32 + 1, i16 - i8, i32 * 2, -i8, abs(i32), abs(i64 + 1) from types where id not in (5, 6, 8, 9) and i8 > -128",
    "select id, i64 + i32, i64 - 1, i8 * i32 from types where id not in (5, 6, 8, 9)",
    "select id, f64 + 1, f64 * f32, -f64, abs(f32), f64 / 3.0D from types where id > 3",
    "select id, d7 + d7, d7 - 1, d7 * d7, d15 * (1 - d7), -d15, abs(d7) from types where id > 3",
    "select id, d15 * d15, d15 + 1.005, d7 * 3 from types where id > 3",
    "select id, i32 % 7, i64 % 13, i64 div 7 from types where id > 10",
    "select id, i32 % i8 from types where i8 != 0",
    "select id, case when i32 > 0 then 'up' when i32 < 0 then 'down' end c, if(b, i8, i16) f from types where id > 1",
    "select id, coalesce(i32, i16, 0), nvl(s, 'none'), nullif(i8, 3) from types where id > 1",
    "select id, year(dt), quarter(dt), month(dt), day(dt), dayofyear(dt), dayofweek(dt), weekofyear(dt) from types where id > 1",
    "select id, datediff(dt, date '2000-01-01') from types where id > 1",
    "select id, length(s), octet_length(s), trim(s), ltrim(s), rtrim(s), substring(s, 2, 3), concat(s, '!', s) from types where id > 1",
    "select id, md5(s), lpad(s, 6, '日x'), rpad(s, 9, 'ab'), lpad(s, -1, 'x'), rpad(s, 12, ''), repeat(s, 2), repeat(s, -1), translate(s, 'na日m', 'xy') from types where id > 1",
    "select id, i8 & 5, i16 | i8, i32 ^ i16, ~i64, ~i8, i32 & null from types where id > 1",
    "select id, shiftleft(i32, i8), shiftright(i64, i8), shiftleft(i64, 63), shiftright(i32, -1) from types where id > 1",
    "select id, cast(i8 as int), cast(i32 as bigint), cast(i32 as double), cast(i16 as float) from types where id > 1",
    "select id, cast(i32 as decimal(12,2)), cast(d7 as decimal(10,1)), cast(d7 as int), cast(d7 as double) from types where id > 1",
    "select id, cast(i32 as string), cast(b as string), cast(b as int), cast(i8 as boolean) from types where id > 1",
    "select id, cast(f64 as int) from types where f64 > -1000 and f64 < 1000",
    # aggregates
    "select count(*), count(i32), count(s), count(i32, s) from types where id > 1",
    "select sum(i8), sum(i16), sum(i32), sum(i64) from types where id not in (8, 9)",
    "select sum(f32), sum(f64), avg(f64), avg(f32) from types where id % 9 > 4 and id % 10 > 5",
    "select sum(d7), sum(d15), sum(d38), avg(d7), avg(d15), avg(d38) from types where id > 1",
    "select avg(i8), avg(i16), avg(i32), avg(i64) from types where id > 1",
    "select min(i8), max(i16), min(i64), max(d7), min(d15), max(d38), min(dt), max(ts), min(ntz), min(b), max(b) from types where id > 1",
    *[f"select {c}, count(*), sum(id) from types where id > 1 group by {c}" for c in ORDERED if c not in ("f32", "f64")],
    "select i32 % 10 k, s, sum(i16), avg(d15), count(*) from types group by i32 % 10, s",
    "select s, sum(i32) filter (where b), count(*) filter (where i8 > 0) from types where id not in (5, 6) group by s",
    "select distinct s, b from types",
    "select count(distinct s) from types",
    "select s, count(distinct i8), sum(i16) from types group by s",
    "select bool_and(b), bool_or(b), every(i32 > 0) from types where id > 1",
    "select s, sum(d7) total from types group by s having sum(d7) > 0 order by total, s limit 5",
    "select id, s from types where id > 500 order by id limit 7",
    "select sum(i32) from types where i32 > 100000 and i32 < 100001",
    # no rows
    "select count(*), sum(i32), sum(d15), avg(i64), avg(d15), min(s is null), max(f64) from nothing where id > 1",
    "select sum(d7), avg(d7), sum(d15), count(i32) from types where id < 0",
    # joins
    "select t.id, d.name from types t join dim d on t.i32 = d.k",
    "select t.id, d.name from types t left join dim d on t.i32 = d.k where t.id > 2",
    "select /*+ broadcast(d) */ t.id, d.name from types t left join dim d on t.i32 = d.k and d.r > t.i8 where t.id > 2",
    "select /*+ broadcast(d) */ t.id, d.name from dim d right join types t on t.i32 = d.k where t.id > 2",
    "select /*+ broadcast(d) */ t.id from types t left semi join dim d on t.i32 = d.k",
    "select /*+ broadcast(d) */ t.id from types t left semi join dim d on t.i32 = d.k and d.r < t.i8",
    "select /*+ broadcast(d) */ t.id from types t left anti join dim d on t.i32 = d.k where t.id > 2",
    "select id from types where i32 in (select k from dim where r = 1)",
    "select id from types where i32 not in (select k from dim where k is not null) and id > 2",
    "select id from types where i32 not in (select k from dim where false) and id > 2",
    "select id from types where exists (select 1 from dim where k = i32) or id < 20",
    "select d.name, sum(t.i16) from types t join dim d on t.i32 = d.k group by d.name",
    "select /*+ broadcast(d) */ t.id, d.name from types t join dim d on t.i32 = d.k and t.i16 % 4 = d.r",
    "select /*+ broadcast(u) */ t.id, u.id from types t join types u on t.s = u.s and t.i8 = u.i8",
    "select /*+ broadcast(u) */ t.id, u.id from types t join types u on t.dt = u.dt and t.d7 = u.d7",
    "select /*+ broadcast(u) */ count(*) from types t join types u on t.f64 = u.f64",
    "select a.name, b.name, count(*) from types t join dim a on t.i32 = a.k join dim b on t.i16 = b.k group by a.name, b.name",
    # partitioned tables
    "select region, label, count(*), sum(i32) from parts where id > 2 group by region, label",
    "select id, label from parts where region = 2 and i32 > 0",
    "select id from parts where label is null and id > 0",
    "select p.id, p.region from parts p join dim d on p.region = d.r where d.name = 'dim7' and p.id > 3",
    "select sum(p.i32) from parts p join dim d on p.region = d.r where d.k = 5 and p.id not in (5, 6)",
    # case of names
    "select ID, I32 from types where I32 > 100",
    # subqueries
    "select id from types where i32 > (select avg(i32) from types)",
    "select id from types where i32 = (select k from dim where name = 'nobody') and id > 1",
]

# AQE finds that these have no rows and replaces what is left of the plan: only the rows can be compared.
EMPTY = [
    "select s, sum(i32), avg(d7) from nothing group by s",
    "select * from nothing where id > 3",
    "select id from types where i32 not in (select k from dim) and id > 2",
]

NOT_TAKEN = [
    ("select id, i32 from types", "is not a filter"),
    ("select count(distinct s), sum(distinct i8) from types", "is not a filter"),  # an Expand
    ("select id, upper(s) from types where id > 1", "upper"),
    ("select id, d7 / d15 from types where id > 1 and d15 != 0", "division of decimals"),
    ("select id, f64 / f32 from types where f32 > 1", "division of floats"),
    ("select id, cast(s as int) from types where s = 'x'", "cast from STRING to INT"),
    ("select id, hour(ts) from types where id > 1", "hour"),
    ("select id, date_format(dt, 'yyyy') from types where id > 1", "date_format"),
    ("select id, s rlike 'a.*b' from types where id > 1", "rlike"),
    ("select stddev(f64) from types where id % 10 > 5", "stddev"),
    ("select first(i32) from types where id = 3", "first"),
]


@pytest.mark.parametrize("sql", TAKEN)
def test_taken(spark, tables, sql):
    check(spark, sql)


@pytest.mark.parametrize("sql", [sql for sql in TAKEN if " join " in sql or " in (select" in sql or "exists" in sql])
def test_builds_that_spark_broadcasts(spark, tables, sql):
    with settings(spark, {"spark.tandem.buildBytes": "0"}):
        check(spark, sql)


def test_builds_of_files(spark, tables):
    """The daemon reads a build side itself if it is files, few bytes, and nothing else waits for it."""
    sql = ("select /*+ broadcast(d) */ d.name, sum(t.i16) from types t join (select name, k * 2 k2 from dim where k > 3) d "
           "on t.i32 = d.k2 group by d.name")
    frame = check(spark, sql, nodes=1)
    assert "[Project" in tandem_nodes(frame)[0] and metric(frame, "blocksSent") == 0
    with settings(spark, {"spark.tandem.buildBytes": "10"}):
        assert metric(check(spark, sql, nodes=2), "blocksSent") == 1
    # An aggregate is not in the files.
    of_groups = "select max(k) m from dim where k > 1 group by r"
    check(spark, f"select /*+ broadcast(d) */ t.id from types t join ({of_groups}) d on t.i32 = d.m", nodes=2)


def test_builds_of_files_beside_broadcasts(spark, tables):
    """AQE must not take a broadcast that is still to be made for the whole pipeline: it would drop what is above."""
    for groups in ("group by r", ""):
        joined = ("select /*+ broadcast(d), broadcast(x) */ t.id from types t join dim d on t.i32 = d.k "
                  f"join (select min(r) r, max(k) m from dim where k > 1 {groups}) x on t.i16 % 4 = x.r")
        everything = [row.id for row in check(spark, joined, nodes=2).collect()]
        assert len(everything) > 20
        for limit in (1, 10, len(everything) - 1):
            found = [row.id for row in spark.sql(f"{joined} limit {limit}").collect()]
            assert len(found) == limit and set(found) <= set(everything)
        ordered = spark.sql(f"{joined} order by t.id desc")
        assert [row.id for row in ordered.collect()] == sorted(everything, reverse=True)
        assert "Coalesce 1" not in final_plan(ordered)


@pytest.mark.parametrize("sql", [
    # a join inside of what is broadcast, whose other side is not a pipeline
    "select t.id, x.name from types t join (select /*+ broadcast(d) */ a.m, d.name from "
    "(select max(k) m from dim group by r) a left join dim d on a.m = d.k) x on t.i32 = x.m where t.id > 1",
    # one build that cannot be taken, one that can
    "select /*+ broadcast(a), broadcast(b) */ t.id, a.name from types t join dim a on t.i32 = a.k "
    "join (select k from dim where upper(name) like 'DIM1%') b on t.i16 = b.k where t.id > 1",
    # no partition, so no file, is left of a build; and one
    "select /*+ broadcast(p) */ t.id, p.label from types t left join parts p on t.id = p.id and p.region = 99 where t.id > 1",
    "select /*+ broadcast(p) */ t.id, p.label, p.region from types t join parts p on t.id = p.id and p.region = 2 where t.id > 1",
])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_builds_of_many_forms(spark, tables, sql, adaptive):
    with settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        check(spark, sql)


def test_switched_off_between_planning_and_running(spark, tables):
    sql = "select d.name, sum(t.i16) from types t join dim d on t.i32 = d.k group by d.name"
    want = plain(spark, sql)
    frame = spark.sql(sql)
    assert "runs 1 part of this plan" in reasons(frame)
    with settings(spark, {"spark.tandem.enabled": "false"}):
        assert_rows(want, frame.collect())
    assert not tandem_nodes(frame)


def test_few_rows_are_sorted_in_one_task(spark, tables):
    sql = "select s, sum(i16) total, count(*) n from types group by s order by n desc, s desc nulls first"
    want = plain(spark, sql)
    frame = spark.sql(sql)
    assert frame.collect() == want
    assert "rangepartitioning" not in final_plan(frame) and "Coalesce 1" in final_plan(frame)
    with settings(spark, {"spark.sql.adaptive.coalescePartitions.minPartitionSize": "10"}):
        frame = spark.sql(sql)
        assert frame.collect() == want
        assert "rangepartitioning" in final_plan(frame)


@pytest.mark.parametrize("sql", EMPTY)
def test_empty(spark, tables, sql):
    assert_rows(plain(spark, sql), spark.sql(sql).collect(), sql)


def check_not_taken(spark, sql, reason):
    want = plain(spark, sql)
    frame = spark.sql(sql)
    assert_rows(want, frame.collect(), sql)
    assert not any("PartialAggregate" in line for line in tandem_nodes(frame))
    assert reason in reasons(frame), reasons(frame)


@pytest.mark.parametrize("sql, reason", NOT_TAKEN)
def test_not_taken(spark, tables, sql, reason):
    check_not_taken(spark, sql, reason)


def test_casts_of_long_decimals_and_of_the_largest_doubles(spark, tables):
    """Spark casts decimals to int through doubles, which round, and takes 2^63 for the largest bigint."""
    path = tables + "/casts"
    spark.sql("select id, cast(concat(id, '.999999999999999999') as decimal(38,18)) d, cast(id + 0.99999 as decimal(15,5)) d15, "
              "9.223372036854775808E18D f from range(5)").write.mode("overwrite").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("casts")
    for kind in ("tinyint", "smallint", "int"):
        check_not_taken(spark, f"select id, cast(d as {kind}) from casts where id > 1", "cast from DECIMAL(38,18) to")
    check(spark, "select id, cast(d as bigint), cast(d15 as int), try_cast(d15 as tinyint) from casts where id > 1")
    check_not_taken(spark, "select id, try_cast(f as bigint) from casts where id > 1", "cast from DOUBLE to BIGINT by try_cast")
    check(spark, "select id, cast(f as bigint) from casts where id > 1", on_jvm=None)  # the daemon refuses, Spark decides


def test_sums_as_doubles_can_be_left_to_spark(spark, tables):
    with settings(spark, {"spark.tandem.floatSums": "false"}):
        for average in ("avg(i32)", "avg(i64)", "avg(f32)", "sum(f64)"):
            check_not_taken(spark, f"select {average} from types where id > 10 and id % 10 > 5", "floatSums=false")
        check(spark, "select avg(i8), avg(i16), sum(i64), avg(d15) from types where id > 10", nodes=1)


@pytest.mark.parametrize("sql", [
    "select sum(9223372036854775000 + id) from types where id > 1",
    "select id, i32 + 1 from types where id < 9",       # overflows
    "select id, -i64 from types where id < 20",
    "select id, i32 % (i8 - i8) from types where id > 1",
    "select id, cast(i64 as int) from types where id > 1",
    "select id, cast(f64 as bigint) from types where id > 1",
    "select id, cast(i32 as decimal(4,2)) from types where id > 1",
    "select id, cast(d38 as decimal(10,2)) from types where id > 1",
    r"select id from types where s like 'na\\me%'",
    "select id from types where s like 'name!' escape '!'",
])
def test_ansi_errors_are_sparks_own(spark, tables, sql):
    with pytest.raises(Exception) as want:
        plain(spark, sql)
    with pytest.raises(Exception) as got:
        spark.sql(sql).collect()
    assert condition(want.value) and condition(want.value) == condition(got.value)


def condition(error):
    """Returns the class of an error of Spark's, which stands in brackets in its message."""
    text = str(error)
    return text[text.index("[") : text.index("]") + 1] if "[" in text else None


@pytest.mark.parametrize("sql", [
    "select sum(i64), sum(d38) from types",
    "select id, i32 + 1, i64 * 3, -i64, abs(i64) from types where id < 20",
    "select id, i32 % (i8 - i8), f64 / (f32 - f32) from types where id > 1",
    "select id, cast(i32 as decimal(4,2)) from types where id > 1",
    "select id, d38 * d38 from types where id > 990",
])
def test_old_semantics(spark, tables, sql):
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        assert_rows(plain(spark, sql), spark.sql(sql).collect(), sql)


@pytest.mark.parametrize("values", [
    {"spark.sql.adaptive.enabled": "false"},
    {"spark.sql.session.timeZone": "America/New_York"},
    {"spark.sql.caseSensitive": "true"},
    {"spark.sql.files.maxPartitionBytes": "20000"},
    {"spark.sql.parquet.enableVectorizedReader": "false"},
    {"spark.sql.codegen.wholeStage": "false"},
    {"spark.tandem.mode": "gpu"},
], ids=lambda values: next(iter(values)))
def test_under_other_settings(spark, tables, values):
    with settings(spark, values):
        for sql in TAKEN[-22::3] + ["select id, ts from types where ts > timestamp '1970-03-01 00:00:00'"]:
            if "ID" not in sql:
                check(spark, sql)


def test_on_a_device(spark, tables):
    """Pipelines run on the OpenCL device of the node, builds of files too, and the node says so."""
    sql = "select d.name, sum(t.i16), count(*) from types t join dim d on t.i32 = d.k where t.id > 5 group by d.name"
    assert metric(check(spark, sql), "devicePipelines") == 0
    with settings(spark, {"spark.tandem.mode": "gpu"}):
        assert metric(check(spark, sql), "devicePipelines") > 0


def test_dynamic_pruning_reads_only_the_partitions_that_join(spark, tables):
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10m")
    sql = "select p.id, p.i32 from parts p join (select * from dim where k = 5) d on p.region = d.r where p.id > 0"
    frame = check(spark, sql)
    everything = check(spark, "select p.id, p.i32 from parts p where p.id > 0")
    dimension = spark.table("dim").count()
    assert metric(frame, "rowsIn") - dimension < metric(everything, "rowsIn") == 1000


def test_columns_that_old_files_lack_are_null(spark, tables):
    path = tables + "/evolved"
    spark.sql("select cast(id as int) a from range(10)").coalesce(1).write.mode("overwrite").parquet(path)
    spark.sql("select cast(id as int) a, cast(id as string) b from range(10, 20)").coalesce(1).write.mode("append").parquet(path)
    spark.read.option("mergeSchema", "true").parquet(path).createOrReplaceTempView("evolved")
    check(spark, "select a, b from evolved where a > 3")
    check(spark, "select b, count(*) from evolved group by b")


def test_old_files_beside_new_ones_in_a_task(spark, tables):
    """Spark begins with the largest file, which has no texts at all."""
    path = tables + "/evolved-together"
    spark.sql("select cast(id as int) a from range(5000)").coalesce(1).write.mode("overwrite").parquet(path)
    for start in (5000, 5010):
        new = spark.sql(f"select cast(id as int) a, if(id % 4 = 0, null, concat('n', id % 3)) b from range({start}, {start + 10})")
        new.coalesce(1).write.mode("append").parquet(path)
    spark.read.option("mergeSchema", "true").parquet(path).createOrReplaceTempView("together")
    with settings(spark, {"spark.sql.files.minPartitionNum": "1"}):
        assert spark.table("together").rdd.getNumPartitions() == 1
        for condition in ("b is not null", "true"):
            for _ in range(2):  # the second time from the cache
                check(spark, f"select b, count(*) from together where {condition} group by b", nodes=1)


def test_row_groups_with_different_texts(spark, tables):
    path = tables + "/groups"
    spark.sql("select id, case when id < 1000 then if(id % 2 = 0, 'a', 'c') else if(id % 2 = 0, 'b', 'd') end s "
              "from range(0, 2000, 1, 1)").write.mode("overwrite").option("parquet.block.row.count.limit", 1000).parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("groups")
    assert metric(check(spark, "select s, count(*) from groups group by s"), "rowGroups") == 2
    for condition in ("s = 'b'", "s <> 'b'"):
        frame = check(spark, f"select count(*) from groups where id >= 1000 and {condition}")
        assert frame.collect()[0][0] == 500


def test_partition_columns_that_are_never_null(spark, tables):
    spark.sql("drop table if exists never_null")
    spark.sql("create table never_null (a int, p int not null, q string not null) using parquet partitioned by (p, q)")
    spark.sql("insert into never_null values (1, 1, 'x'), (2, 1, 'y'), (3, 2, 'x'), (null, 2, 'x')")
    assert not spark.table("never_null").schema["p"].nullable
    check(spark, "select a, p, q from never_null where a > 1")
    check(spark, "select p, q, count(*), sum(a), count(p) from never_null group by p, q")
    joined = "select /*+ broadcast(n) */ t.id, n.p, n.q from types t join never_null n on t.id = n.a"
    check(spark, joined)
    check(spark, f"{joined} where n.p > 0", nodes=1)  # a build of files


@pytest.fixture
def numbered(spark, tables):
    """Eight files, each a split of its own: more than there are cores."""
    path = tables + "/numbered"
    if not os.path.exists(path):
        spark.range(8000).repartition(8).write.parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("numbered")
    with settings(spark, {"spark.sql.files.maxPartitionBytes": "100000"}):
        assert spark.table("numbered").rdd.getNumPartitions() == 8
        yield


@pytest.mark.parametrize("sql", [
    "select id, monotonically_increasing_id() n from numbered where id > 5",
    "select id, rand(42) r, spark_partition_id() p from numbered where id > 5",
    "select id from (select * from numbered where id > 5) tablesample (10 percent) repeatable (42)",
    "select id, spark_partition_id() p from (select /*+ repartition(4) */ id from numbered where id > 5)",
    "select id, spark_partition_id() p from (select id from numbered where id > 5 union all select id from numbered where id < 9)",
])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_partitions_that_are_seen_are_sparks(spark, numbered, sql, adaptive):
    with settings(spark, {"spark.sql.adaptive.enabled": adaptive}):
        check(spark, sql)


def test_random_splits_are_sparks(spark, numbered):
    def parts():
        frames = spark.sql("select id from numbered where id > 5").randomSplit([0.3, 0.7], seed=42)
        return [(frame, frame.collect()) for frame in frames]

    with settings(spark, {"spark.tandem.enabled": "false"}):
        want = parts()
    for (_, rows), (frame, found) in zip(want, parts()):
        assert tandem_nodes(frame)
        assert_rows(rows, found)


INSTANTS = """select id, case id when 3 then null when 4 then timestamp'0002-02-03 04:05:06Z' when 5 then
    timestamp'9998-12-31 23:59:59.999999Z' else timestamp_micros((id - 10) * 1000000007) end ts from range(20)"""


def test_timestamps_of_96_bits(spark, tables):
    """Spark's default."""
    path = tables + "/int96"
    spark.sql(INSTANTS).coalesce(1).write.mode("overwrite").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("int96")
    check(spark, "select id, ts from int96 where id > 1")
    check(spark, "select min(ts), max(ts), count(ts) from int96 where ts < timestamp'1970-01-01 00:00:00Z'")


def test_timestamps_of_96_bits_in_the_old_calendar(spark, tables):
    path = tables + "/int96-old"
    with settings(spark, {"spark.sql.parquet.int96RebaseModeInWrite": "LEGACY"}):
        spark.sql(INSTANTS).coalesce(1).write.mode("overwrite").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("int96_old")
    check(spark, "select id, ts from int96_old where id > 1", on_jvm=1)


def test_names_that_differ_only_in_case(spark, tables):
    path = tables + "/cases"
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        spark.sql("select id as a, id * 2 as A from range(20)").coalesce(1).write.mode("overwrite").parquet(path)
        spark.read.parquet(path).createOrReplaceTempView("cases")
        check(spark, "select a from cases where A > 7")
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_files_of_other_formats_stay_with_spark(spark, tables):
    for kind in ("csv", "orc", "json"):
        path = f"{tables}/as_{kind}"
        spark.sql("select id, s from types").write.mode("overwrite").format(kind).option("header", "true").save(path)
        spark.read.format(kind).option("header", "true").load(path).createOrReplaceTempView("other")
        frame = spark.sql("select id, s from other where s = 'name5'")
        frame.collect()
        assert not tandem_nodes(frame) and "only Parquet" in reasons(frame)


def test_the_name_of_the_file_is_sparks(spark, tables):
    frame = spark.sql("select distinct input_file_name() f from types where id > 3")
    assert all(row.f.startswith("file:") for row in frame.collect())
    assert not tandem_nodes(frame)


def test_a_changed_file_is_read_again(spark, tables):
    path = tables + "/changing"
    for count in (10, 25):
        spark.sql(f"select id from range({count})").coalesce(1).write.mode("overwrite").parquet(path)
        spark.read.parquet(path).createOrReplaceTempView("changing")
        assert check(spark, "select count(*), sum(id) from changing where id >= 0").collect()[0][0] == count


def test_spark_writes_what_tandem_reads(spark, tables):
    path = tables + "/written"
    spark.sql("select s, sum(i16) total from types where id > 4 group by s").write.mode("overwrite").parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("written")
    assert_rows(plain(spark, "select s, sum(i16) total from types where id > 4 group by s"),
                spark.sql("select s, total from written where true").collect())
    assert os.path.exists(path + "/_SUCCESS")
