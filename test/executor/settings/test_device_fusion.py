"""The switches of the fuser of device groups, and who forms the groups (R3.2, R3.3, A7)."""

import itertools

import profuse as pf
import pytest
from profuse.executor.cuda.nvidia.driver import using
from profuse.executor.settings import device_fusion
from profuse.executor.settings.device_fusion import default, enabled, left_devices
from profuse.executor.settings.knobs import KNOBS, Knobs, knobs


class OneDevice:
    """A driver of one device, which nothing runs on."""

    def device_count(self) -> int:
        """Number of devices."""
        return 1


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch):
    """Neither the program nor the environment has chosen."""
    monkeypatch.setattr(device_fusion, "_run_time", device_fusion._RunTime())
    with knobs.override(device_fusion="auto", device_fusion_off=False):
        yield


@pytest.fixture(params=[True, False], ids=["device", "no-device"])
def has_device(request):
    with using(OneDevice() if request.param else None, "no CUDA driver"):
        yield request.param


CHOICES = (None, True, False)
FLAGS = (True, False)


@pytest.mark.parametrize(("force_off", "runtime", "env"), [*itertools.product(FLAGS, CHOICES, CHOICES)])
def test_r3_2_truth_table(force_off, runtime, env):
    """R3.2: 144 rows, written out again as the requirement says them."""
    for device, registered, mode in itertools.product(FLAGS, repeat=3):
        otherwise = default(device, registered, mode)
        assert otherwise == (device + registered + mode == 3)
        is_on = enabled(force_off, runtime, env, otherwise)
        if force_off:
            assert is_on is False
        elif runtime is not None:
            assert is_on is runtime
        elif env is not None:
            assert is_on is env
        else:
            assert is_on is otherwise


WORDS = {None: "auto", True: "on", False: "off"}


@pytest.mark.parametrize(("force_off", "runtime", "env"), [*itertools.product(FLAGS, CHOICES, CHOICES)])
@pytest.mark.parametrize("mode", FLAGS)
def test_r3_2_a7_the_general_fuser_leaves_ops_iff_it_is_enabled(has_device, force_off, runtime, env, mode):
    """R3.2, A7: the same table through the switches themselves."""
    impossible = not has_device
    if impossible and runtime:
        with pytest.raises(pf.KnobError, match="no CUDA driver"):
            pf.set_device_fusion(True)
        return
    pf.set_device_fusion(runtime)
    expected = enabled(force_off, runtime, env, default(has_device, True, mode))
    with knobs.override(device_fusion=WORDS[env], device_fusion_off=force_off, executor_mode=mode):
        if expected and impossible:
            with pytest.raises(pf.KnobError, match="no CUDA driver"):
                left_devices("cuda:0")
        else:
            assert left_devices("cuda:0") == ("cuda" if expected else "")
            assert pf.get_device_fusion() == expected
        assert left_devices("cpu") == ""


@pytest.mark.usefixtures("has_device")
def test_r3_2_on_the_host_no_device_is_needed():
    assert pf.set_device_fusion(True, host=True) is None
    assert left_devices("cpu") == left_devices("cuda:0") == "all"
    with knobs.override(device_fusion_off=True):
        assert left_devices("cpu") == ""
    assert pf.set_device_fusion(False) is True
    assert left_devices("cpu") == ""
    assert pf.set_device_fusion(None) is False
    with knobs.override(device_fusion="host"):
        assert left_devices("cpu") == "all"


def test_r3_2_enabling_what_cannot_be_raises_and_says_why(has_device, monkeypatch):
    with knobs.override(device_fusion_off=True), pytest.raises(pf.KnobError, match="PROFUSE_DEVICE_FUSION_OFF"):
        pf.set_device_fusion(True, host=True)
    monkeypatch.setattr(device_fusion, "_passes", type(device_fusion._passes)())
    with pytest.raises(pf.KnobError, match="device-fuser is not registered"):
        pf.set_device_fusion(True)
    assert pf.get_device_fusion() is False  # the default never raises
    with pytest.raises(pf.KnobError, match="host=True"):
        pf.set_device_fusion(False, host=True)


def test_r3_3_setters_return_the_old_value():
    assert (KNOBS["device_fusion_single"].default, KNOBS["device_fusion_horizontal"].default) == (False, True)
    for setter, old in ((pf.set_device_fusion_single, False), (pf.set_device_fusion_horizontal, True)):
        assert [setter(not old), setter(old), setter(old)] == [old, not old, old]


@pytest.mark.parametrize(
    ("text", "value"), [("1", "on"), ("OFF", "off"), ("host", "host"), ("Auto", "auto"), ("true", "on")]
)
def test_the_environments_words(monkeypatch, text, value):
    monkeypatch.setenv("PROFUSE_DEVICE_FUSION", text)
    assert Knobs().device_fusion == value
    monkeypatch.setenv("PROFUSE_DEVICE_FUSION", "maybe")
    with pytest.raises(pf.KnobError, match="auto, on, off, host"):
        _ = Knobs().device_fusion
