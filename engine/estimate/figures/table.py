"""The table of figures: JSON, reports, screens, differences, explanations, limits and goals read it.

A row here and its name in ``Figure`` are all that a new figure takes. The order of rows is that of reports, panels and
columns: what a run comes to first, then what that rests on.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from capacity_tui.engine.estimate.figures.metric import LESS, MORE, Metric
from capacity_tui.engine.estimate.figures.readers import (
    all_requests_price,
    detail,
    device_throughput,
    gpu_hours,
    is_rarely_interrupted,
    job_time,
    of_calendar,
    of_job,
    of_serving,
    per_step,
    request_price,
    sample_throughput,
    tflops_per_device,
    throughput,
    total_flops,
    utilization,
)
from capacity_tui.engine.keys import Figure

_ROWS = (
    Metric(Figure.MODEL_PARAMETERS, "parameters", "", lambda e: e.model.parameters, block="model", goal=MORE,
           words=("parameters",),
           help="All learned values of the model. Weights, gradients and optimizer states scale with them."),
    Metric(Figure.MODEL_ACTIVE_PARAMETERS, "active parameters", "", lambda e: e.model.active_parameters,
           block="model", goal=MORE,
           saying_nothing=lambda e: float(e.model.active_parameters) == float(e.model.parameters),
           help="Parameters that one token passes through, fewer than all in a mixture of experts. They set the "
                "compute per token, while all of them take memory."),
    Metric(Figure.MODEL_FORWARD_FLOPS, "forward FLOPs per {unit}", "FLOP", lambda e: e.model.forward_flops,
           block="model",
           help="Operations of one forward pass. Training takes about three times as many, and another third where "
                "activations are recomputed."),
    Metric(Figure.MEMORY_RESERVED_BYTES, "peak memory", "B", lambda e: e.memory.reserved_bytes, LESS, "memory",
           has_ends=True, block="memory", panel="all", difference="all", topic="memory", words=("memory",),
           help="The highest memory use on the fullest device, including the driver's own and the allocator's "
                "reserve. It is what the driver's own tool shows, and decides whether the plan fits."),
    Metric(Figure.MEMORY_UTILIZATION_PERCENT, "memory utilization", "%", utilization, LESS, "utilization", "memory",
           block="memory", panel="all", column="memory", rank=2, words=("memory",),
           help="Peak memory as a share of the device's memory. Well below 100 % there is room for larger batches; "
                "close to it a spike may end the run."),
    Metric(Figure.MEMORY_CAPACITY_BYTES, "device memory", "B", lambda e: e.memory.capacity_bytes, block="memory",
           goal=LESS,
           help="Device memory that is available to a run. A run that needs more does not start, or ends with an "
                "out-of-memory error."),
    Metric(Figure.MEMORY_PER_DEVICE_BYTES, "peak memory allocated", "B", lambda e: e.memory.per_device_bytes, LESS,
           has_ends=True, block="memory",
           help="The most that the framework's allocator has allocated at once on the fullest device. It is "
                "torch.cuda.max_memory_allocated."),
    Metric(Figure.MEMORY_ALLOCATOR_BYTES, "peak memory reserved", "B", lambda e: e.memory.allocator_bytes, LESS,
           "reserved", has_ends=True, block="memory", panel="all",
           help="The most that the framework's allocator has reserved, including blocks it caches for reuse. It is "
                "torch.cuda.max_memory_reserved."),
    Metric(Figure.MEMORY_HOST_BYTES, "host memory per device", "B", lambda e: e.memory.host_bytes, LESS,
           "host memory", block="memory", panel="all", difference="all", words=("host_memory",),
           saying_nothing=lambda e: not e.memory.host_bytes,
           help="Host memory used by one device's share of the run, for data and for offloaded state. Using more "
                "than there is ends the run just as a full device does."),
    Metric(Figure.MEMORY_HOST_CAPACITY_BYTES, "host memory available per device", "B",
           lambda e: e.memory.host_capacity_bytes, block="memory", saying_nothing=lambda e: not e.memory.host_bytes,
           help="Host memory of a node, divided by its devices. All that they offload and load at once has to fit "
                "into it."),
    Metric(Figure.INFERENCE_LARGEST_BATCH, "largest batch that fits", "requests",
           detail(Figure.INFERENCE_LARGEST_BATCH), MORE, "largest batch", block="memory", panel="unloaded",
           help="The most concurrent requests whose weights and cache fit, all else unchanged. It shows how far "
                "throughput can still grow."),
    Metric(Figure.INFERENCE_LONGEST_CONTEXT, "longest context that fits", "tok",
           detail(Figure.INFERENCE_LONGEST_CONTEXT), MORE, "context fits", block="memory", panel="unloaded",
           help="The longest prompt and answer together that fit, all else unchanged. It shows how long documents "
                "may be."),
    Metric(Figure.ESTIMATED_TRAIN_TIME_SECONDS, "{job} time", "s", job_time, LESS, "time", has_ends=True, block="time",
           panel="trained", difference="same work", topic="speed", column="time",
           trained=("time",), open_length=Figure.TOKENS_PER_SECOND,
           help="Time of the whole job from the first step to the last, without queueing for machines. Cost and "
                "energy grow with it."),
    Metric(Figure.RELIABILITY_CALENDAR_SECONDS, "calendar time", "s",
           of_calendar(lambda r: r.calendar_seconds), LESS, "calendar", has_ends=True, block="time", panel="closed",
           saying_nothing=is_rarely_interrupted, trained=("calendar",),
           help="Time of the whole job including failures: restarts, repeated work, checkpoints, planned stops. It "
                "is when the model is ready, once machines are."),
    Metric(Figure.RELIABILITY_FAILURES, "expected failures", "failures", of_calendar(lambda r: r.failures), LESS,
           "failures", has_ends=True, block="time", saying_nothing=is_rarely_interrupted,
           help="Expected number of device, node or network failures that stop the job. Each costs a restart and the "
                "work since the last checkpoint."),
    Metric(Figure.RELIABILITY_MTBF_HOURS, "mean time between failures", "h", of_calendar(lambda r: r.mtbf_hours), MORE,
           "MTBF", has_ends=True, block="time", saying_nothing=is_rarely_interrupted, words=("mtbf",),
           help="Mean time between failures that stop the job, over all its devices. Twice as many devices halve it."),
    Metric(Figure.RELIABILITY_GOODPUT, "goodput", "share", of_calendar(lambda r: r.goodput), MORE, has_ends=True,
           block="time", panel="closed", saying_nothing=is_rarely_interrupted, words=("goodput",),
           help="Share of the calendar time spent on steps that count. Faster restarts and checkpoints raise it; "
                "published runs on ten thousand GPUs reach 85 to 97 %."),
    Metric(Figure.ALL_REQUESTS_SECONDS, "time of all requests", "s", of_serving(lambda i: i.all_requests_seconds), LESS,
           has_ends=True, block="time", panel="ending",
           help="Time until the last of the plan's requests is answered. It is how long a job over so many prompts "
                "takes."),
    Metric(Figure.TIME_TO_FIRST_TOKEN_SECONDS, "time to first token", "s",
           of_serving(lambda i: i.time_to_first_token_seconds), LESS, "TTFT", has_ends=True, block="time",
           panel="served", difference="all", topic="latency", column="time", served=("ttft",),
           help="From a request to its first token, mostly the prefill of its prompt. Users feel it as the pause "
                "before an answer begins."),
    Metric(Figure.TIME_TO_FIRST_TOKEN_PERCENTILE_SECONDS, "{tail} time to first token", "s",
           of_serving(lambda i: i.time_to_first_token_percentile_seconds), LESS, "{tail} TTFT", has_ends=True,
           block="time", panel="loaded",
           help="Time to first token of the slower requests, at the plan's percentile. Service-level objectives are "
                "set in it, since a mean hides them."),
    Metric(Figure.TIME_PER_OUTPUT_TOKEN_SECONDS, "time per output token", "s",
           of_serving(lambda i: i.time_per_output_token_seconds), LESS, "TPOT", has_ends=True, block="time",
           panel="served", column="token time", served=("tpot",),
           help="From one output token to the next. Below some 100 ms an answer comes faster than most people read."),
    Metric(Figure.TIME_PER_OUTPUT_TOKEN_PERCENTILE_SECONDS, "{tail} time per output token", "s",
           of_serving(lambda i: i.time_per_output_token_percentile_seconds), LESS, "{tail} TPOT", has_ends=True,
           block="time", panel="loaded",
           help="Time per output token of the slower requests, at the plan's percentile. Service-level objectives "
                "are set in it, since a mean hides them."),
    Metric(Figure.REQUEST_SECONDS, "request latency", "s", of_serving(lambda i: i.request_seconds), LESS,
           has_ends=True, block="time", panel="loaded",
           help="From a request to the end of its answer, queueing included. It is what a program that calls the "
                "model waits for."),
    Metric(Figure.COST_USD, "cost", "USD", lambda e: e.cost.interval or e.cost.usd, LESS, block="cost",
           panel="closed", difference="same work", topic="money", column="money", trained=("usd", "cost"),
           open_length=Figure.COST_USD_PER_MILLION_TOKENS,
           help="Cost of the whole job at the hourly price of all devices. It is the compute bill, without storage "
                "and traffic."),
    Metric(Figure.COST_USD_SPOT, "spot cost", "USD", lambda e: e.cost.spot_interval or e.cost.usd_spot, LESS,
           block="cost", trained=("spot",),
           help="Cost of the whole job on spot capacity. It includes the work that interruptions lose, but not "
                "waiting for machines."),
    Metric(Figure.RELIABILITY_CALENDAR_USD, "calendar cost", "USD", of_calendar(lambda r: r.calendar_usd), LESS,
           "calendar cost", has_ends=True, block="cost", panel="closed", saying_nothing=is_rarely_interrupted,
           help="Cost of all devices for the calendar time. Machines are paid for while a job restarts."),
    Metric(Figure.COST_USD_OF_ALL_REQUESTS, "cost of all requests", "USD", all_requests_price, LESS,
           block="cost", panel="ending",
           help="Cost of all devices until the last of the plan's requests is answered. It is the price of a job over "
                "so many prompts."),
    Metric(Figure.COST_USD_PER_MILLION_TOKENS, "cost per million {counted}{both}", "USD/M",
           per_step(lambda e: e.cost.usd_per_million_tokens), LESS, "$/M {counted}", block="cost",
           panel="open", difference="all", topic="money", column="money", served=("usd", "cost"),
           help="Cost of a million tokens at full load, prompts and answers alike. Compare it with what a provider "
                "of the same model asks."),
    Metric(Figure.COST_USD_PER_REQUEST, "cost per request", "USD/request", request_price, LESS, "$/request",
           block="cost", panel="served",
           help="Cost of a request, its prompt and its answer, at full load. Multiply it by your traffic for the "
                "cost of serving."),
    Metric(Figure.COST_USD_PER_HOUR, "cost per hour", "USD", lambda e: e.cost.usd_per_hour, LESS, "$ an hour", "$/h",
           block="cost", panel="open", column="hourly", rank=5, words=("hourly",),
           help="Price of all devices per hour, busy or idle. It is the figure to compare offers by."),
    Metric(Figure.COST_GPU_HOURS, "{device}-hours", "{device}-h", gpu_hours, LESS, block="cost", panel="closed",
           saying_nothing=lambda e: e.computation.iteration == "fit", difference="same work", column="work", rank=6,
           trained=("gpu_hours", "device_hours"),
           open_length=Figure.TOKENS_PER_SECOND_PER_DEVICE,
           help="Hours of the job times its devices. Clusters bill in them, and published runs report them."),
    Metric(Figure.ENERGY_KWH, "energy of the devices", "kWh", of_job(lambda e: e.energy.kwh), LESS, "energy",
           block="cost", panel="closed", difference="same work", words=("energy",),
           open_length=Figure.ENERGY_WATTS_AVERAGE,
           help="Electricity of the devices alone for the whole job. Hosts and cooling come on top."),
    Metric(Figure.ENERGY_KWH_SYSTEM, "energy with host and cooling", "kWh", of_job(lambda e: e.energy.kwh_system), LESS,
           "total energy", block="cost",
           help="Electricity of the whole job including the hosts' CPUs, memory and fans, and the building's cooling "
                "and power supply. The building's meter shows it, and emissions are computed from it."),
    Metric(Figure.ENERGY_KWH_HOST, "energy of the hosts", "kWh", of_job(lambda e: e.energy.kwh_host), LESS,
           block="cost", help="Electricity of CPUs, memory, network cards and fans of the nodes. It is drawn whether "
                              "the devices are well used or not."),
    Metric(Figure.ENERGY_KWH_NETWORK, "energy of the network", "kWh", of_job(lambda e: e.energy.kwh_network), LESS,
           block="cost", help="Electricity of the switches and optics between nodes. A job on one node has none."),
    Metric(Figure.ENERGY_KWH_COOLING, "energy of cooling", "kWh", of_job(lambda e: e.energy.kwh_cooling), LESS,
           block="cost", help="Electricity of the building's cooling and power supply: its PUE above one. Large "
                              "clouds add a tenth, the average data centre a half."),
    Metric(Figure.CARBON_KG, "emissions", "kg", of_job(lambda e: e.energy.carbon_kg), LESS, "CO2", block="cost",
           words=("carbon", "co2"),
           help="Kilograms of CO2 equivalent of all that electricity, on the grid of the region (pricing.region). "
                "Making the machines is not included."),
    Metric(Figure.CARBON_GRAMS_PER_KWH, "carbon intensity of the grid", "g/kWh", lambda e: e.energy.grams_per_kwh, LESS,
           block="cost",
           help="Grams of CO2 equivalent per kilowatt-hour on the local grid, yearly mean. Without a region it is "
                "the world's."),
    Metric(Figure.ENERGY_WATTS_AVERAGE, "average power", "W", lambda e: e.energy.watts_average, block="cost",
           panel="open", words=("power",), goal=LESS,
           help="Mean power of the devices over a step. A rack or a socket has to deliver it."),
    Metric(Figure.ENERGY_USD, "electricity cost", "USD", of_job(lambda e: e.energy.usd), LESS, block="cost",
           help="Electricity of the devices for the whole job at the plan's price. On machines of your own it is "
                "most of what a run costs."),
    Metric(Figure.STEP_SECONDS, "{iteration} time", "s", lambda e: e.computation.step_seconds, LESS, head="step",
           has_ends=True, block="time", panel="not served",
           saying_nothing=lambda e: e.computation.iteration == "fit", difference="all", column="time",
           words=("step",), served=("time",),
           help="Time from one weight update to the next, or of one served batch. Times the number of steps it is "
                "the length of the job."),
    Metric(Figure.OUTPUT_TOKENS_PER_SECOND, "output throughput", "tok/s",
           of_serving(lambda i: i.output_tokens_per_second), MORE, "output tok/s", has_ends=True, block="time",
           panel="served", difference="all", topic="speed", column="speed", rank=3, served=("throughput",),
           help="Output tokens per second over all requests, prefill time included. It is what a buyer of tokens "
                "gets."),
    Metric(Figure.TOKENS_PER_SECOND, "{total}throughput{both}", "{counted}/s", throughput, MORE, "{total}{counted}/s",
           block="time", panel="all", difference="all", topic="speed", column="speed", rank=3, trained=("throughput",),
           help="Units processed per second by all devices together; in serving, prompts as well as answers. The "
                "length and the cost of the job follow from it."),
    Metric(Figure.TOKENS_PER_SECOND_PER_DEVICE, "throughput per device", "{counted}/s", device_throughput, MORE,
           block="time", saying_nothing=lambda e: float(e.computation.devices) == 1.0,
           help="Throughput divided by the number of devices. Compare it across device counts to see what "
                "communication costs."),
    Metric(Figure.SAMPLES_PER_SECOND, "sample throughput", "{samples}/s", sample_throughput, MORE, difference="all",
           topic="speed",
           help="Whole sequences, images or rows processed per second. It is the speed that many frameworks log."),
    Metric(Figure.PREFILL_TOKENS_PER_SECOND, "prefill throughput", "tok/s",
           of_serving(lambda i: i.prefill_tokens_per_second), MORE, "prefill tok/s", has_ends=True, block="time",
           panel="served",
           help="Prompt tokens read per second. It decides how long a user waits for the first word."),
    Metric(Figure.DECODE_TOKENS_PER_SECOND, "decode throughput", "tok/s",
           of_serving(lambda i: i.decode_tokens_per_second), MORE, "decode tok/s", has_ends=True, block="time",
           panel="served", difference="all",
           help="Output tokens per second over the whole batch. It decides how many answers a machine gives, and "
                "what a token costs."),
    Metric(Figure.REQUESTS_PER_SECOND, "request throughput", "requests/s", of_serving(lambda i: i.requests_per_second),
           MORE, "requests/s", has_ends=True, block="time", panel="served", served=("requests",),
           help="Requests completed per second. Divide the traffic you expect by it for the number of machines you "
                "need."),
    Metric(Figure.LARGEST_REQUESTS_PER_SECOND, "maximum load", "requests/s",
           of_serving(lambda i: i.largest_requests_per_second), MORE, has_ends=True, block="time", panel="loaded",
           help="The most requests per second that the plan can serve. Beyond it the queue grows without bound."),
    Metric(Figure.RUNNING_REQUESTS, "requests in flight", "requests", of_serving(lambda i: i.running_requests),
           has_ends=True, block="time", panel="loaded",
           help="Requests processed at once under the plan's load. They share the cache and the speed of the device."),
    Metric(Figure.WAITING_REQUESTS, "requests waiting", "requests", of_serving(lambda i: i.waiting_requests), LESS,
           has_ends=True, block="time", panel="loaded",
           help="Requests queued under the plan's load. More than a few mean that the plan is near its limit."),
    Metric(Figure.MFU, "model FLOPs utilization", "share", per_step(lambda e: e.computation.mfu, -1, 1.0), MORE, "MFU",
           block="time", panel="not served", column="utilization", rank=7, trained=("mfu",),
           help="The model's own operations as a share of the devices' peak. Training reaches 30 to 55 %; much less "
                "means that something other than arithmetic is the limit."),
    Metric(Figure.MODEL_TFLOPS_PER_DEVICE, "model TFLOP/s per device", "TFLOP/s", tflops_per_device, MORE,
           help="Operations of the model per second on one device, recomputation not counted. Papers give it beside "
                "utilization."),
    Metric(Figure.TOTAL_FLOPS, "total FLOPs", "FLOP", total_flops, block="time", panel="closed",
           help="Operations of the whole job, whatever the hardware. Scaling laws and regulations measure training "
                "runs by it."),
    Metric(Figure.TRAINING_EXPECTED_LOSS, "expected loss", "nats", detail(Figure.TRAINING_EXPECTED_LOSS), LESS,
           block="law", trained=("loss",),
           help="The loss that a scaling law expects of a dense language model of this size after these tokens, on "
                "text like that of its own runs. Compare sizes and tokens by it, not with losses on other data."),
    Metric(Figure.TRAINING_LEAST_LOSS, "lowest loss for the same compute", "nats", detail(Figure.TRAINING_LEAST_LOSS),
           block="law",
           help="The lowest loss that the law expects for the same compute, with another model size. The distance to "
                "it is what a model too large or too small for its tokens gives away."),
    Metric(Figure.TRAINING_OPTIMAL_PARAMETERS, "compute-optimal parameters", "",
           detail(Figure.TRAINING_OPTIMAL_PARAMETERS), block="law",
           help="The model size that learns most from this training's compute. A smaller one trained for longer "
                "learns a little less and is cheaper to serve."),
    Metric(Figure.TRAINING_OPTIMAL_TOKENS, "compute-optimal tokens", "tok", detail(Figure.TRAINING_OPTIMAL_TOKENS),
           block="law",
           help="The tokens that a model of compute-optimal size sees with the same compute. There are some twenty "
                "per parameter."),
    Metric(Figure.TRAINING_OVERTRAINING, "overtraining", "", detail(Figure.TRAINING_OVERTRAINING), block="law",
           help="Tokens per parameter over the compute-optimal ratio. Models that are served a lot are trained ten "
                "times and more beyond it on purpose."),
    Metric(Figure.BOTTLENECK_ARITHMETIC_INTENSITY, "arithmetic intensity", "FLOP/B",
           lambda e: e.bottleneck.arithmetic_intensity,
           help="Operations per byte of memory traffic; compared with the device's ridge point it tells whether "
                "compute or memory limits most of the time. Only more of what limits makes the run faster."),
    Metric(Figure.BOTTLENECK_RIDGE_POINT, "ridge point", "FLOP/B", lambda e: e.bottleneck.ridge_point,
           help="Operations per byte at which the device is as busy computing as reading memory. Kernels below it "
                "are memory-bound, those above compute-bound."),
)  # fmt: skip
METRICS: Mapping[str, Metric] = MappingProxyType({metric.key: metric for metric in _ROWS})
"""Every kind of figure by its result key."""
