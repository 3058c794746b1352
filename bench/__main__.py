"""Print every figure: `make bench`, or `python -m bench pages appends` for some of them."""

import importlib
import sys

NAMES = (
    "starts",
    "pages",
    "windows",
    "appends",
    "forks",
    "imports",
    "exports",
    "retention",
    "engines",
    "watching",
)


def main() -> None:
    chosen = sys.argv[1:] or [*NAMES, "redaction"]
    for name in chosen:
        module = importlib.import_module(f"bench.{name}")
        print(f"\n{module.__doc__.splitlines()[0]}\n")
        if not hasattr(module, "run"):
            module.main()
            continue
        for figure in module.run():
            print("  " + figure.line(), flush=True)


if __name__ == "__main__":
    main()
