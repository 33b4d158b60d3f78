"""The folder of exported models: valid as a whole or rebuilt as a whole, written by one process at a time."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

_STAMP = "stamp.json"


def models_dir() -> Path:
    """`executorch-webgpu/models` in the user's cache folder, or the folder named by ETWGPU_MODELS."""
    chosen = os.environ.get("ETWGPU_MODELS")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "executorch-webgpu" / "models"


def files(*modules: ModuleType) -> list[Path]:
    """The source files of modules."""
    return [Path(str(module.__file__)) for module in modules]


def exporter_key(sources: Iterable[Path]) -> str:
    """Hash of everything that decides what an export writes: the files that do it and the packages that they call."""
    digest = hashlib.sha256()
    for package in ("executorch", "torch", "torchao"):
        digest.update(f"{package}=={version(package)}\n".encode())
    for source in sources:
        digest.update(source.read_bytes() + b"\0")
    return digest.hexdigest()


def ensure(name: str, sources: Iterable[Path], write: Callable[[Path], None]) -> Path:
    """The folder `name` of the cache; `write(folder)` fills it, unless these sources wrote it already."""
    key = exporter_key(sources)
    models = models_dir()
    models.mkdir(parents=True, exist_ok=True)
    target = models / name
    with _lock(models / f".{name}.lock"):
        if _is_valid(target, key):
            print(f"{name}: {target} is up to date", flush=True)
            return target
        print(f"{name}: exporting to {target}", flush=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=models) as work:
            folder = Path(work) / name
            folder.mkdir()
            write(folder)
            _write_stamp(folder, key)
            if target.exists():
                shutil.rmtree(target)
            folder.rename(target)
    return target


def _write_stamp(folder: Path, key: str) -> None:
    sizes = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
    (folder / _STAMP).write_text(json.dumps({"key": key, "sizes": sizes}, indent=1))


def _is_valid(folder: Path, key: str) -> bool:
    try:
        stamp = json.loads((folder / _STAMP).read_text())
        same_sizes = all((folder / name).stat().st_size == size for name, size in stamp["sizes"].items())
        return same_sizes and stamp["key"] == key
    except (OSError, ValueError, KeyError):
        return False


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
