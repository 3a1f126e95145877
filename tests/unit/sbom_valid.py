"""Whether an SBOM is what its standard says, asked of the standards' own validators."""

from __future__ import annotations

from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

from mvstack.image.sbom import CYCLONEDX, SPDX, Sbom


def errors(sbom: Sbom, folder: Path) -> list[str]:
    """What the validators complain of; both formats."""
    folder.mkdir(parents=True, exist_ok=True)
    sbom.write(folder)
    found = JsonStrictValidator(SchemaVersion.V1_6).validate_str((folder / CYCLONEDX).read_text())
    document = parse_file(str(folder / SPDX))
    said = [one.validation_message for one in validate_full_spdx_document(document)]
    return [*([str(found)] if found else []), *said]
