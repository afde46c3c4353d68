"""DuckDB: native tables in memory, or views of Parquet files."""

import duckdb


def version():
    return duckdb.__version__


class Engine:
    def __init__(self, request):
        self.connection = duckdb.connect(":memory:", config={"threads": request["threads"]})
        kind = "table" if request["from"] == "memory" else "view"
        for name, table in request["tables"].items():
            columns = ", ".join(table["columns"])
            self.connection.execute(f"create {kind} {name} as select {columns} from read_parquet('{table['path']}')")

    def run(self, sql):
        return self.connection.execute(sql).fetchall()

    def rows(self, result):
        return result
