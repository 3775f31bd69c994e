import sys
from pathlib import Path
from types import SimpleNamespace

from internals import forget_libraries

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parents[1] / "lowering"))

import profuse as pf  # noqa: E402
import pytest  # noqa: E402
import stand_ins  # noqa: E402
from driver_api import Api  # noqa: E402
from emulated import EmulatedDriver  # noqa: E402
from profuse.executor.arguments import device_kinds  # noqa: E402
from profuse.executor.cuda.nvidia import bindings  # noqa: E402
from profuse.executor.cuda.nvidia.driver import using  # noqa: E402
from profuse.executor.functions import device_arguments as foreign  # noqa: E402


@pytest.fixture(autouse=True)
def general_fuser_alone():
    """Tests of the fuser of device groups switch it on; the others tell of the general fuser."""
    with pf.knobs.override(device_fusion="off"):
        yield


@pytest.fixture
def device():
    """An emulated driver, with one device."""
    made = EmulatedDriver()
    with using(made):
        yield made


@pytest.fixture(scope="module")
def gpu():
    """An emulated driver for all tests of a module, which share what is compiled."""
    made = EmulatedDriver()
    with using(made):
        yield made


@pytest.fixture
def counted():
    """What the process has counted since the test began, by name."""
    before = pf.counters()

    def since(name: str) -> int:
        return pf.counters()[name] - before[name]

    return since


@pytest.fixture
def api(monkeypatch):
    """The driver's API, which notes what it is asked."""
    made = Api()
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cuda.bindings", SimpleNamespace(driver=made))
    return made


@pytest.fixture
def driver(api):
    """The driver of `cuda-bindings` over ``api``."""
    made = bindings.BindingsDriver()
    api.calls.clear()
    yield made


@pytest.fixture
def torch(device, monkeypatch):
    """A stand-in in place of torch, of which nothing is known yet."""
    monkeypatch.setitem(sys.modules, "torch", stand_ins.torch)
    forget_libraries(monkeypatch)
    none_met: dict = {}
    for module in (device_kinds, foreign):
        monkeypatch.setattr(module, "converts", none_met)
    monkeypatch.setattr(stand_ins.torch, "full", False)
    return stand_ins.torch
