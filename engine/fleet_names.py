"""The public names of fleets, for type checkers: part of those in ``api``, which loads them by name."""

from __future__ import annotations

from capacity_tui.engine.estimate.data.prices import DataPrice as DataPrice
from capacity_tui.engine.estimate.data.prices import holding_price as holding_price
from capacity_tui.engine.estimate.data.prices import moving_price as moving_price
from capacity_tui.engine.fleet.checking import check_fleet_files as check_fleet_files
from capacity_tui.engine.fleet.migration import alternative as _fleet_migration_alternative
from capacity_tui.engine.fleet.migration import question as _fleet_migration_question
from capacity_tui.engine.fleet.migration.alternative import Alternative as Alternative
from capacity_tui.engine.fleet.migration.alternative import Migration as Migration
from capacity_tui.engine.fleet.migration.alternative import MovePart as MovePart
from capacity_tui.engine.fleet.migration.alternative import Recommendation as Recommendation
from capacity_tui.engine.fleet.migration.batches import WorkloadRun as WorkloadRun
from capacity_tui.engine.fleet.migration.batches import run_workloads as run_workloads
from capacity_tui.engine.fleet.migration.batches import workloads_of as workloads_of
from capacity_tui.engine.fleet.migration.jobs import JobWords as JobWords
from capacity_tui.engine.fleet.migration.jobs import question_of_job as question_of_job
from capacity_tui.engine.fleet.migration.jobs import question_of_workload as question_of_workload
from capacity_tui.engine.fleet.migration.migrate import migrate as migrate
from capacity_tui.engine.fleet.migration.promises import check_promises as check_promises
from capacity_tui.engine.fleet.migration.question import JOB_KINDS as JOB_KINDS
from capacity_tui.engine.fleet.migration.question import JobKind as JobKind
from capacity_tui.engine.fleet.migration.question import MigrationQuestion as MigrationQuestion
from capacity_tui.engine.fleet.migration.question import job_kind_called as job_kind_called
from capacity_tui.engine.fleet.migration.question import job_kind_of as job_kind_of
from capacity_tui.engine.fleet.prices.price_feed import refresh_prices as refresh_prices
from capacity_tui.engine.fleet.prices.price_list import ListedPrices as ListedPrices
from capacity_tui.engine.fleet.prices.price_list import price_list as price_list
from capacity_tui.engine.fleet.prices.price_list import price_rows as price_rows
from capacity_tui.engine.fleet.prices.price_list import prices_as_csv as prices_as_csv
from capacity_tui.engine.fleet.recommend import DeadlineQuestion as DeadlineQuestion
from capacity_tui.engine.fleet.recommend import Recommended as Recommended
from capacity_tui.engine.fleet.recommend import recommend as recommend
from capacity_tui.engine.fleet.regions import by_region as by_region
from capacity_tui.engine.fleet.scheduling import schedule as _fleet_scheduling_schedule
from capacity_tui.engine.fleet.scheduling.schedule import schedule as schedule
from capacity_tui.engine.fleet.serving.load_curve import load_curve as load_curve
from capacity_tui.engine.fleet.serving.question import ServingQuestion as ServingQuestion
from capacity_tui.engine.fleet.serving.serve import serve as serve
from capacity_tui.engine.fleet.sizes import sizes_in_precisions as sizes_in_precisions

MigrationGoal = _fleet_migration_question.Goal
RiskLevel = _fleet_migration_alternative.Level
MigrationRemedy = _fleet_migration_alternative.Remedy
read_schedule = _fleet_scheduling_schedule.read_entries
