"""DataFusion: batches in memory, one partition per thread, or Parquet files."""

import datafusion
import pyarrow
import pyarrow.parquet
from datafusion import SessionConfig, SessionContext


def version():
    return datafusion.__version__


class Engine:
    def __init__(self, request):
        threads = request["threads"]
        self.context = SessionContext(SessionConfig().with_target_partitions(threads))
        for name, table in request["tables"].items():
            if request["from"] == "parquet":
                self.context.register_parquet(name, table["path"])
                continue
            columns = ", ".join(f'"{column}"' for column in table["columns"])
            files = SessionContext(SessionConfig().with_target_partitions(threads))
            files.register_parquet("file", table["path"])
            batches = files.sql(f'select {columns} from "file"').collect()
            parts = [batches[start::threads] for start in range(threads)]
            self.context.register_record_batches(name, [part for part in parts if part] or [batches])

    def run(self, sql):
        return self.context.sql(sql).collect()

    def rows(self, result):
        for batch in result:
            columns = [column.to_pylist() for column in batch.columns]
            yield from zip(*columns)
