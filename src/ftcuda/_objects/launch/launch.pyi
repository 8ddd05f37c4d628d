from ftcuda._objects.code.kernel import Kernel
from ftcuda._objects.launch.launch_config import LaunchConfig
from ftcuda._objects.stream.stream import AnyStream

def launch(stream: AnyStream, config: LaunchConfig, kernel: Kernel, *kernel_args: object) -> None: ...
