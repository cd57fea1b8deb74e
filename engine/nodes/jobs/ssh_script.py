"""The script that runs a job on named hosts, where nothing queues jobs: on each over ssh, in the same folder."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from capacity_tui.engine.errors import QueueError
from capacity_tui.engine.nodes.jobs.batch_script import unused_end
from capacity_tui.engine.nodes.jobs.job_request import JobRequest
from capacity_tui.engine.nodes.jobs.launch import Launch
from capacity_tui.engine.nodes.jobs.proposal import Proposal, remarks_of

_SCRIPT = """\
#!/bin/bash
# To be run where the hosts are reached by ssh without a password, in a folder that all of them have.
# Each host ends what it runs when its line from here ends: by Ctrl-C, by the end of this script, however it comes.
hosts=({hosts})
address=${{MASTER_ADDR:-${{hosts[0]#*@}}}}
port=${{MASTER_PORT:-29500}}
runs=()
lines=()
trap 'for line in "${{lines[@]}}"; do exec {{line}}>&-; done; lines=()' INT TERM
for rank in "${{!hosts[@]}}"; do
    exec {{line}}> >(
        for other in "${{lines[@]}}"; do exec {{other}}>&-; done
        exec ssh -T -o BatchMode=yes -- "${{hosts[$rank]}}" bash -s
    )
    runs+=($!)
    lines+=("$line")
    {{
        printf 'rank=%q address=%q port=%q\\ncd %q || exit 1\\n' "$rank" "$address" "$port" "$PWD"
        cat <<'{end}'
{{
    exec 3<&0
    setsid {command} </dev/null 3<&- &
    run=$!
    {{ cat <&3 >/dev/null; kill -TERM -- "-$run"; }} 2>/dev/null &
    line=$!
    wait "$run"
    code=$?
    kill "$line" 2>/dev/null
    exit "$code"
}}
{end}
    }} >&"$line"
done
code=0
for run in "${{runs[@]}}"; do
    wait "$run" || code=$?
    while kill -0 "$run" 2>/dev/null; do  # a signal ends the wait, not the run
        wait "$run" || code=$?
    done
done
exit "$code"
"""
_MEETING = ('--node-rank="$rank"', '--master-addr="$address"', '--master-port="$port"')


def hosts_proposal(request: JobRequest, launch: Launch, hosts: Sequence[str]) -> Proposal:
    """Return a job on the first of these hosts.

    Raises:
        QueueError: there are fewer hosts than the plan has nodes.
    """
    if len(hosts) < request.nodes:
        fitting = len(hosts) * request.per_node
        raise QueueError(
            f"{len(hosts)} hosts for {request.nodes} nodes", hint=f"plan for {fitting} devices, or add hosts"
        )
    meeting = ["--standalone"] if request.nodes == 1 else [f"--nnodes={request.nodes}", *_MEETING]
    used, left = hosts[: request.nodes], hosts[request.nodes :]
    command = launch.torchrun(request, meeting)
    script = _SCRIPT.format(hosts=" ".join(map(shlex.quote, used)), command=command, end=unused_end(command))
    remarks = [*remarks_of(request, launch), "nothing queues jobs there: run the script"]
    if left:
        remarks.append(f"not used: {', '.join(left)}")
    return Proposal("hosts", request, launch, script, remarks=tuple(remarks))
