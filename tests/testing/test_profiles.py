"""The drivers and devices that the simulated driver can be: each in a process of its own."""

import pytest

from tests.conftest import simulated_only
from tests.kernels import PTX_VERSIONS

pytestmark = simulated_only


@pytest.mark.parametrize("profile", [*PTX_VERSIONS, "tcc", "wddm"])
def test_a_profile_has_tensor_maps_where_its_attribute_says_so(run_python, profile):
    for capability, supports in (
        ("80", False),
        ("90", profile not in ("11.2", "11.8")),
        ("120", profile not in ("11.2", "11.8")),
    ):
        printed = run_python(
            "import ftcuda; d = ftcuda.Device(0); print(d.properties.tensor_map_access_supported, d.features.tensor_maps)",
            FTCUDA_SIM_PROFILE=profile, FTCUDA_SIM_CC=capability,
        )  # fmt: skip
        assert printed.split() == [str(supports), str(supports)], (capability, printed)
