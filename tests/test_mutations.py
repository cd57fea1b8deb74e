"""The faults that `benchmarks/mutations.py` puts into the program are such: their lines stand where it says, once."""

from __future__ import annotations

import pytest

from benchmarks.mutations import MUTATIONS, ROOT, Mutation, mutated


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda each: each.name)
def test_a_mutation_changes_a_line_and_names_tests_that_there_are(mutation: Mutation) -> None:
    text = (ROOT / mutation.file).read_text("utf-8")
    assert mutated(text, mutation) != text
    for test in mutation.tests:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text("utf-8")
