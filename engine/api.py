"""The public names of the engine: what scripts, the screen and the command line use, and all that they use.

Names are loaded when they are first used, so that importing this module costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from capacity_tui.engine.notebook import show_with
from capacity_tui.engine.public_names import NAMES

if TYPE_CHECKING:
    from capacity_tui.engine import catalog as _catalog
    from capacity_tui.engine.accuracy import published as _accuracy_published
    from capacity_tui.engine.accuracy import render as _accuracy_render
    from capacity_tui.engine.accuracy import report as _accuracy_report
    from capacity_tui.engine.accuracy import scoring as _accuracy_scoring
    from capacity_tui.engine.accuracy import shared_runs as _accuracy_shared_runs
    from capacity_tui.engine.accuracy.fits import LeftOut as LeftOut
    from capacity_tui.engine.accuracy.fits import fitted_constants as fitted_constants
    from capacity_tui.engine.accuracy.fits import unseen_scores as unseen_scores
    from capacity_tui.engine.accuracy.mine import own_measurements as own_measurements
    from capacity_tui.engine.accuracy.predicting import accuracy_of as accuracy_of
    from capacity_tui.engine.accuracy.predicting import predictor as predictor
    from capacity_tui.engine.accuracy.published import COMPARED_KINDS as COMPARED_KINDS
    from capacity_tui.engine.accuracy.report import AccuracyReport as AccuracyReport
    from capacity_tui.engine.accuracy.shared_runs import shared_text as shared_text
    from capacity_tui.engine.accuracy.verdicts import VerdictReport as VerdictReport
    from capacity_tui.engine.accuracy.verdicts import verdicts_of as verdicts_of
    from capacity_tui.engine.catalog import Catalog as Catalog
    from capacity_tui.engine.catalog import load_catalog as load_catalog
    from capacity_tui.engine.catalog import table as _catalog_table
    from capacity_tui.engine.catalog.fleet_files.files import is_fleet_file as is_fleet_file
    from capacity_tui.engine.catalog.price_age import PriceAge as PriceAge
    from capacity_tui.engine.catalog.price_age import marked_day as marked_day
    from capacity_tui.engine.catalog.price_age import price_age as price_age
    from capacity_tui.engine.catalog.registering import register_hardware as register_hardware
    from capacity_tui.engine.catalog.rows import prices as _catalog_rows_prices
    from capacity_tui.engine.catalog.rows.workloads import HOURS_OF_A_MONTH as HOURS_OF_A_MONTH
    from capacity_tui.engine.choose import validation as _choose_validation
    from capacity_tui.engine.choose.advice.advice import Offer as Offer
    from capacity_tui.engine.choose.advice.advice import offers as offers
    from capacity_tui.engine.choose.advice.hardware_remedies import larger_devices_note as larger_devices_note
    from capacity_tui.engine.choose.advice.host_requirements import power_need as power_need
    from capacity_tui.engine.choose.advice.host_requirements import run_space as run_space
    from capacity_tui.engine.choose.advice.machine_notes import job_notes as job_notes
    from capacity_tui.engine.choose.advice.machine_notes import machine_warnings as machine_warnings
    from capacity_tui.engine.choose.advice.machine_notes import predicted_bottleneck as predicted_bottleneck
    from capacity_tui.engine.choose.answers import answer as answer
    from capacity_tui.engine.choose.answers import step_seconds as step_seconds
    from capacity_tui.engine.choose.audit import audit as _choose_audit
    from capacity_tui.engine.choose.audit.audit import Audit as Audit
    from capacity_tui.engine.choose.audit.audit import audit as audit
    from capacity_tui.engine.choose.candidates.candidate import Candidate as Candidate
    from capacity_tui.engine.choose.candidates.candidate import EstimatedPlan as EstimatedPlan
    from capacity_tui.engine.choose.candidates.reached import CheckedConstraint as CheckedConstraint
    from capacity_tui.engine.choose.command_line import command_text as command_text
    from capacity_tui.engine.choose.command_line import command_words as command_words
    from capacity_tui.engine.choose.command_line import fewest_settings as fewest_settings
    from capacity_tui.engine.choose.explaining import Explained as Explained
    from capacity_tui.engine.choose.explaining import explain as explain
    from capacity_tui.engine.choose.hardware_settings import settings_for as settings_for
    from capacity_tui.engine.choose.hardware_settings import settings_for_plan as settings_for_plan
    from capacity_tui.engine.choose.hardware_settings import settings_for_row as settings_for_row
    from capacity_tui.engine.choose.line_plan import LinePlan as LinePlan
    from capacity_tui.engine.choose.line_plan import changed_by_line as changed_by_line
    from capacity_tui.engine.choose.line_plan import plan_of_line as plan_of_line
    from capacity_tui.engine.choose.line_plan import refuse_faults as refuse_faults
    from capacity_tui.engine.choose.modes.filled import ModePlan as ModePlan
    from capacity_tui.engine.choose.modes.layout_sizes import feasible_sizes as feasible_sizes
    from capacity_tui.engine.choose.modes.limits import Limit as Limit
    from capacity_tui.engine.choose.modes.limits import to_the_limit as to_the_limit
    from capacity_tui.engine.choose.modes.mode_groups import ModeGroup as ModeGroup
    from capacity_tui.engine.choose.modes.mode_groups import single as single
    from capacity_tui.engine.choose.modes.modes import MODES as MODES
    from capacity_tui.engine.choose.modes.modes import Comparison as Comparison
    from capacity_tui.engine.choose.modes.modes import ModeName as ModeName
    from capacity_tui.engine.choose.modes.modes import compare as compare
    from capacity_tui.engine.choose.modes.modes import fill as fill
    from capacity_tui.engine.choose.modes.modes import open_fields as open_fields
    from capacity_tui.engine.choose.modes.modes import with_auto_resolved as with_auto_resolved
    from capacity_tui.engine.choose.need.answer import Needed as Needed
    from capacity_tui.engine.choose.need.need import need as need
    from capacity_tui.engine.choose.need.need import solved_path as solved_path
    from capacity_tui.engine.choose.placing import PlacedPlan as PlacedPlan
    from capacity_tui.engine.choose.placing import place_plan as place_plan
    from capacity_tui.engine.choose.placing import placed as placed
    from capacity_tui.engine.choose.proposal import open_plan as open_plan
    from capacity_tui.engine.choose.proposal import propose as propose
    from capacity_tui.engine.choose.scaling import ScaledRun as ScaledRun
    from capacity_tui.engine.choose.scaling import growing_runs as growing_runs
    from capacity_tui.engine.choose.scaling import scaling_points as scaling_points
    from capacity_tui.engine.choose.search import answer as _choose_search_answer
    from capacity_tui.engine.choose.search import question as _choose_search_question
    from capacity_tui.engine.choose.search.answer import Rejected as Rejected
    from capacity_tui.engine.choose.search.answer import SearchResult as SearchResult
    from capacity_tui.engine.choose.search.axes import parse_axis as parse_axis
    from capacity_tui.engine.choose.search.question import Question as Question
    from capacity_tui.engine.choose.search.question import parse_figures as parse_figures
    from capacity_tui.engine.choose.search.question import parse_goal as parse_goal
    from capacity_tui.engine.choose.search.question import parse_limit as parse_limit
    from capacity_tui.engine.choose.search.search import search as search
    from capacity_tui.engine.choose.sensitivity.tornado import Sensitivity as Sensitivity
    from capacity_tui.engine.choose.sensitivity.tornado import sensitivity as sensitivity
    from capacity_tui.engine.choose.space.grid import Axis as Axis
    from capacity_tui.engine.choose.whatif.together import estimate_changes as estimate_changes
    from capacity_tui.engine.cluster import own_machine as _cluster_own_machine
    from capacity_tui.engine.cluster.cluster import Cluster as Cluster
    from capacity_tui.engine.cluster.cluster import Device as Device
    from capacity_tui.engine.cluster.hardware_facts import hardware_facts as hardware_facts
    from capacity_tui.engine.cluster.measured_here import device_key as device_key
    from capacity_tui.engine.cluster.node_host import roomiest_disk as roomiest_disk
    from capacity_tui.engine.cluster.placement import placement_advice as placement_advice
    from capacity_tui.engine.cluster.quotes import Quote as Quote
    from capacity_tui.engine.cluster.quotes import chosen_quote as chosen_quote
    from capacity_tui.engine.cluster.quotes import quotes as quotes
    from capacity_tui.engine.cluster.resolve_cluster import resolve_cluster as resolve_cluster
    from capacity_tui.engine.cluster.score import Score as Score
    from capacity_tui.engine.cluster.score import score_machine as score_machine
    from capacity_tui.engine.errors import CapacityError as CapacityError
    from capacity_tui.engine.errors import MissingPartError as MissingPartError
    from capacity_tui.engine.errors import Place as Place
    from capacity_tui.engine.errors import PlanError as PlanError
    from capacity_tui.engine.errors import StorageError as StorageError
    from capacity_tui.engine.estimate import figure_table as _estimate_figure_table
    from capacity_tui.engine.estimate.classical.reasonable import reasonable_rows as reasonable_rows
    from capacity_tui.engine.estimate.estimate import Answer as Answer
    from capacity_tui.engine.estimate.figures import figure as figure
    from capacity_tui.engine.estimate.figures import figure_text as figure_text
    from capacity_tui.engine.estimate.figures import figures_of as figures_of
    from capacity_tui.engine.estimate.figures import interval_text as interval_text
    from capacity_tui.engine.estimate.figures import limit_label as limit_label
    from capacity_tui.engine.estimate.figures import panel_figures as panel_figures
    from capacity_tui.engine.estimate.filled_by import UsedShare as UsedShare
    from capacity_tui.engine.estimate.note import Note as Note
    from capacity_tui.engine.estimate.resolve import resolve_plan as resolve_plan
    from capacity_tui.engine.estimate.result import Estimate as Estimate
    from capacity_tui.engine.estimate.result import Scaling as Scaling
    from capacity_tui.engine.estimate.unsaid import with_assumed as with_assumed
    from capacity_tui.engine.explain.roofline import Roofline as Roofline
    from capacity_tui.engine.explain.roofline import roofline as roofline
    from capacity_tui.engine.extras import install_command as install_command
    from capacity_tui.engine.files import config_folder as config_folder
    from capacity_tui.engine.files import make_folder as make_folder
    from capacity_tui.engine.files import reading_error as reading_error
    from capacity_tui.engine.files import set_aside as set_aside
    from capacity_tui.engine.files import state_folder as state_folder
    from capacity_tui.engine.files import storage_error as storage_error
    from capacity_tui.engine.files import write_atomically as write_atomically
    from capacity_tui.engine.fleet_names import *
    from capacity_tui.engine.keys import Figure as Figure
    from capacity_tui.engine.keys import Key as Key
    from capacity_tui.engine.machine import doctor as _machine_doctor
    from capacity_tui.engine.machine import sample as _machine_sample
    from capacity_tui.engine.machine.benchmark import all_benchmarks as _machine_benchmark_all_benchmarks
    from capacity_tui.engine.machine.benchmark.benchmark_report import BenchmarkReport as BenchmarkReport
    from capacity_tui.engine.machine.benchmark.benchmark_report import benchmarks_folder as benchmarks_folder
    from capacity_tui.engine.machine.benchmark.benchmark_report import busy_text as busy_text
    from capacity_tui.engine.machine.benchmark.benchmark_report import read_reports as read_reports
    from capacity_tui.engine.machine.benchmark.benchmark_report import save_report as save_report
    from capacity_tui.engine.machine.benchmark.network_speed import web_address as web_address
    from capacity_tui.engine.machine.cooling import cooling_now as cooling_now
    from capacity_tui.engine.machine.detect import detect as detect
    from capacity_tui.engine.machine.doctor import DoctorReport as DoctorReport
    from capacity_tui.engine.machine.facts import Fact as Fact
    from capacity_tui.engine.machine.facts import Quantity as Quantity
    from capacity_tui.engine.machine.generations import Setting as Setting
    from capacity_tui.engine.machine.machine import Accelerator as Accelerator
    from capacity_tui.engine.machine.machine import Disk as Disk
    from capacity_tui.engine.machine.machine import Machine as Machine
    from capacity_tui.engine.machine.machine import NetworkInterface as NetworkInterface
    from capacity_tui.engine.machine.measured_constants import MeasuredEfficiency as MeasuredEfficiency
    from capacity_tui.engine.machine.plain_data import machine_as_dict as machine_as_dict
    from capacity_tui.engine.machine.sample import Sampler as Sampler
    from capacity_tui.engine.machine.vendors.vendor import GpuSample as GpuSample
    from capacity_tui.engine.models.families import family_of as family_of
    from capacity_tui.engine.models.families import plugin_problems as plugin_problems
    from capacity_tui.engine.models.families import presumed_family as presumed_family
    from capacity_tui.engine.models.known_models import KnownModel as KnownModel
    from capacity_tui.engine.models.known_models import find_known_model as find_known_model
    from capacity_tui.engine.models.known_models import known_models as known_models
    from capacity_tui.engine.models.plugins import register_model as register_model
    from capacity_tui.engine.node_names import *
    from capacity_tui.engine.plan.all_fields import OWN_PARAMETERS as OWN_PARAMETERS
    from capacity_tui.engine.plan.all_fields import all_fields as all_fields
    from capacity_tui.engine.plan.edit import Edited as Edited
    from capacity_tui.engine.plan.edit import edited as edited
    from capacity_tui.engine.plan.field_texts import field_text as field_text
    from capacity_tui.engine.plan.fields import PlanField as PlanField
    from capacity_tui.engine.plan.fields import plan_fields as plan_fields
    from capacity_tui.engine.plan.fields import plan_values as plan_values
    from capacity_tui.engine.plan.files.examples import example_names as example_names
    from capacity_tui.engine.plan.files.examples import example_text as example_text
    from capacity_tui.engine.plan.files.examples import example_title as example_title
    from capacity_tui.engine.plan.files.legacy_format import SPEC_NAMES as SPEC_NAMES
    from capacity_tui.engine.plan.files.loading import apply_settings as apply_settings
    from capacity_tui.engine.plan.files.loading import load_plan as load_plan
    from capacity_tui.engine.plan.files.loading import plan_from_data as plan_from_data
    from capacity_tui.engine.plan.files.loading import plan_from_text as plan_from_text
    from capacity_tui.engine.plan.files.saved import delete_plan as delete_plan
    from capacity_tui.engine.plan.files.saved import list_plans as list_plans
    from capacity_tui.engine.plan.files.saved import plans_folder as plans_folder
    from capacity_tui.engine.plan.files.saved import read_plan_file as read_plan_file
    from capacity_tui.engine.plan.files.saved import rename_plan as rename_plan
    from capacity_tui.engine.plan.files.saved import write_plan_file as write_plan_file
    from capacity_tui.engine.plan.files.sources import PlanSource as PlanSource
    from capacity_tui.engine.plan.files.sources import locate_plan as locate_plan
    from capacity_tui.engine.plan.files.sources import may_be_line as may_be_line
    from capacity_tui.engine.plan.files.sources import read_source as read_source
    from capacity_tui.engine.plan.files.writing import dump_plan as dump_plan
    from capacity_tui.engine.plan.imports.imported import Imported as Imported
    from capacity_tui.engine.plan.imports.imported import import_plan as import_plan
    from capacity_tui.engine.plan.imports.mistaken import refuse_files_of_tools as refuse_files_of_tools
    from capacity_tui.engine.plan.line.completing import Completion as Completion
    from capacity_tui.engine.plan.line.completing import completions as completions
    from capacity_tui.engine.plan.line.flags import line_of_flags as line_of_flags
    from capacity_tui.engine.plan.line.given_flags import PlanFlags as PlanFlags
    from capacity_tui.engine.plan.line.hardware_words import offered_accelerators as offered_accelerators
    from capacity_tui.engine.plan.line.reading import read_line as read_line
    from capacity_tui.engine.plan.line.vocabulary import line_examples as line_examples
    from capacity_tui.engine.plan.line.words import OneLine as OneLine
    from capacity_tui.engine.plan.plan import AUTO as AUTO
    from capacity_tui.engine.plan.plan import HardwareSection as HardwareSection
    from capacity_tui.engine.plan.plan import Plan as Plan
    from capacity_tui.engine.plan.plan import PricingSection as PricingSection
    from capacity_tui.engine.plan.scenarios import pinned as pinned
    from capacity_tui.engine.plan.scenarios import renamed as renamed
    from capacity_tui.engine.plan.scenarios import taken as taken
    from capacity_tui.engine.plan.scenarios import unpinned as unpinned
    from capacity_tui.engine.plan.table_text import table_text as table_text
    from capacity_tui.engine.plan.validation_errors import field_names as field_names
    from capacity_tui.engine.present_names import *
    from capacity_tui.engine.printable import printable as printable
    from capacity_tui.engine.printable import printable_lines as printable_lines
    from capacity_tui.engine.run_names import *
    from capacity_tui.engine.sampling import calibration as _sampling_calibration
    from capacity_tui.engine.sampling import collective_samples as _sampling_collective_samples
    from capacity_tui.engine.sampling import kernel_cases as _sampling_kernel_cases
    from capacity_tui.engine.sampling import kernel_samples as _sampling_kernel_samples
    from capacity_tui.engine.sampling.calibration import constants_before as constants_before
    from capacity_tui.engine.sampling.calibration import fit_samples as fit_samples
    from capacity_tui.engine.sampling.calibration import write_measured as write_measured
    from capacity_tui.engine.sampling.collective_samples import collective_groups as collective_groups
    from capacity_tui.engine.sampling.collective_samples import sample_collectives as sample_collectives
    from capacity_tui.engine.sampling.kernel_samples import sample_kernels as sample_kernels
    from capacity_tui.engine.sampling.learning import learnt_from as learnt_from
    from capacity_tui.engine.sampling.learning import sampled_constants as sampled_constants
    from capacity_tui.engine.sampling.own_runs import OwnRun as OwnRun
    from capacity_tui.engine.sampling.own_runs import fit_runs as fit_runs
    from capacity_tui.engine.sampling.own_runs import keep_run as keep_run
    from capacity_tui.engine.sampling.own_runs import kept_runs as kept_runs
    from capacity_tui.engine.sampling.own_runs import own_run as own_run
    from capacity_tui.engine.sampling.own_runs import read_runs as read_runs
    from capacity_tui.engine.sampling.own_runs import resolved_run as resolved_run
    from capacity_tui.engine.sampling.own_runs import run_entry as run_entry
    from capacity_tui.engine.sampling.samples import read_samples as read_samples
    from capacity_tui.engine.sampling.samples import sample_files as sample_files
    from capacity_tui.engine.sampling.torch_kernels import gpu_usable as gpu_usable
    from capacity_tui.engine.schema.field_meta import Knob as Knob
    from capacity_tui.engine.schema.report_formats import REPORT_FORMATS as REPORT_FORMATS
    from capacity_tui.engine.schema.report_formats import format_of_suffix as format_of_suffix
    from capacity_tui.engine.schema.stepping import around as around
    from capacity_tui.engine.schema.stepping import share_of_range as share_of_range
    from capacity_tui.engine.schema.stepping import stepped as stepped
    from capacity_tui.engine.uncertainty.intervals import Interval as Interval
    from capacity_tui.engine.units import format_bandwidth as format_bandwidth
    from capacity_tui.engine.units import format_bytes as format_bytes
    from capacity_tui.engine.units import format_count as format_count
    from capacity_tui.engine.units import format_flops as format_flops
    from capacity_tui.engine.units import format_money as format_money
    from capacity_tui.engine.units import format_number as format_number
    from capacity_tui.engine.units import format_percent as format_percent
    from capacity_tui.engine.units import format_power as format_power
    from capacity_tui.engine.units import format_quantity as format_quantity
    from capacity_tui.engine.units import format_seconds as format_seconds
    from capacity_tui.engine.units import format_temperature as format_temperature
    from capacity_tui.engine.units import parse_count as parse_count
    from capacity_tui.engine.units import parse_quantity as parse_quantity
    from capacity_tui.engine.verdict import Holds as Holds
    from capacity_tui.engine.verdict import Verdict as Verdict

    AcceleratorRow = _catalog.Accelerator
    ArchitectureRow = _catalog.Architecture
    CatalogRow = _catalog.Row
    InstanceRow = _catalog.Instance
    ModelSizeRow = _catalog.ModelSize
    ProcessorRow = _catalog.Processor
    WorkloadRow = _catalog.Workload
    WorkloadSetRow = _catalog.WorkloadSet
    CatalogTable = _catalog_table.Table
    RegionRow = _catalog_rows_prices.Region
    cluster_of_machine = _cluster_own_machine.detected
    BenchmarkProgress = _machine_benchmark_all_benchmarks.Progress
    doctor_lines = _machine_doctor.report_lines
    doctor_report = _machine_doctor.examine
    MachineSample = _machine_sample.Sample
    FIGURES = _estimate_figure_table.METRICS
    SearchAnswer = _choose_search_answer.Answer
    FigureLimit = _choose_search_question.Limit
    SearchGoal = _choose_search_question.Goal
    plan_faults = _choose_validation.faults
    plan_remarks = _choose_validation.remarks
    MeasurementKind = _accuracy_published.Kind
    ACCURACY_PAIR_HEADINGS = _accuracy_render.PAIR_HEADINGS
    ACCURACY_SCORE_HEADINGS = _accuracy_render.SCORE_HEADINGS
    ACCURACY_TITLES = _accuracy_render.TITLES
    accuracy_as_data = _accuracy_render.reports_as_data
    accuracy_as_markdown = _accuracy_render.reports_as_markdown
    accuracy_pair_cells = _accuracy_render.pair_cells
    accuracy_plot = _accuracy_render.scatter_svg
    accuracy_score_cells = _accuracy_render.score_cells
    accuracy_score_rows = _accuracy_render.score_rows
    ACCURACY_VERDICT_HEADINGS = _accuracy_render.VERDICT_HEADINGS
    accuracy_verdict_rows = _accuracy_render.verdict_rows
    read_shared_runs = _accuracy_shared_runs.read_shared
    AuditFinding = _choose_audit.Finding
    evaluate_measurements = _accuracy_report.evaluate
    AccuracyScores = _accuracy_scoring.Scores
    newest_samples = _sampling_calibration.chosen_files
    SAMPLED_KERNELS = _sampling_kernel_cases.KERNELS
    COLLECTIVE_SIZES = _sampling_collective_samples.SIZES
    QUICK_COLLECTIVE_SIZES = _sampling_collective_samples.QUICK_SIZES
    QUICK_SAMPLING_LIMIT_SECONDS = _sampling_kernel_samples.QUICK_LIMIT_SECONDS
    SAMPLING_LIMIT_SECONDS = _sampling_kernel_samples.LIMIT_SECONDS
    SampledDevice = _sampling_kernel_samples.Where
    SamplingProgress = _sampling_kernel_samples.Progress
    sampling_backend = _sampling_kernel_samples.choose_backend
    sampling_grid = _sampling_kernel_samples.grid_of

_HOMES = {
    public or name: (home, name)
    for home, names in NAMES.items()
    for name, _, public in (entry.partition(":") for entry in names.split())
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home, name_there = _HOMES[name]
    return getattr(import_module(f"{__package__}.{home}"), name_there)


def __dir__() -> list[str]:
    return sorted(_HOMES)


def _as_html(result: object) -> str:
    from capacity_tui.engine.present.notebook import as_html  # noqa: PLC0415 - loaded where a notebook asks for it

    return as_html(result)


show_with(_as_html)
