"""A ``kubectl`` that answers from files, as one that was tried with Kubernetes 1.36, JobSet 0.11 and Kueue 0.13 does.

Its folder is beside it: ``KIND.json`` holds the objects of a kind, ``log-POD`` what a pod printed; ``asked`` gets every
command. What has no file is a kind that the cluster does not know.
"""

# ruff: noqa: T201 - a program
import json
import pathlib
import sys
import uuid

FOLDER = pathlib.Path(__file__).parent
KINDS = {"Job": "jobs.batch", "JobSet": "jobsets.jobset.x-k8s.io"}


def refuse(text: str) -> None:
    print(text, file=sys.stderr)
    sys.exit(1)


def stored(kind: str) -> list[dict]:
    path = FOLDER / f"{kind}.json"
    if not path.exists():
        refuse(f'error: the server doesn\'t have a resource type "{kind.partition(".")[0]}"')
    return json.loads(path.read_text())


def create(options: list[str]) -> None:
    text = sys.stdin.read()
    (FOLDER / "given").write_text(text)
    lines = [line.strip() for line in text.splitlines()]
    kind = next(line for line in lines if line.startswith("kind: ")).removeprefix("kind: ")
    name = next(line for line in lines if line.startswith("name: ")).removeprefix("name: ")
    if not (FOLDER / f"{KINDS[kind]}.json").exists():
        refuse(f'error: resource mapping not found for name: "{name}": no matches for kind "{kind}"')
    there = stored(KINDS[kind])
    if name in [each["metadata"]["name"] for each in there]:
        refuse(f'Error from server (AlreadyExists): {KINDS[kind]} "{name}" already exists')
    made = {"kind": kind, "metadata": {"name": name, "namespace": "default", "uid": str(uuid.uuid4())}}
    made["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "capacity-tui"}
    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    if not any(word.startswith("--dry-run") for word in options):
        (FOLDER / f"{KINDS[kind]}.json").write_text(json.dumps([*there, made]))
    print(json.dumps(made))


def log(options: list[str]) -> None:
    """Print the lines of a pod since a moment; the connection breaks behind a line ``BREAK``, once."""
    pod = options[-1].removeprefix("pod/")
    since = next((word.partition("=")[2][:19] for word in options if word.startswith("--since-time=")), "")
    path = FOLDER / f"log-{pod}"
    for line in path.read_text().splitlines() if path.exists() else ():
        if line == "BREAK":
            if not since:
                return
        elif line[:19] >= since:
            print(line, flush=True)


def main(words: list[str]) -> None:
    with (FOLDER / "asked").open("a") as asked:
        asked.write(json.dumps(words) + "\n")
    options = [word for word in words if not word.startswith(("--context=", "--namespace=", "--request-timeout="))]
    verb, *rest = options
    if (FOLDER / "refusal").exists() and verb != "config":
        refuse((FOLDER / "refusal").read_text())
    if verb == "config":
        print("lab" if rest == ["current-context"] else "default")
    elif verb == "create":
        create(rest)
    elif verb == "logs":
        log(rest)
    elif verb == "delete":
        kind, _, name = rest[0].partition("/")
        remaining = [each for each in stored(kind) if each["metadata"]["name"] != name]
        (FOLDER / f"{kind}.json").write_text(json.dumps(remaining))
        print(f"{kind}/{name}")
    elif rest[0] == "--raw=/version":
        print("{}")
    else:
        print(json.dumps({"apiVersion": "v1", "kind": "List", "items": stored(rest[0])}))


if __name__ == "__main__":
    main(sys.argv[1:])
