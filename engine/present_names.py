"""The public names of what presents answers, for type checkers: part of those in ``api``, which loads them by name."""

from __future__ import annotations

from capacity_tui.engine.present import summary as _present_summary
from capacity_tui.engine.present.audit import audit_as_dict as audit_as_dict
from capacity_tui.engine.present.audit import figure_rows as figure_rows
from capacity_tui.engine.present.audit import setting_rows as setting_rows
from capacity_tui.engine.present.benchmark_figures import benchmark_figure_text as benchmark_figure_text
from capacity_tui.engine.present.benchmark_figures import benchmark_parts as benchmark_parts
from capacity_tui.engine.present.explanation import ExplanationText as ExplanationText
from capacity_tui.engine.present.explanation import FormulaInput as FormulaInput
from capacity_tui.engine.present.explanation import FormulaStep as FormulaStep
from capacity_tui.engine.present.explanation import explain_along as explain_along
from capacity_tui.engine.present.explanation import explanation_as_dict as explanation_as_dict
from capacity_tui.engine.present.explanation import explanation_text as explanation_text
from capacity_tui.engine.present.explanation import followed as followed
from capacity_tui.engine.present.exported import exported_plan as exported_plan
from capacity_tui.engine.present.figure_columns import column_figures as column_figures
from capacity_tui.engine.present.figure_columns import column_head as column_head
from capacity_tui.engine.present.figure_columns import column_text as column_text
from capacity_tui.engine.present.figure_columns import column_unit as column_unit
from capacity_tui.engine.present.fleet.migration import MIGRATION_HEADS as MIGRATION_HEADS
from capacity_tui.engine.present.fleet.migration import MIGRATION_RIGHT as MIGRATION_RIGHT
from capacity_tui.engine.present.fleet.migration import migration_as_dict as migration_as_dict
from capacity_tui.engine.present.fleet.migration import migration_parts as migration_parts
from capacity_tui.engine.present.fleet.migration import migration_rows as migration_rows
from capacity_tui.engine.present.fleet.migration import runs_parts as runs_parts
from capacity_tui.engine.present.fleet.migration import write_migration as write_migration
from capacity_tui.engine.present.fleet.migration import write_runs as write_runs
from capacity_tui.engine.present.fleet.migration_analyzer import AWSGPUMigrationAnalyzer as AWSGPUMigrationAnalyzer
from capacity_tui.engine.present.fleet.migration_analyzer import MigrationReport as MigrationReport
from capacity_tui.engine.present.fleet.migration_analyzer import ModelSize as ModelSize
from capacity_tui.engine.present.fleet.migration_analyzer import RunReport as RunReport
from capacity_tui.engine.present.fleet.migration_analyzer import WorkloadType as WorkloadType
from capacity_tui.engine.present.fleet.offer_explanation import offer_explanation as offer_explanation
from capacity_tui.engine.present.fleet.promises import promises_as_dict as promises_as_dict
from capacity_tui.engine.present.fleet.promises import promises_parts as promises_parts
from capacity_tui.engine.present.fleet.promises import write_promises as write_promises
from capacity_tui.engine.present.fleet.recommended import recommended_as_dict as recommended_as_dict
from capacity_tui.engine.present.fleet.recommended import recommended_parts as recommended_parts
from capacity_tui.engine.present.fleet.recommended import recommended_so_far as recommended_so_far
from capacity_tui.engine.present.fleet.regions_report import regions_as_dict as regions_as_dict
from capacity_tui.engine.present.fleet.regions_report import regions_parts as regions_parts
from capacity_tui.engine.present.fleet.schedule_report import schedule_as_dict as schedule_as_dict
from capacity_tui.engine.present.fleet.schedule_report import schedule_parts as schedule_parts
from capacity_tui.engine.present.fleet.serving_fleet import serving_as_dict as serving_as_dict
from capacity_tui.engine.present.fleet.serving_fleet import serving_parts as serving_parts
from capacity_tui.engine.present.frameworks import adapter_tools as adapter_tools
from capacity_tui.engine.present.frameworks import framework_files as framework_files
from capacity_tui.engine.present.growth.growth_report import growth_as_dict as growth_as_dict
from capacity_tui.engine.present.growth.growth_report import growth_parts as growth_parts
from capacity_tui.engine.present.growth.measured_report import measured_as_dict as measured_as_dict
from capacity_tui.engine.present.growth.measured_report import measured_line as measured_line
from capacity_tui.engine.present.growth.measured_report import measured_parts as measured_parts
from capacity_tui.engine.present.growth.measured_report import ranked_as_csv as ranked_as_csv
from capacity_tui.engine.present.growth.measured_report import ranked_as_dict as ranked_as_dict
from capacity_tui.engine.present.growth.measured_report import ranked_parts as ranked_parts
from capacity_tui.engine.present.growth.sized_report import sized_job_parts as sized_job_parts
from capacity_tui.engine.present.growth.sized_report import sized_jobs_as_data as sized_jobs_as_data
from capacity_tui.engine.present.html import to_html as to_html
from capacity_tui.engine.present.machine_facts import machine_parts as machine_parts
from capacity_tui.engine.present.machine_report import job_parts as job_parts
from capacity_tui.engine.present.machine_report import machine_report_parts as machine_report_parts
from capacity_tui.engine.present.machine_report import score_parts as score_parts
from capacity_tui.engine.present.machine_report import surroundings_parts as surroundings_parts
from capacity_tui.engine.present.markdown import to_markdown as to_markdown
from capacity_tui.engine.present.needed import needed_as_dict as needed_as_dict
from capacity_tui.engine.present.needed import needed_parts as needed_parts
from capacity_tui.engine.present.parts import Part as Part
from capacity_tui.engine.present.parts import TablePart as TablePart
from capacity_tui.engine.present.parts import TextPart as TextPart
from capacity_tui.engine.present.pictures import roofline_chart as _present_roofline_chart
from capacity_tui.engine.present.pictures.pictures import PICTURES as PICTURES
from capacity_tui.engine.present.pictures.pictures import Picture as Picture
from capacity_tui.engine.present.pictures.pictures import picture_lines as picture_lines
from capacity_tui.engine.present.pictures.pictures import picture_of as picture_of
from capacity_tui.engine.present.placement import LevelText as LevelText
from capacity_tui.engine.present.placement import level_texts as level_texts
from capacity_tui.engine.present.placement import placement_as_dict as placement_as_dict
from capacity_tui.engine.present.placement import placement_parts as placement_parts
from capacity_tui.engine.present.placement import placement_remarks as placement_remarks
from capacity_tui.engine.present.plan_report import SCALING_HEADS as SCALING_HEADS
from capacity_tui.engine.present.plan_report import growth_remarks as growth_remarks
from capacity_tui.engine.present.plan_report import scaling_rows as scaling_rows
from capacity_tui.engine.present.plan_report import scaling_text as scaling_text
from capacity_tui.engine.present.plan_values import SWITCH as SWITCH
from capacity_tui.engine.present.plan_values import plan_value_text as plan_value_text
from capacity_tui.engine.present.reference.schemas import schema_names as schema_names
from capacity_tui.engine.present.reference.schemas import schema_text as schema_text
from capacity_tui.engine.present.reports import Report as Report
from capacity_tui.engine.present.reports import write_report as write_report
from capacity_tui.engine.present.results import result_as_dict as result_as_dict
from capacity_tui.engine.present.results import to_json as to_json
from capacity_tui.engine.present.results import to_yaml as to_yaml
from capacity_tui.engine.present.runs import run_history as _present_run_history
from capacity_tui.engine.present.runs.guard_report import guard_event_line as guard_event_line
from capacity_tui.engine.present.runs.guard_report import guard_rehearsal as guard_rehearsal
from capacity_tui.engine.present.runs.guard_report import guard_rehearsal_lines as guard_rehearsal_lines
from capacity_tui.engine.present.runs.profile_page import profile_page as profile_page
from capacity_tui.engine.present.runs.profile_rows import profile_rows as profile_rows
from capacity_tui.engine.present.runs.profile_rows import profile_title as profile_title
from capacity_tui.engine.present.runs.run_history import runs_as_data as runs_as_data
from capacity_tui.engine.present.runs.run_history import what_ran as what_ran
from capacity_tui.engine.present.runs.run_report import alarm_as_dict as alarm_as_dict
from capacity_tui.engine.present.runs.run_report import alarm_line as alarm_line
from capacity_tui.engine.present.runs.run_report import compared_rows as compared_rows
from capacity_tui.engine.present.runs.run_report import machine_lines as machine_lines
from capacity_tui.engine.present.runs.run_report import progress_line as progress_line
from capacity_tui.engine.present.runs.run_report import run_events as run_events
from capacity_tui.engine.present.runs.run_report import run_state_as_dict as run_state_as_dict
from capacity_tui.engine.present.search_report import SearchTable as SearchTable
from capacity_tui.engine.present.search_report import progress_text as progress_text
from capacity_tui.engine.present.search_report import reason_rows as reason_rows
from capacity_tui.engine.present.search_report import search_as_dict as search_as_dict
from capacity_tui.engine.present.search_report import search_lines as search_lines
from capacity_tui.engine.present.search_report import search_table as search_table
from capacity_tui.engine.present.sensitivity_report import TORNADO_HEADS as TORNADO_HEADS
from capacity_tui.engine.present.sensitivity_report import measurement_advice as measurement_advice
from capacity_tui.engine.present.sensitivity_report import sensitivity_as_data as sensitivity_as_data
from capacity_tui.engine.present.sensitivity_report import sensitivity_as_markdown as sensitivity_as_markdown
from capacity_tui.engine.present.sensitivity_report import tornado_headline as tornado_headline
from capacity_tui.engine.present.sensitivity_report import tornado_tables as tornado_tables
from capacity_tui.engine.present.side_by_side import Named as Named
from capacity_tui.engine.present.side_by_side import side_by_side as side_by_side
from capacity_tui.engine.present.side_by_side_pages import ComparisonTable as ComparisonTable
from capacity_tui.engine.present.side_by_side_pages import comparison_tables as comparison_tables
from capacity_tui.engine.present.side_by_side_pages import write_comparison as write_comparison
from capacity_tui.engine.present.storage import corpus as _present_corpus
from capacity_tui.engine.present.storage.corpus import corpus_as_dict as corpus_as_dict
from capacity_tui.engine.present.storage.corpus import corpus_parts as corpus_parts
from capacity_tui.engine.present.storage.corpus import corpus_picture as corpus_picture
from capacity_tui.engine.present.storage.corpus import corpus_svg as corpus_svg
from capacity_tui.engine.present.storage.database_bench import database_bench_as_dict as database_bench_as_dict
from capacity_tui.engine.present.storage.database_bench import database_bench_parts as database_bench_parts
from capacity_tui.engine.present.storage.learning import learning_as_dict as learning_as_dict
from capacity_tui.engine.present.storage.learning import learning_parts as learning_parts
from capacity_tui.engine.present.storage.patterns import growth_rows as growth_rows
from capacity_tui.engine.present.storage.patterns import pattern_remarks as pattern_remarks
from capacity_tui.engine.present.storage.patterns import pattern_storage_as_dict as pattern_storage_as_dict
from capacity_tui.engine.present.storage.patterns import pattern_storage_parts as pattern_storage_parts
from capacity_tui.engine.present.storage.training_data import disk_bytes as disk_bytes
from capacity_tui.engine.present.storage.training_data import storage_plan_as_dict as storage_plan_as_dict
from capacity_tui.engine.present.storage.training_data import storage_plan_parts as storage_plan_parts
from capacity_tui.engine.present.summary import assumed_text as assumed_text
from capacity_tui.engine.present.summary import headline as headline
from capacity_tui.engine.present.summary import note_text as note_text

roofline_limit_text = _present_roofline_chart.limit_text
RUN_COMPARED_HEADS = _present_run_history.COMPARED_HEADS
RUN_FIGURE_HEADS = _present_run_history.FIGURE_HEADS
RUN_LIST_HEADS = _present_run_history.LIST_HEADS
runs_as_csv = _present_run_history.as_csv
runs_as_json_lines = _present_run_history.as_json_lines
compared_runs_as_data = _present_run_history.compared_as_data
compared_run_rows = _present_run_history.compared_rows
run_figure_rows = _present_run_history.figure_rows
run_heading = _present_run_history.heading
run_list_rows = _present_run_history.list_rows
run_setting_rows = _present_run_history.setting_rows
run_hardware = _present_run_history.hardware_of
FigureBlock = _present_summary.Block
answer_notes = _present_summary.notes
basis_text = _present_summary.basis
chosen_settings = _present_summary.chosen
figure_blocks = _present_summary.blocks
corpus_progress = _present_corpus.progress_line
