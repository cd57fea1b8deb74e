"""A contract of the import linter: who is not of a package of the engine reaches it through its door."""

from __future__ import annotations

from pathlib import Path

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

from capacity_tui.engine.door import public_names


class DoorContract(Contract):
    """No module inside a package is imported from outside it, but by the names that the package's door offers.

    ``package`` holds the packages with doors, and ``folder`` is where its source is.
    """

    type_name = "doors"

    package = fields.StringField()
    folder = fields.StringField()

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - the linter passes it
        """Return the imports that go past a door."""
        past = [
            f"{importer}:{place['line_number']} imports {imported}"
            for imported in sorted(self._inner_modules(graph))
            for importer in sorted(graph.find_modules_that_directly_import(imported))
            if self._room(importer) != self._room(imported)
            for place in graph.get_import_details(importer=importer, imported=imported)
        ]
        return ContractCheck(kept=not past, metadata={"past": past})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print the imports that go past a door."""
        for line in check.metadata["past"]:
            output.print_error(line)

    def _room(self, module: str) -> str:
        """Return the package with a door that a module belongs to."""
        depth = str(self.package).count(".") + 2
        return ".".join(module.split(".")[:depth])

    def _inner_modules(self, graph: ImportGraph) -> set[str]:
        """Return the modules inside packages that no door offers a name like."""
        return {
            module
            for module in graph.find_descendants(str(self.package))
            if module != self._room(module) and not graph.find_children(module) and not self._is_offered(module)
        }

    def _is_offered(self, module: str) -> bool:
        """Return whether the package of a module offers something of the module's name."""
        parent, _, name = module.rpartition(".")
        stub = Path(str(self.folder), *parent.split(".")[2:], "__init__.pyi")
        return stub.exists() and name in public_names(stub)
