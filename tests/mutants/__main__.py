"""The command `python tests/mutants`: see the package."""

from __future__ import annotations

import sys
from pathlib import Path

# the folder itself comes first when it is run: what is in it is imported as `mutants`
sys.path[0] = str(Path(__file__).parents[1])

from mutants.run import main  # noqa: E402

sys.exit(main())
