"""The folder's modules are found by the tests of each room of the importers."""
