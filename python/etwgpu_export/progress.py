"""What an export prints while it works, and nothing else."""

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator


@contextlib.contextmanager
def stage(text: str) -> Iterator[None]:
    """Prints what begins and, when it is over, the seconds that it took; holds back what the libraries print meanwhile."""
    print(f"  {text} ...", end=" ", flush=True)
    start = time.monotonic()
    try:
        with _held_output():
            yield
    except BaseException:
        print("failed", flush=True)
        raise
    print(f"{time.monotonic() - start:.1f} s", flush=True)


@contextlib.contextmanager
def _held_output() -> Iterator[None]:
    """Sends file descriptors 1 and 2, which native code writes to as well, to a file that is shown upon failure."""
    sys.stdout.flush()
    sys.stderr.flush()
    out, err = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 1)
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            sys.stdout.flush()
            sys.stderr.flush()
            held.seek(0)
            os.write(err, held.read())
            raise
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(out, 1)
            os.dup2(err, 2)
            os.close(out)
            os.close(err)
