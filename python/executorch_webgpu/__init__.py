"""Importing this package registers the WebGPU delegate, under the name `VulkanBackend`, with ExecuTorch's runtime.

The delegate is the shared library named by the environment variable ETWGPU_BACKEND or, without it, the one beside this
package or in the build folder of the source tree. Import order against `executorch.runtime` does not matter.
"""

from executorch_webgpu._register import LIBRARY_NAME, find_library, register

__all__ = ["BACKEND_ID", "LIBRARY_NAME", "find_library", "library_path"]

#: The name under which programs ask for the delegate.
BACKEND_ID = "VulkanBackend"

#: The shared library that was loaded.
library_path = register()
