"""``kubectl`` as it is installed: what it prints, refused, hung or not; names and quantities of resources in that."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Generic, TypeVar, cast

from pydantic import AliasPath, BaseModel, Field, ValidationError

from capacity_tui.engine.catalog import parse_shipped
from capacity_tui.engine.errors import LauncherError
from capacity_tui.engine.machine import end_group
from capacity_tui.engine.nodes.launcher import Order, run_here
from capacity_tui.engine.record import dataclass

_SUFFIXES = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)?")


class Names(BaseModel):
    """The content of ``profiles/kubernetes.yaml``: names of resources, and labels by what they say."""

    devices: frozenset[str]
    slices: str
    labels: Mapping[str, tuple[str, ...]]
    holders: tuple[str, ...]


@cache
def names() -> Names:
    return Names.model_validate(parse_shipped("kubernetes.yaml"))


Model = TypeVar("Model", bound=BaseModel)


class Owner(BaseModel):
    """The object that an object is a part of."""

    uid: str


class Metadata(BaseModel):
    """What every object is known by."""

    name: str
    uid: str = ""
    namespace: str = ""
    labels: Mapping[str, str] = Field(default_factory=dict)
    annotations: Mapping[str, str] = Field(default_factory=dict)
    created: str = Field(default="", alias="creationTimestamp")
    deleted: str = Field(default="", alias="deletionTimestamp")
    owners: tuple[Owner, ...] = Field(default=(), alias="ownerReferences")


class Condition(BaseModel):
    """Something that holds of an object, or does not."""

    type: str
    status: str = ""  # ``True``, ``False`` or ``Unknown``
    reason: str = ""
    message: str = ""


def condition_of(conditions: Iterable[Condition], kind: str, status: str) -> Condition | None:
    return next((entry for entry in conditions if (entry.type, entry.status) == (kind, status)), None)


class _Listed(BaseModel, Generic[Model]):
    items: tuple[Model, ...]


class Container(BaseModel):
    """A container of a pod, with what it asks for."""

    requested: Mapping[str, str | int] = Field(
        default_factory=dict, validation_alias=AliasPath("resources", "requests")
    )
    limits: Mapping[str, str | int] = Field(default_factory=dict, validation_alias=AliasPath("resources", "limits"))

    @property
    def requests(self) -> Mapping[str, str | int]:
        """Its requests; what it is limited to is requested too where nothing else is said."""
        return {**self.limits, **self.requested}


def devices_of(container: Container) -> int:
    """Return how many devices or slices of some a container asks for."""
    return devices_in(container.requests) + sum(slices_in(container.requests).values())


def devices_in(resources: Mapping[str, str | int]) -> int:
    """Return how many whole devices some resources are."""
    return sum(int(amount(value)) for key, value in resources.items() if is_device(key))


def slices_in(resources: Mapping[str, str | int]) -> dict[str, int]:
    """Return how many slices of devices some resources are, by profile such as ``1g.10gb``."""
    prefix = names().slices
    counts = {
        key.removeprefix(prefix): int(amount(value)) for key, value in resources.items() if key.startswith(prefix)
    }
    return {profile: count for profile, count in counts.items() if count}


def is_device(resource: str) -> bool:
    """Return whether a resource is that of whole devices."""
    return resource in names().devices


def is_any_device(resource: str) -> bool:
    """Return whether a resource is that of whole devices, or of slices of some."""
    return is_device(resource) or resource.startswith(names().slices)


def amount(text: str | int) -> float:
    """Return a quantity of Kubernetes, such as ``2113548Ki``; 0 for what is none."""
    match = _QUANTITY.fullmatch(str(text).strip())
    return float(match[1]) * _SUFFIXES.get(match[2] or "", 1) if match else 0.0


_SERVER_SECONDS = 30.0
_MOST_BYTES = 256 * 2**20  # Of an answer; a node is some 20 kB, a pod 10
_PREFIX = re.compile(r"^(?:error|Error from server(?: \((?P<reason>\w+)\))?): ")
_NOT_REACHED = ("Unable to connect to the server", "The connection to the server")
_REACHED_HINT = "`kubectl version` shows whether the server answers"
_NO_SUCH_KIND = ("doesn't have a resource type", "no matches for kind", "could not find the requested resource")


class KubectlError(LauncherError):
    """``kubectl`` gave no answer of use."""

    reason = ""  # of the API server, in its word, such as ``AlreadyExists``; empty without one

    @property
    def is_unknown_kind(self) -> bool:
        """Whether the cluster has no objects of the kind that was asked for."""
        return any(words in self.title for words in _NO_SUCH_KIND)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The cluster of a context."""

    context: str = ""  # its name in the configuration of ``kubectl``; the current one where empty
    namespace: str = ""  # of jobs, queues and pods; that of the context where empty
    seconds: float = _SERVER_SECONDS

    def command(self, *words: str) -> tuple[str, ...]:
        """Return a command with what says where it goes."""
        context = (f"--context={self.context}",) if self.context else ()
        namespace = (f"--namespace={self.namespace}",) if self.namespace else ()
        return ("kubectl", *context, *namespace, *words)

    def items(self, model: type[Model], *words: str) -> tuple[Model, ...]:
        """Return the objects that ``kubectl get`` lists as JSON; raises KubectlError where it fails or hangs."""
        text = self.text("get", *words, "--output=json")
        listed: Any = _Listed
        try:
            return cast("tuple[Model, ...]", listed[model].model_validate_json(text).items)
        except ValidationError as error:
            where = ".".join(map(str, error.errors()[0]["loc"]))
            hint = f"see what `kubectl get {' '.join(words)} -o json` prints"
            raise KubectlError("kubectl: the answer makes no sense", where[:200], hint) from error

    def text(self, *words: str, standard_input: str = "") -> str:
        """Return what kubectl prints; raises KubectlError if it is not there, hangs, is refused, or never ends."""
        _check_installed()
        command = self.command(f"--request-timeout={self.seconds:g}s", *words)
        order = Order(command, standard_input, self.seconds)
        done = run_here(order, "", command, lambda: False, _MOST_BYTES)
        if done.exit_code is None:
            raise KubectlError(f"kubectl: {done.failure}", hint=_REACHED_HINT)
        if done.exit_code != 0:
            complaint = done.error.strip().splitlines()
            raise _refusal(complaint[-1] if complaint else f"exit code {done.exit_code}", words)
        return done.output

    def answers(self) -> bool:
        """Return whether the API server answers at all."""
        try:
            self.text("get", "--raw=/version")
        except KubectlError as error:
            return error.reason == "Forbidden"
        return True

    def current_namespace(self) -> str:
        """Return the namespace of jobs; raises KubectlError where the configuration cannot be read."""
        if self.namespace:
            return self.namespace
        return self.text("config", "view", "--minify", "--output=jsonpath={..namespace}").strip() or "default"

    def stream(self, *words: str) -> LineStream:
        """Return the lines that kubectl goes on printing; raises KubectlError if it is not there."""
        _check_installed()
        return LineStream(self.command(*words))


class LineStream:
    """Lines of a process as it prints them, until it ends or is ended from another thread."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - kubectl itself
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def __iter__(self) -> Iterator[str]:
        with self._process:
            for line in self._process.stdout or ():
                yield line.decode(errors="replace").rstrip("\r\n")

    def end(self) -> None:
        """End the process; whoever reads its lines comes to their end."""
        end_group(self._process)


def _check_installed() -> None:
    if shutil.which("kubectl") is None:
        raise KubectlError("kubectl is not installed here", hint="run this where kubectl reaches the cluster")


def _refusal(complaint: str, words: tuple[str, ...]) -> KubectlError:
    match = _PREFIX.match(complaint)
    title = complaint[match.end() :] if match else complaint
    allowed = " ".join(word for word in words[:2] if not word.startswith("-"))
    hint = f"`kubectl auth can-i {allowed}` shows what you may do"
    error = KubectlError(f"kubectl: {title[:300]}", hint=_REACHED_HINT if title.startswith(_NOT_REACHED) else hint)
    error.reason = (match["reason"] or "") if match else ""
    return error
