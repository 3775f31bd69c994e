"""Reports in headless Chromium, where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), "")
needs_browser = pytest.mark.skipif(not BROWSER, reason=f"none of {', '.join(BROWSERS)} is installed")


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess:
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    return subprocess.run(
        [
            BROWSER,
            "--headless",
            *sandbox,
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            f"--user-data-dir={profile}",
            *options,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )


@needs_browser
def test_the_script_runs_under_the_policy(report_path, tmp_path):
    done = browse(report_path, tmp_path, "--dump-dom", "--enable-logging=stderr")
    assert "CONSOLE" not in done.stderr  # no error of the script, nothing that the policy refuses
    assert 'aria-current="true"' in done.stdout
    assert re.search(r"<output[^>]*>(\d+) of \1</output>", done.stdout)


@needs_browser
def test_screenshots(report_path, tmp_path):
    """It is drawn, in light and in dark."""
    pictures = []
    for scheme in ("1", "0"):
        picture = tmp_path / f"{scheme}.png"
        browse(
            report_path,
            tmp_path / "profile",
            f"--screenshot={picture}",
            "--window-size=1280,1600",
            f"--blink-settings=preferredColorScheme={scheme}",
        )
        pictures.append(picture.read_bytes())
    for data in pictures:
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == (1280, 1600)
        assert len(data) > 50_000  # an empty page has a tenth of that
    assert pictures[0] != pictures[1]
