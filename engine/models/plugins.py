"""Models from other packages: families that an entry point registers.

A package names a function under the entry-point group ``capacity_tui.models``; the name of the entry point is the
name in plans. The function takes nothing and returns a mapping, so that a package need not import this program:

- ``fields``: the keys of ``model.spec`` with their defaults, or with mappings of default, minimum, maximum, choices,
  unit and help;
- ``calculate``: a function from those values to the mapping that ``Calculated`` describes;
- ``title``: what the model is, in a few words (optional);
- ``best_use``: what it is the right choice for (optional).
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Generic, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeFloat, ValidationError, create_model

from capacity_tui.engine.catalog import key_of
from capacity_tui.engine.errors import CatalogError, Place, PlanError
from capacity_tui.engine.keys import Key
from capacity_tui.engine.models.spec import LARGEST_ROWS, Spec
from capacity_tui.engine.printable import printable
from capacity_tui.engine.record import dataclass
from capacity_tui.engine.schema import Knob
from capacity_tui.engine.units import parse_count

Returned = TypeVar("Returned")
PATIENCE_SECONDS = 10.0
"""How long code of another package may take: importing a large library takes seconds, computing sizes none."""


class ForeignFaultError(Exception):
    """Code of another package failed, tried to end the program, or did not come back; says which in its words."""


def run_foreign(code: Callable[[], Returned]) -> Returned:
    """Run a function of another package in a thread, printing to stderr; ForeignFaultError where it fails or lasts."""
    call = _Call(code)
    thread = threading.Thread(target=call.run, name="plug-in", daemon=True)
    with redirect_stdout(sys.stderr):
        thread.start()
        thread.join(PATIENCE_SECONDS)
    if thread.is_alive():
        raise ForeignFaultError(f"took longer than {PATIENCE_SECONDS:g} seconds")
    if call.fault is not None:
        raise ForeignFaultError(in_words(call.fault)) from call.fault
    return call.returned[0]


def in_words(error: BaseException) -> str:
    """Return the kind and the text of an exception, also of one that cannot say what it is about."""
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__name__
    return printable(f"{name}: {text}" if text else name)[:_LONGEST_WORDS]


class _Call(Generic[Returned]):
    """One call and what became of it."""

    def __init__(self, code: Callable[[], Returned]) -> None:
        self._code = code
        self.returned: list[Returned] = []
        self.fault: BaseException | None = None

    def run(self) -> None:
        try:
            self.returned.append(self._code())
        except BaseException as error:
            self.fault = error


Calculation: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]
GROUP = "capacity_tui.models"
_LONGEST_WORDS = 200


class _Definition(BaseModel):
    """What a registered function returns."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, defer_build=True)

    fields: dict[str, Any]
    calculate: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    title: str = ""
    best_use: str = ""


class _Choice(BaseModel):
    """What a plug-in may say about one key of ``model.spec``."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    default: bool | int | float | str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""
    help: str = ""


class Calculated(BaseModel):
    """What a plug-in computes for one set of parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    params: NonNegativeFloat  # numbers the trained model keeps
    train_flops: NonNegativeFloat  # FLOPs of the whole training
    infer_flops_per_sample: NonNegativeFloat = 0.0  # FLOPs to answer one sample
    complexity_class: str = ""  # growth with the sizes, in words
    algorithm: str = ""  # what it is, in words
    memory_bytes: NonNegativeFloat | None = None  # peak of memory; the parameters alone where it is not given
    # memory read and written in the whole training; the peak once where it is not given
    traffic_bytes: NonNegativeFloat | None = None


class PluginSpec(Spec):
    """Parameters of a model from another package."""


@dataclass(frozen=True, slots=True)
class ModelPlugin:
    """A model from another package."""

    name: str
    package: str
    title: str
    best_use: str  # what it is the right choice for; empty where its package does not say
    spec_type: type[PluginSpec]
    calculate: Callable[[Mapping[str, Any]], Mapping[str, Any]]

    def calculated(self, spec: Spec) -> Calculated:
        """Return sizes and work for a set of parameters; raises PlanError where the plug-in failed."""
        place = Place(field=Key.MODEL_SPEC)
        try:
            returned = run_foreign(lambda: dict(self.calculate(spec.model_dump())))
        except ForeignFaultError as error:
            hint = "change the values, or tell its author"
            raise PlanError(self._failed("failed"), str(error), hint, place) from error
        try:
            return Calculated.model_validate(returned)
        except ValidationError as error:
            raise PlanError(self._failed("returned something unusable"), _first(error), place=place) from None

    def _failed(self, how: str) -> str:
        return f"the plug-in {self.package} {how}"


_registered: dict[str, ModelPlugin] = {}


@dataclass(frozen=True, slots=True)
class Plugins:
    """The models of other packages, and what is wrong with those that cannot be used."""

    models: Mapping[str, ModelPlugin]
    problems: tuple[CatalogError, ...]

    def find(self, name: str) -> ModelPlugin | None:
        """Return the model of a name, regardless of case, spaces and hyphens."""
        return self.models.get(key_of(name))


def register_model(
    name: str, fields: Mapping[str, Any], title: str = "", best_use: str = ""
) -> Callable[[Calculation], Calculation]:
    """Return a decorator that makes a function the model of a name, in plans of this process.

    The function takes the values of the fields and returns the mapping that ``Calculated`` describes. What other
    processes are to know as well goes into a package with an entry point.

    Args:
        name: name in plans; a model of that name before is replaced.
        fields: keys of ``model.spec`` with their defaults, or with mappings, as in a package.
        best_use: what it is the right choice for.

    Raises:
        CatalogError: the fields cannot be those of a model.
    """

    def registered(calculate: Calculation) -> Calculation:
        try:
            definition = _Definition(fields=dict(fields), calculate=calculate, title=title, best_use=best_use)
            _registered[key_of(name)] = _plugin(name, "this script", definition)
        except (ValidationError, ValueError) as error:
            reason = _first(error) if isinstance(error, ValidationError) else str(error)
            raise CatalogError(f"the model {printable(name)!r} cannot be used", reason, "correct its fields") from error
        load_plugins.cache_clear()
        return calculate

    return registered


@cache
def load_plugins() -> Plugins:
    """Return the models that installed packages and this script register; a broken one is left out and named."""
    models: dict[str, ModelPlugin] = dict(_registered)
    problems: list[CatalogError] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            plugin = run_foreign(partial(_loaded, entry))
        except ForeignFaultError as error:
            cause = error.__cause__
            reason = _first(cause) if isinstance(cause, ValidationError) else str(error)
            hint = "correct or uninstall it"
            title = f"the model {entry.name!r} of {_package(entry)} cannot be used"
            problems.append(CatalogError(title, reason, hint, Place(entry.value)))
            continue
        models.setdefault(key_of(entry.name), plugin)
    return Plugins(models, tuple(problems))


def plugin_of(name: str) -> ModelPlugin:
    """Return the model of a name that is known to be a plug-in's; raises PlanError if it is not installed."""
    plugin = load_plugins().find(name)
    if plugin is None:
        raise PlanError("no installed package brings this model", name, place=Place(field=Key.MODEL_NAME))
    return plugin


def _loaded(entry: EntryPoint) -> ModelPlugin:
    return _plugin(entry.name, _package(entry), _Definition.model_validate(entry.load()()))


def _plugin(name: str, package: str, definition: _Definition) -> ModelPlugin:
    fields = dict(_fields(definition.fields))
    title, best_use = printable(definition.title), printable(definition.best_use)
    spec_type = create_model(name, __base__=PluginSpec, **fields)
    return ModelPlugin(printable(name), package, title, best_use, spec_type, definition.calculate)


def _package(entry: EntryPoint) -> str:
    return printable(entry.dist.name if entry.dist is not None else entry.value)


def _fields(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the type and default of each key, as pydantic takes them."""
    for name, setting in settings.items():
        if name.startswith("_") or hasattr(PluginSpec, name):
            raise ValueError(f"fields: {printable(name)!r} cannot be the name of a field")
        choice = _Choice.model_validate(setting if isinstance(setting, dict) else {"default": setting})
        yield name, (_type(name, choice), choice.default)


def _type(name: str, choice: _Choice) -> Any:
    label = printable(name.replace("_", " ").capitalize())
    knob = Knob(
        label,
        kind="switch" if isinstance(choice.default, bool) else "choice" if choice.choices else _kind(choice.default),
        group="model",
        unit=printable(choice.unit),
        minimum=choice.minimum,
        maximum=choice.maximum,
        choices=choice.choices,
        help=printable(choice.help),
    )
    if choice.choices:
        return Annotated[Literal[choice.choices], knob]
    bounds = Field(ge=choice.minimum, le=choice.maximum)
    if isinstance(choice.default, bool):
        return Annotated[bool, knob]
    if isinstance(choice.default, int):
        limits = Field(ge=1 if choice.minimum is None else choice.minimum, le=choice.maximum or LARGEST_ROWS)
        return Annotated[int, BeforeValidator(_whole), limits, knob]
    return Annotated[float, bounds, knob] if isinstance(choice.default, float) else Annotated[str, knob]


def _kind(default: object) -> Literal["power-of-two", "number", "text"]:
    return "power-of-two" if isinstance(default, int) else "number" if isinstance(default, float) else "text"


def _whole(value: object) -> object:
    """Accept ``200k`` for a count; leave everything else to the validator."""
    return parse_count(value) if isinstance(value, str) else value


def _first(error: ValidationError) -> str:
    details = error.errors(include_url=False)[0]
    return printable(f"{'.'.join(map(str, details['loc']))}: {details['msg']}")[:_LONGEST_WORDS]
