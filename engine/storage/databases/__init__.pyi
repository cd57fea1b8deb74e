from .bench import BenchQuestion as BenchQuestion
from .bench import DatabaseBench as DatabaseBench
from .bench import Latency as Latency
from .bench import measure_database as measure_database
from .machine_benchmarks import benchmark_machine as benchmark_machine
