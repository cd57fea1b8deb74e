"""The public names of runs, storage and growth, for type checkers: part of those in ``api``, which loads them."""

from __future__ import annotations

from capacity_tui.engine.growth import growth_fit as _growth_growth_fit
from capacity_tui.engine.growth import measuring as _growth_measuring
from capacity_tui.engine.growth import series as _growth_series
from capacity_tui.engine.growth import setting_grid as _growth_setting_grid
from capacity_tui.engine.growth.growth_fit import GrowthFit as GrowthFit
from capacity_tui.engine.growth.growth_fit import fit_growth as fit_growth
from capacity_tui.engine.growth.kept_measurements import KeptMeasurements as KeptMeasurements
from capacity_tui.engine.growth.machines_for_size import SizedJob as SizedJob
from capacity_tui.engine.growth.machines_for_size import SizedMachines as SizedMachines
from capacity_tui.engine.growth.machines_for_size import machines_for_size as machines_for_size
from capacity_tui.engine.growth.measuring import Measurement as Measurement
from capacity_tui.engine.growth.measuring import Measuring as Measuring
from capacity_tui.engine.growth.output_metric import parse_output_metric as parse_output_metric
from capacity_tui.engine.growth.points_file import read_points as read_points
from capacity_tui.engine.growth.ranking import RankedSetting as RankedSetting
from capacity_tui.engine.growth.ranking import ranked_settings as ranked_settings
from capacity_tui.engine.growth.series import larger_than_failed as larger_than_failed
from capacity_tui.engine.growth.series import measure_series as measure_series
from capacity_tui.engine.growth.series import points_of as points_of
from capacity_tui.engine.growth.series import wanted_sizes as wanted_sizes
from capacity_tui.engine.observe.command import RunningCommand as RunningCommand
from capacity_tui.engine.observe.exporting import Gauge as Gauge
from capacity_tui.engine.observe.exporting import Outlets as Outlets
from capacity_tui.engine.observe.guard.running import guarding as _observe_guard_guarding
from capacity_tui.engine.observe.guard.running import order as _observe_guard_order
from capacity_tui.engine.observe.guard.running import told as _observe_guard_told
from capacity_tui.engine.observe.guard.running.supervisor import Supervisor as Supervisor
from capacity_tui.engine.observe.guard.trainers.callback import GuardCallback as GuardCallback
from capacity_tui.engine.observe.history import places as _observe_history_places
from capacity_tui.engine.observe.history import predictions as _observe_history_predictions
from capacity_tui.engine.observe.history import recording as _observe_history_recording
from capacity_tui.engine.observe.history import records as _observe_history_records
from capacity_tui.engine.observe.history import stores as _observe_history_stores
from capacity_tui.engine.observe.history.history import History as History
from capacity_tui.engine.observe.history.places import HistoryPlace as HistoryPlace
from capacity_tui.engine.observe.history.places import history_place as history_place
from capacity_tui.engine.observe.history.records import RunRecord as RunRecord
from capacity_tui.engine.observe.logs import log_figures as _observe_logs_log_figures
from capacity_tui.engine.observe.logs import user_expression as _observe_logs_user_expression
from capacity_tui.engine.observe.logs.following import LineSplitter as LineSplitter
from capacity_tui.engine.observe.logs.line_reader import LineReader as LineReader
from capacity_tui.engine.observe.logs.run_curve import RunCurve as RunCurve
from capacity_tui.engine.observe.logs.sources import LogSource as LogSource
from capacity_tui.engine.observe.logs.sources import open_log as open_log
from capacity_tui.engine.observe.monitor.alarms import Alarm as Alarm
from capacity_tui.engine.observe.monitor.finding import need_process as need_process
from capacity_tui.engine.observe.monitor.finding import output_file as output_file
from capacity_tui.engine.observe.monitor.finding import work_folder as work_folder
from capacity_tui.engine.observe.monitor.run_gauges import RunGauges as RunGauges
from capacity_tui.engine.observe.monitor.run_monitor import RunMonitor as RunMonitor
from capacity_tui.engine.observe.monitor.run_monitor import RunState as RunState
from capacity_tui.engine.observe.profile.bottleneck import parse_thresholds as parse_thresholds
from capacity_tui.engine.observe.profile.bottleneck import thresholds_of_tier as thresholds_of_tier
from capacity_tui.engine.observe.profile.entry import begun_profile as begun_profile
from capacity_tui.engine.observe.profile.entry import profile_entry as profile_entry
from capacity_tui.engine.observe.profile.from_output import WorkInOutput as WorkInOutput
from capacity_tui.engine.observe.profile.gauges import gauges_of as gauges_of
from capacity_tui.engine.observe.profile.plain_data import profile_as_json as profile_as_json
from capacity_tui.engine.observe.profile.plain_data import snapshot_as_dict as snapshot_as_dict
from capacity_tui.engine.observe.profile.profile import Profile as Profile
from capacity_tui.engine.observe.profile.profile import ProfilingSummary as ProfilingSummary
from capacity_tui.engine.observe.profile.profiling import ProfilingEngine as ProfilingEngine
from capacity_tui.engine.observe.profile.snapshots import ResourceSnapshot as ResourceSnapshot
from capacity_tui.engine.observe.runs.live_run import LiveRun as LiveRun
from capacity_tui.engine.observe.runs.live_run import list_runs as list_runs
from capacity_tui.engine.observe.runs.live_run import read_run as read_run
from capacity_tui.engine.observe.runs.run_course import RunCourse as RunCourse
from capacity_tui.engine.observe.runs.run_course import course_of as course_of
from capacity_tui.engine.observe.runs.run_course import gpus_of as gpus_of
from capacity_tui.engine.observe.runs.run_course import number as number
from capacity_tui.engine.observe.runs.run_course import own_memory as own_memory
from capacity_tui.engine.observe.runs.run_follower import RunFollower as RunFollower
from capacity_tui.engine.observe.runs.run_follower import newest_look as newest_look
from capacity_tui.engine.observe.runs.run_writer import RunWriter as RunWriter
from capacity_tui.engine.storage import corpus as _storage_corpus
from capacity_tui.engine.storage import fitting as _storage_fitting
from capacity_tui.engine.storage import patterns as _storage_patterns
from capacity_tui.engine.storage.databases.bench import BenchQuestion as BenchQuestion
from capacity_tui.engine.storage.databases.bench import DatabaseBench as DatabaseBench
from capacity_tui.engine.storage.databases.bench import measure_database as measure_database
from capacity_tui.engine.storage.databases.machine_benchmarks import benchmark_machine as benchmark_machine
from capacity_tui.engine.storage.fitting import CorpusFit as CorpusFit
from capacity_tui.engine.storage.fitting import FitQuestion as FitQuestion
from capacity_tui.engine.storage.fitting import fit_corpus as fit_corpus
from capacity_tui.engine.storage.learning.forecast import LearningForecast as LearningForecast
from capacity_tui.engine.storage.learning.forecast import learning_forecast as learning_forecast
from capacity_tui.engine.storage.learning.hardware_analyzer import BenchmarkResults as BenchmarkResults
from capacity_tui.engine.storage.learning.hardware_analyzer import HardwareAnalyzerV2 as HardwareAnalyzerV2
from capacity_tui.engine.storage.learning.hardware_analyzer import HardwareProfile as HardwareProfile
from capacity_tui.engine.storage.learning.storage_estimator import LevelEstimate as LevelEstimate
from capacity_tui.engine.storage.learning.storage_estimator import StorageBreakdown as StorageBreakdown
from capacity_tui.engine.storage.learning.storage_estimator import StorageEstimator as StorageEstimator
from capacity_tui.engine.storage.patterns import PatternLevel as PatternLevel
from capacity_tui.engine.storage.patterns import PatternStorage as PatternStorage
from capacity_tui.engine.storage.patterns import pattern_storage as pattern_storage
from capacity_tui.engine.storage.question import Known as _Known
from capacity_tui.engine.storage.question import PatternQuestion as PatternQuestion
from capacity_tui.engine.storage.training.phases import phase_plans as phase_plans
from capacity_tui.engine.storage.training.storage_plan import StoragePlan as StoragePlan
from capacity_tui.engine.storage.training.storage_plan import storage_plan as storage_plan
from capacity_tui.engine.storage.zipf import expected_distinct as expected_distinct
from capacity_tui.engine.storage.zipf import frequency_at_rank as frequency_at_rank

MeasuringSetting = _growth_measuring.Setting
MeasurementSeries = _growth_series.Series
parse_setting_grid = _growth_setting_grid.parse_grid
GROWTH_FIGURES = _growth_growth_fit.FIGURES
GROWTH_TARGETS = _growth_growth_fit.TARGETS
fit_all_growth = _growth_growth_fit.fit_all
begin_guarding = _observe_guard_guarding.begin
guard_order = _observe_guard_guarding.new_order
take_up_guarding = _observe_guard_guarding.take_up
GuardOrder = _observe_guard_order.Order
GuardListeners = _observe_guard_told.Listeners
record_run = _observe_history_recording.record
HISTORY_OFF = _observe_history_places.OFF
HISTORY_VARIABLE = _observe_history_places.VARIABLE
history_entry = _observe_history_predictions.entry_of
RUN_KINDS = _observe_history_records.KINDS
WantedRuns = _observe_history_stores.Wanted
read_run_log = _observe_logs_log_figures.read_log
parse_log_expression = _observe_logs_user_expression.parse_user_expression
pattern_growth = _storage_patterns.growth
KnownOfPatterns = _Known
CorpusRead = _storage_corpus.Read
CorpusLevel = _storage_fitting.LevelFit
