from .bench import BenchQuestion as BenchQuestion
from .bench import DatabaseBench as DatabaseBench
from .bench import Latency as Latency
from .bench import benchmark_machine as benchmark_machine
from .bench import measure_database as measure_database
