"""A program of setup/ as a module, for tests of its functions. Such a program has no suffix, so `import` does not find it."""
import importlib.machinery
import importlib.util
import pathlib

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def setup_program(name):
    spec = importlib.util.spec_from_loader(name, importlib.machinery.SourceFileLoader(name, str(SOURCE / "setup" / name)))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
