"""Polars: data frames in memory, or lazy scans of Parquet files, through its SQL."""

import polars

# Polars sums 32-bit integers in 32 bits and wraps, so columns that queries sum are held in 64.
SUMMED = ("lo_extendedprice", "lo_revenue", "lo_supplycost")


def version():
    return polars.__version__


class Engine:
    def __init__(self, request):
        frames = {}
        for name, table in request["tables"].items():
            summed = [polars.col(column).cast(polars.Int64) for column in table["columns"] if column in SUMMED]
            lazy = polars.scan_parquet(table["path"]).select(table["columns"]).with_columns(summed)
            frames[name] = lazy.collect().rechunk().lazy() if request["from"] == "memory" else lazy
        self.context = polars.SQLContext(frames, eager=False)

    def run(self, sql):
        return self.context.execute(sql).collect(engine="streaming")

    def rows(self, result):
        return result.rows()
