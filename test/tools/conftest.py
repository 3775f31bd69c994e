import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from report_pages import SCRIPT, Page, start


@pytest.fixture(scope="session")
def report_folder(tmp_path_factory):
    """A folder with a script in it."""
    made = tmp_path_factory.mktemp("report")
    (made / "script.py").write_text(SCRIPT, "utf-8")
    return made


@pytest.fixture(scope="session")
def report_path(report_folder):
    """The report on a run of the script."""
    start(report_folder, "-m", "profuse.tools.report.cli", "script.py", "-o", "page.html")
    return report_folder / "page.html"


@pytest.fixture(scope="session")
def page(report_path):
    """The same, read."""
    return Page(report_path.read_text("utf-8"))
