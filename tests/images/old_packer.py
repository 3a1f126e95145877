"""Cloud templates as Packer 1.6.6 reads them, the newest that Debian 12 has.

`mvstack image build` refuses it for a cloud. The tests here build against emulators, which need
none of the settings that it does not know; nothing of those is shown by them.
"""

from __future__ import annotations

import re
from pathlib import Path

from mvstack.image import packer

NEWER = {
    "aws.pkr.hcl": ("boot_mode", "deprecate_at", "imds_support", "metadata_options"),
    "azure.pkr.hcl": (
        "accelerated_networking",
        "security_type",
        "secure_boot_enabled",
        "vtpm_enabled",
    ),
}
# 1.6.6 makes a gallery's version from a managed image only
MANAGED = """\
  managed_image_name                = local.name
  managed_image_resource_group_name = var.azure_gallery_resource_group
"""


def adapt(folder: Path) -> None:
    """Take out of the templates in ``folder`` what the Packer here does not know, if it is old."""
    if packer.version() > (1, 6, 6):
        return
    for name, words in NEWER.items():
        text = (folder / name).read_text()
        for word in words:
            pattern = rf"^  {word}(?: += .*| \{{\n(?:    .*\n)*  \}})\n"
            text, count = re.subn(pattern, "", text, flags=re.M)
            assert count == 1, f"{name}: {word} stands there {count} times"
        if name == "azure.pkr.hcl":
            text = text.replace("  azure_tags =", f"{MANAGED}  azure_tags =")
        (folder / name).write_text(text)
