"""The packages of the distribution, found; pyproject.toml says the rest.

The root of the repository is the package ``profuse``, whatever the checkout is called, which no option of
``packages.find`` can say: it would find ``dialect``, not ``profuse.dialect``. Folders such as ``test`` are no packages.
"""

from setuptools import find_packages, setup

setup(
    package_dir={"profuse": "."},
    packages=["profuse", *(f"profuse.{name}" for name in find_packages())],
    script_name="setup.py",  # which is no module of the package
)
