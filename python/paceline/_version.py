"""The version of package and library; the build reads it from CMakeLists.txt."""

__version__ = "0.1.0"
