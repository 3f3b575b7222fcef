"""Jobs of several ranks: what a specification must not say."""

from __future__ import annotations

from typing import Any

import pytest

from synthetic.ranks import JobSpec, Straggler, generate_job


@pytest.mark.parametrize(
    ("straggler", "message"),
    [
        (Straggler(2, "down", 30.0), "rank 2; the job has ranks 0 to 1"),
        (Straggler(1, "dwon", 30.0), "role 'dwon' is none of norm, "),  # type: ignore[arg-type]
    ],
)
def test_a_straggler_that_would_be_none_is_refused(straggler: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate_job(JobSpec(tp=2, stragglers=(straggler,)))
