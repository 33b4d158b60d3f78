"""Finding and loading the delegate's shared library."""

import ctypes
import functools
import importlib.util
import os
from pathlib import Path

LIBRARY_NAME = "libexecutorch_backend_webgpu.so"


def find_library() -> Path:
    """Path of the delegate's shared library; ImportError, with the places looked at, where there is none."""
    chosen = os.environ.get("ETWGPU_BACKEND")
    package = Path(__file__).resolve().parent
    places = [Path(chosen)] if chosen else [package / LIBRARY_NAME, package.parents[1] / "build" / LIBRARY_NAME]
    for place in places:
        if place.is_file():
            return place.resolve()
    looked = ", ".join(str(place) for place in places)
    hint = "correct ETWGPU_BACKEND" if chosen else "build it with `cargo xtask build` or set ETWGPU_BACKEND to its path"
    raise ImportError(f"the WebGPU delegate was not found at {looked}; {hint}")


@functools.cache
def register() -> Path:
    """Loads the delegate into this process, once, and returns the path of its library."""
    path = find_library()
    # The library asks for libexecutorch.so by name; loading the wheel's copy first settles which one it gets.
    for library in (_runtime_library(), path):
        try:
            ctypes.CDLL(str(library))
        except OSError as error:
            raise ImportError(f"{library} could not be loaded: {error}") from error
    return path


def _runtime_library() -> Path:
    spec = importlib.util.find_spec("executorch")
    roots = list(spec.submodule_search_locations or []) if spec else []
    for root in roots:
        library = Path(root) / "lib" / "libexecutorch.so"
        if library.is_file():
            return library
    raise ImportError(f"lib/libexecutorch.so was not found in {roots or 'any executorch package'}; "
                      "expected the wheel of executorch 1.5.1")
