"""The files of the tree: those that git tracks, and nothing that somebody left in the clone (folders of runs, virtual environments, notebooks)."""
import os
import shutil
import subprocess

OURS = ("backends", "bench", "checker", "docs", "examples", "experiments", "extract", "fisher", "python", "rules", "setup", "src", "tests")


def tree_files(root):
    """Paths below root, sorted. In an unpacked archive, or without git, all files in the folders of the tree, and those next to them."""
    git = shutil.which("git")
    listed = git and subprocess.run([git, "-C", str(root), "ls-files", "-z", "--cached"], capture_output=True, text=True)
    if listed and listed.returncode == 0 and listed.stdout:
        return sorted(f for f in listed.stdout.split("\0") if f and (root / f).is_file())
    kept = [entry.name for entry in os.scandir(root) if entry.is_file()]
    for folder in OURS:
        for where, _, names in os.walk(root / folder):
            kept += [os.path.relpath(os.path.join(where, name), root) for name in names]
    return sorted(f for f in kept if "__pycache__" not in f)
