import pickle
import uuid

import pytest

import ftcuda
from ftcuda import Device


def test_identity(device):
    assert device == Device(0) == Device(device)
    assert hash(device) == hash(Device(0))
    assert int(device) == 0
    assert pickle.loads(pickle.dumps(device)) == device
    assert device in Device.get_all_devices()


def test_description(device):
    major, minor = device.compute_capability
    assert device.arch == f"{major}{minor}"
    assert device.name and uuid.UUID(device.uuid) and device.pci_bus_id.count(":") == 2
    assert device.properties.multiprocessor_count > 0
    assert device.properties.warp_size == 32
    free, total = device.memory_info
    assert 0 < free <= total


def test_features_come_with_their_reasons(device):
    features = device.features.as_dict()
    assert features["driver_version"] == ftcuda.driver_info().version
    for name in features:
        assert device.features.why(name)
    with pytest.raises(AttributeError, match="no feature 'colour'"):
        device.features.why("colour")


def test_current_device(device):
    device.set_current()
    assert Device() == device


@pytest.mark.parametrize(
    ("argument", "error"),
    [(-1, ValueError), (2**31, ValueError), ("0", TypeError), (True, TypeError), (1.0, TypeError)],
)
def test_bad_ordinals(argument, error):
    with pytest.raises(error, match="device_id"):
        Device(argument)


def test_no_such_device():
    with pytest.raises(ftcuda.CUDAError, match="CUDA_ERROR_INVALID_DEVICE") as caught:
        Device(63)
    assert (caught.value.code, caught.value.entry_point) == (101, "cuDeviceGet")


def test_unknown_names(device):
    with pytest.raises(AttributeError, match="no property 'colour'"):
        device.properties.colour
    with pytest.raises(AttributeError, match="no feature 'colour'"):
        device.features.colour


def test_no_driver_is_a_clear_error(run_python):
    program = "import ftcuda\ntry: ftcuda.Device(0)\nexcept ftcuda.DriverNotFoundError as error: print(error)"
    said = run_python(program, FTCUDA_DRIVER="/nowhere/libcuda.so")
    assert "/nowhere/libcuda.so" in said and "FTCUDA_DRIVER=sim" in said


def test_import_touches_no_driver(run_python):
    run_python("import ftcuda", FTCUDA_DRIVER="/nowhere/libcuda.so")


def test_environment_report(run_python):
    said = run_python("import runpy; runpy.run_module('ftcuda', run_name='__main__')", expect=0)
    assert "driver" in said and "NVRTC" in said and "memory_pools" in said
