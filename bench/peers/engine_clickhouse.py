"""ClickHouse, embedded as chdb: MergeTree tables with low-cardinality strings, or Parquet files."""

import json
import os

import chdb
from chdb import session

# A string column with fewer values than this is worth a dictionary, says ClickHouse's manual.
LOW_CARDINALITY = 10_000


def version():
    return chdb.engine_version if isinstance(getattr(chdb, "engine_version", None), str) else chdb.__version__


class Engine:
    def __init__(self, request):
        self.settings = f"settings max_threads = {request['threads']}, join_use_nulls = 1"
        self.session = session.Session(os.path.join(request["scratch"], "clickhouse"))
        self.session.query("create database if not exists bench")
        self.session.query("use bench")
        for name, table in request["tables"].items():
            source = f"file('{table['path']}', 'Parquet')"
            plain = "settings schema_inference_make_columns_nullable = 0"
            if request["from"] == "memory":
                columns = ", ".join(self.columns(source, table["columns"], plain))
                self.session.query(
                    f"create table bench.`{name}` engine = MergeTree order by tuple() as select {columns} from {source} {plain}"
                )
            else:
                columns = ", ".join(table["columns"])
                self.session.query(f"create view bench.`{name}` as select {columns} from {source} {plain}")

    def columns(self, source, names, plain):
        """Writes the columns as expressions, low-cardinality strings converted."""
        kinds = {row[0]: row[1] for row in self.fetch(f"describe table {source} {plain}")}
        strings = [name for name in names if kinds[name] == "String"]
        counts = {}
        if strings:
            uniques = ", ".join(f"uniq({name})" for name in strings)
            counts = dict(zip(strings, self.fetch(f"select {uniques} from {source} {plain}")[0]))
        for name in names:
            low = int(counts.get(name, LOW_CARDINALITY)) < LOW_CARDINALITY
            yield f"toLowCardinality({name}) as {name}" if low else name

    def fetch(self, sql):
        return self.rows(self.session.query(sql, "JSONCompactEachRow"))

    def run(self, sql):
        return self.session.query(f"{sql} {self.settings}", "JSONCompactEachRow")

    def close(self):
        self.session.close()

    def rows(self, result):
        return [json.loads(line) for line in str(result).splitlines() if line]
