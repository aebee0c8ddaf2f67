import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from installations import processes_of


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("installation")
    yield folder
    for pid in processes_of(folder):
        os.kill(pid, signal.SIGKILL)
