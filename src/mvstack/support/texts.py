"""Read what a person wrote: what is no text or no Python is told with its file and line."""

import ast
from pathlib import Path

from mvstack.support.errors import InvalidInput, relative


def read_text(path: Path) -> str:
    """The text of ``path``. Raises InvalidInput where it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", relative(path)) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"is not UTF-8 text: {error.reason} at byte {error.start}",
            f"{relative(path)}:{line}",
            todo="save it as plain text in UTF-8",
        ) from None


def read_python(path: Path) -> ast.Module:
    """The Python in ``path``, which is not run. Raises InvalidInput as :func:`read_text` does."""
    try:
        return ast.parse(read_text(path), str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InvalidInput(
            f"not valid Python: {getattr(error, 'msg', error)}",
            f"{relative(path)}:{line}",
            todo="correct that line",
        ) from None
