"""Loads that ship with Tenure, as files to start one's own from."""

from importlib.resources import files

from tenure.simulate.load import Load
from tenure.simulate.read import read_load


def names() -> list[str]:
    return sorted(
        entry.name.removesuffix(".toml") for entry in files(__name__).iterdir() if entry.name.endswith(".toml")
    )


def text_of(name: str) -> str:
    """The file of a scenario that `names` gives."""
    return files(__name__).joinpath(f"{name}.toml").read_text("utf-8")


def load_of(name: str) -> Load:
    return read_load(text_of(name), name)
