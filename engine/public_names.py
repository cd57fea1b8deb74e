"""Which module of the engine defines each public name, for the module that offers them."""

from __future__ import annotations

NAMES = {
    # Errors, files and words
    "errors": "CapacityError MissingPartError Place PlanError StorageError",
    "extras": "install_command",
    "files": "config_folder make_folder reading_error set_aside state_folder storage_error write_atomically",
    "printable": "printable printable_lines",
    "units": (
        "format_bandwidth format_bytes format_count format_flops format_money format_number format_percent "
        "format_power format_quantity format_seconds format_temperature parse_count parse_quantity"
    ),
    "verdict": "Verdict",
    # Catalogues
    "catalog": (
        "Accelerator:AcceleratorRow Architecture:ArchitectureRow Catalog Row:CatalogRow Instance:InstanceRow "
        "ModelSize:ModelSizeRow Processor:ProcessorRow Workload:WorkloadRow WorkloadSet:WorkloadSetRow load_catalog"
    ),
    "catalog.registering": "register_hardware",
    "catalog.price_age": "PriceAge marked_day price_age",
    "catalog.rows.prices": "Region:RegionRow",
    "catalog.table": "Table:CatalogTable",
    # Models
    "models.families": "family_of plugin_problems presumed_family",
    "models.known_models": "KnownModel find_known_model known_models",
    # Plans
    "plan.all_fields": "OWN_PARAMETERS all_fields",
    "plan.edit": "Edited edited",
    "plan.field_texts": "field_text",
    "plan.fields": "PlanField plan_fields plan_values",
    "plan.files.examples": "example_names example_text example_title",
    "plan.files.loading": "apply_settings load_plan plan_from_data plan_from_text",
    "plan.files.saved": "delete_plan list_plans plans_folder read_plan_file rename_plan write_plan_file",
    "plan.files.sources": "PlanSource locate_plan read_source",
    "plan.imports.imported": "Imported import_plan",
    "plan.scenarios": "pinned renamed taken unpinned",
    "plan.table_text": "table_text",
    "plan.validation_errors": "field_names",
    "plan.files.writing": "dump_plan",
    "plan.line.completing": "Completion completions",
    "plan.line.flags": "line_of_flags",
    "plan.line.given_flags": "PlanFlags",
    "plan.line.hardware_words": "offered_accelerators",
    "plan.line.reading": "read_line",
    "plan.line.vocabulary": "line_examples",
    "plan.line.words": "OneLine",
    "plan.plan": "AUTO HardwareSection Plan PricingSection",
    "schema.field_meta": "Knob",
    "schema.report_formats": "REPORT_FORMATS format_of_suffix",
    "schema.stepping": "around share_of_range stepped",
    # Machines and clusters
    "cluster.cluster": "Cluster Device",
    "cluster.hardware_facts": "hardware_facts",
    "cluster.measured_here": "device_key",
    "cluster.node_host": "roomiest_disk",
    "cluster.own_machine": "detected:cluster_of_machine",
    "cluster.placement": "placement_advice",
    "cluster.quotes": "Quote chosen_quote quotes",
    "cluster.resolve_cluster": "resolve_cluster",
    "cluster.score": "Score score_machine",
    "machine.benchmark.network_speed": "web_address",
    "machine.benchmark.benchmark_report": "BenchmarkReport benchmarks_folder busy_text read_reports save_report",
    "machine.cooling": "cooling_now",
    "machine.benchmark.all_benchmarks": "Progress:BenchmarkProgress",
    "machine.detect": "detect",
    "machine.doctor": "DoctorReport report_lines:doctor_lines examine:doctor_report",
    "machine.facts": "Fact Quantity",
    "machine.machine": "Accelerator Disk Machine NetworkInterface",
    "machine.measured_constants": "MeasuredEfficiency",
    "machine.plain_data": "machine_as_dict",
    "machine.sample": "Sample:MachineSample Sampler",
    "machine.generations": "Setting",
    "machine.vendors.vendor": "GpuSample",
    # Estimates
    "estimate.classical.reasonable": "reasonable_rows",
    "estimate.estimate": "Answer",
    "estimate.filled_by": "UsedShare",
    "estimate.figure_texts": "figure_text",
    "estimate.figures": "METRICS:FIGURES figure figures_of interval_text limit_label written:written_figure",
    "estimate.resolve": "resolve_plan",
    "estimate.result": "UNDER_LOAD Estimate Interval Note Scaling",
    "explain.roofline": "Roofline roofline",
    # Fleets
    "fleet.migration.alternative": (
        "Alternative Level:RiskLevel Migration MovePart Recommendation Remedy:MigrationRemedy"
    ),
    "fleet.migration.batches": "WorkloadRun run_workloads workloads_of",
    "fleet.migration.jobs": "JobWords question_of_job question_of_workload",
    "fleet.migration.migrate": "migrate",
    "catalog.fleet_files.files": "is_fleet_file",
    "fleet.checking": "check_fleet_files",
    "estimate.data.prices": "DataPrice holding_price moving_price",
    "fleet.prices.price_feed": "refresh_prices",
    "fleet.prices.price_list": "ListedPrices price_list price_rows prices_as_csv",
    "fleet.regions": "by_region",
    "fleet.scheduling.schedule": "read_entries:read_schedule schedule",
    "fleet.serving.load_curve": "load_curve",
    "fleet.serving.question": "ServingQuestion",
    "fleet.serving.serve": "serve",
    "fleet.migration.promises": "check_promises",
    "fleet.migration.question": "JOB_KINDS JobKind MigrationQuestion job_kind_of",
    "fleet.recommend": "DeadlineQuestion recommend",
    "fleet.sizes": "sizes_in_precisions",
    # Growth
    "growth.growth_fit": "FIGURES:GROWTH_FIGURES TARGETS:GROWTH_TARGETS GrowthFit fit_all:fit_all_growth fit_growth",
    "growth.kept_measurements": "KeptMeasurements",
    "growth.machines_for_size": "SizedJob SizedMachines machines_for_size",
    "growth.measuring": "Measurement Measuring Setting:MeasuringSetting",
    "growth.output_metric": "parse_output_metric",
    "growth.points_file": "read_points",
    "growth.ranking": "RankedSetting ranked_settings",
    "growth.series": "Series:MeasurementSeries larger_than_failed measure_series points_of wanted_sizes",
    "growth.setting_grid": "parse_grid:parse_setting_grid",
    # Choices
    "choose.advice.host_requirements": "power_need run_space",
    "choose.advice.offers": "Offer offers",
    "choose.advice.larger_devices": "larger_devices_note",
    "choose.advice.machine_notes": "job_notes machine_warnings predicted_bottleneck",
    "choose.command_line": "command_text command_words fewest_settings",
    "choose.answers": "answer step_seconds",
    "choose.explaining": "Explained explain",
    "choose.modes.alike": "Alike alone",
    "choose.audit.audit": "Audit Finding:AuditFinding audit",
    "choose.line_plan": "LinePlan changed_by_line plan_of_line refuse_faults",
    "choose.modes.filled": "ModePlan",
    "choose.modes.layout_sizes": "possible_sizes",
    "choose.modes.limits": "Limit to_the_limit",
    "choose.modes.modes": "Comparison MODES compare fill open_fields with_auto_resolved",
    "choose.search.answer": "Answer:SearchAnswer Found Rejected",
    "choose.search.axes": "parse_axis",
    "choose.search.question": "Goal:SearchGoal Limit:FigureLimit Question parse_figures parse_goal parse_limit",
    "choose.search.search": "search",
    "choose.space.grid": "Axis",
    "choose.hardware_settings": "settings_for settings_for_plan settings_for_row",
    "choose.need.answer": "Needed",
    "choose.need.need": "need solved_path",
    "choose.need.trying": "Reached:NeedReached Tried:NeedTried",
    "choose.placing": "PlacedPlan place_plan placed",
    "choose.proposal": "open_plan propose",
    "choose.validation": "faults:plan_faults remarks:plan_remarks",
    "choose.scaling": "Scaled growing_runs scaling_points",
    "choose.sensitivity.tornado": "Sensitivity sensitivity",
    "choose.whatif.together": "estimated_changes",
    "choose.whatif.trials": "EstimatedPlan",
    # Nodes of a cluster
    "nodes.inventory.detecting": "detect_cluster",
    "nodes.inventory.hardware": "described:cluster_hardware",
    "nodes.inventory.inventory": "Inventory changes_of:cluster_changes",
    "nodes.inventory.kept_clusters": (
        "DEFAULT_NAME:CLUSTER_NAME keep:keep_cluster kept:kept_cluster kept_names:kept_cluster_names"
    ),
    "nodes.inventory.plain_inventory": "change_parts inventory_as_dict inventory_parts",
    "nodes.jobs.batch_script": "SlurmOptions",
    "nodes.jobs.job_texts": "job_line jobs_as_dict jobs_parts proposal_as_dict proposal_parts",
    "nodes.jobs.known_jobs": "KnownJobs known_jobs",
    "nodes.jobs.launch": "LAUNCHERS:JOB_LAUNCHERS Launcher:JobLauncher",
    "nodes.jobs.proposal": "Proposal:JobProposal",
    "nodes.jobs.proposing": "JobWish propose:propose_job",
    "nodes.jobs.queue": "QueuedJob:SlurmJob queued_jobs",
    "nodes.jobs.submitting": "followed:follow_job submit:submit_job",
    "nodes.launchers.choosing": "chosen_launcher",
    "nodes.launchers.launcher": "Launcher NodeAnswer Order",
    # Runs as they happen
    "observe.command": "RunningCommand",
    "observe.exporting": "Gauge Outlets",
    "observe.guard.trainers.callback": "GuardCallback",
    "observe.guard.running.guarding": "begin:begin_guarding new_order:guard_order take_up:take_up_guarding",
    "observe.guard.running.order": "Order:GuardOrder",
    "observe.guard.running.supervisor": "Supervisor",
    "observe.guard.running.told": "Told:GuardTold",
    "observe.history.history": "History",
    "observe.history.places": "OFF:HISTORY_OFF VARIABLE:HISTORY_VARIABLE HistoryPlace history_place",
    "observe.history.predictions": "entry_of:history_entry",
    "observe.history.recording": "record:record_run",
    "observe.history.records": "KINDS:RUN_KINDS RunRecord",
    "observe.history.stores": "Wanted:WantedRuns",
    "observe.logs.following": "LineSplitter",
    "observe.logs.line_reader": "LineReader",
    "observe.logs.log_figures": "read_log:read_run_log",
    "observe.runs.live_run": "LiveRun list_runs read_run",
    "observe.runs.run_course": "RunCourse course_of gpus_of number own_memory",
    "observe.runs.run_follower": "RunFollower newest_look",
    "observe.runs.run_writer": "RunWriter",
    "observe.profile.bottleneck": "parse_thresholds thresholds_of_tier",
    "observe.profile.entry": "begun_profile profile_entry",
    "observe.profile.from_output": "WorkInOutput",
    "observe.profile.gauges": "gauges_of",
    "observe.profile.plain_data": "profile_as_json snapshot_as_dict",
    "observe.profile.profile": "Profile ProfilingSummary",
    "observe.profile.profiling": "ProfilingEngine",
    "observe.profile.snapshots": "ResourceSnapshot",
    "observe.logs.run_curve": "RunCurve",
    "observe.logs.sources": "LogSource open_log",
    "observe.logs.user_expression": "parse_user_expression:parse_log_expression",
    "observe.monitor.alarms": "Alarm",
    "observe.monitor.finding": "need_process output_file work_folder",
    "observe.monitor.run_gauges": "RunGauges",
    "observe.monitor.run_monitor": "RunMonitor RunState",
    # Nodes of clusters
    "nodes.occupancy.available": "change_to_available",
    "nodes.occupancy.folding": "ALL:ALL_NODES STATES:NODE_STATES MapRow node_map",
    "nodes.occupancy.occupancy": "Occupancy own_occupancy planned:planned_nodes",
    "nodes.occupancy.slurm_occupancy": "slurm_occupancy",
    # Storage
    "storage.databases.bench": "BenchQuestion DatabaseBench measure_database",
    "storage.corpus": "Read:CorpusRead",
    "storage.fitting": "CorpusFit FitQuestion LevelFit:CorpusLevel fit_corpus",
    "storage.patterns": "PatternLevel PatternStorage growth:pattern_growth pattern_storage",
    "storage.question": "Known:KnownOfPatterns PatternQuestion",
    "storage.zipf": "expected_distinct frequency_at_rank",
    "storage.training.storage_plan": "StoragePlan storage_plan",
    "storage.training.phases": "phase_plans",
    "storage.databases.machine_benchmarks": "benchmark_machine",
    "storage.learning.hardware_analyzer": "BenchmarkResults HardwareAnalyzerV2 HardwareProfile",
    "storage.learning.forecast": "LearningForecast learning_forecast",
    "storage.learning.storage_estimator": "LevelEstimate StorageBreakdown StorageEstimator",
    # Nodes of a cluster
    "nodes.sampling.link_facts": "LinkFacts keep_link",
    "nodes.sampling.node_collectives": "NodeGroup",
    "nodes.sampling.sampling": "QUICK_SIZES:QUICK_NETWORK_SIZES SIZES:NETWORK_SIZES SampledNetwork sample_network",
    "nodes.search.searching": "Shared:SharedAnswer search_on_ray",
    # Presentation
    "present.benchmark_figures": "benchmark_figure_text benchmark_parts",
    "present.machine_facts": "machine_parts",
    "present.machine_report": "job_parts machine_report_parts score_parts surroundings_parts",
    "present.parts": "Part TablePart TextPart",
    "present.fleet.offer_explanation": "offer_explanation",
    "present.runs.run_report": (
        "alarm_as_dict alarm_line compared_rows machine_lines progress_line run_events run_state_as_dict"
    ),
    "present.growth.growth_report": "growth_as_dict growth_parts",
    "present.growth.sized_report": "sized_job_parts sized_jobs_as_data",
    "present.growth.measured_report": (
        "measured_as_dict measured_line measured_parts ranked_as_csv ranked_as_dict ranked_parts"
    ),
    "present.runs.guard_report": "guard_event_line guard_rehearsal guard_rehearsal_lines",
    "present.runs.profile_page": "profile_page",
    "present.runs.profile_rows": "profile_rows profile_title",
    "present.pictures.pictures": "PICTURES Picture picture_lines picture_of",
    "present.explanation": (
        "ExplanationText FormulaInput FormulaStep explain_along explanation_as_dict explanation_text followed"
    ),
    "present.audit": "audit_as_dict figure_rows setting_rows",
    "present.exported": "exported_plan",
    "present.frameworks": "adapter_tools framework_files",
    "present.html": "to_html",
    "present.fleet.migration": (
        "MIGRATION_HEADS MIGRATION_RIGHT migration_as_dict migration_parts migration_rows runs_parts write_migration "
        "write_runs"
    ),
    "present.fleet.migration_analyzer": "AWSGPUMigrationAnalyzer MigrationReport ModelSize RunReport WorkloadType",
    "present.needed": "needed_as_dict needed_parts",
    "present.plan_values": "SWITCH plan_value_text",
    "present.markdown": "to_markdown",
    "present.placement": "LevelText level_texts placement_as_dict placement_parts placement_remarks",
    "present.plan_report": "SCALING_HEADS growth_remarks scaling_rows scaling_text",
    "present.fleet.recommended": "recommended_as_dict recommended_parts",
    "present.fleet.promises": "promises_as_dict promises_parts write_promises",
    "present.reference.schemas": "schema_names schema_text",
    "present.reports": "Report write_report",
    "present.results": "result_as_dict to_json to_yaml",
    "present.pictures.roofline_chart": "limit_text:roofline_limit_text",
    "present.runs.run_history": (
        "COMPARED_HEADS:RUN_COMPARED_HEADS FIGURE_HEADS:RUN_FIGURE_HEADS LIST_HEADS:RUN_LIST_HEADS "
        "as_csv:runs_as_csv as_json_lines:runs_as_json_lines compared_as_data:compared_runs_as_data "
        "compared_rows:compared_run_rows figure_rows:run_figure_rows heading:run_heading list_rows:run_list_rows "
        "runs_as_data setting_rows:run_setting_rows hardware_of:run_hardware what_ran"
    ),
    "present.search_report": "SearchTable progress_text reason_rows search_as_dict search_lines search_table",
    "present.fleet.regions_report": "regions_as_dict regions_parts",
    "present.fleet.schedule_report": "schedule_as_dict schedule_parts",
    "present.fleet.serving_fleet": "serving_as_dict serving_parts",
    "present.sensitivity_report": (
        "TORNADO_HEADS measurement_advice sensitivity_as_data sensitivity_as_markdown tornado_headline tornado_tables"
    ),
    "present.storage.learning": "learning_as_dict learning_parts",
    "present.storage.database_bench": "database_bench_as_dict database_bench_parts",
    "present.storage.patterns": "growth_rows pattern_remarks pattern_storage_as_dict pattern_storage_parts",
    "present.storage.training_data": "disk_bytes storage_plan_as_dict storage_plan_parts",
    "present.storage.corpus": ("corpus_as_dict corpus_parts corpus_picture corpus_svg progress_line:corpus_progress"),
    "present.side_by_side": "Named side_by_side",
    "present.side_by_side_pages": "ComparisonTable comparison_tables write_comparison",
    "present.summary": (
        "Block:FigureBlock notes:answer_notes basis:basis_text chosen:chosen_settings blocks:figure_blocks "
        "headline note_text verdict:verdict_text"
    ),
    # Measuring, and comparing with what was measured
    "accuracy.fits": "LeftOut fitted_constants unseen_scores",
    "accuracy.mine": "own_measurements",
    "accuracy.predicting": "accuracy_of predictor",
    "accuracy.published": "COMPARED_KINDS Kind:MeasurementKind",
    "accuracy.render": (
        "PAIR_HEADINGS:ACCURACY_PAIR_HEADINGS SCORE_HEADINGS:ACCURACY_SCORE_HEADINGS TITLES:ACCURACY_TITLES "
        "reports_as_data:accuracy_as_data reports_as_markdown:accuracy_as_markdown pair_cells:accuracy_pair_cells "
        "scatter_svg:accuracy_plot score_cells:accuracy_score_cells score_rows:accuracy_score_rows "
        "VERDICT_HEADINGS:ACCURACY_VERDICT_HEADINGS verdict_rows:accuracy_verdict_rows"
    ),
    "accuracy.report": "AccuracyReport evaluate:evaluate_measurements",
    "accuracy.scoring": "Scores:AccuracyScores",
    "accuracy.shared_runs": "read_shared:read_shared_runs shared_text",
    "accuracy.verdicts": "VerdictReport verdicts_of",
    "sampling.calibration": "fit_samples chosen_files:newest_samples write_measured",
    "sampling.kernel_cases": "KERNELS:SAMPLED_KERNELS",
    "sampling.collective_samples": (
        "SIZES:COLLECTIVE_SIZES QUICK_SIZES:QUICK_COLLECTIVE_SIZES collective_groups sample_collectives"
    ),
    "sampling.kernel_samples": (
        "QUICK_LIMIT_SECONDS:QUICK_SAMPLING_LIMIT_SECONDS LIMIT_SECONDS:SAMPLING_LIMIT_SECONDS "
        "Where:SampledDevice Progress:SamplingProgress sample_kernels choose_backend:sampling_backend "
        "grid_of:sampling_grid"
    ),
    "sampling.learning": "learnt_from sampled_constants",
    "sampling.own_runs": "OwnRun fit_runs keep_run kept_runs own_run read_runs resolved_run run_entry",
    "sampling.samples": "read_samples sample_files",
    "sampling.torch_kernels": "gpu_usable",
}
"""Names by the module that defines them; behind a colon the one here, where the one there says too little."""
