"""Random modules, exported through the partitioner and run on the delegate, against eager PyTorch."""

import pytest

#: What came of all cases of a run of pytest.
REPORT = pytest.StashKey["differential.batch.Report"]()
