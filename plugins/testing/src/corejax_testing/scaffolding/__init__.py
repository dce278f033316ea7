"""What `corejax new-plugin` writes: templates, and the names that are put into them."""

from corejax.cli.scaffold.manifest import write_manifest as write_manifest
from corejax.cli.scaffold.names import KINDS as KINDS
from corejax.cli.scaffold.names import LICENSES as LICENSES
from corejax.cli.scaffold.names import Plan as Plan
from corejax.cli.scaffold.writing import files as files
from corejax.cli.scaffold.writing import write as write
