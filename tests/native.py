"""What tests of native code share."""

from __future__ import annotations

import pytest

from burnin.samplers.build import find_compiler

needs_compiler = pytest.mark.skipif(find_compiler() is None, reason="needs a C++ compiler")
