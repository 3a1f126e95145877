"""A check that cannot be imported: ReFrame warns and exits 0."""

import a_module_that_does_not_exist  # noqa: F401
import reframe as rfm


@rfm.simple_test
class Broken(rfm.RunOnlyRegressionTest):
    """It would check something."""

    tags = {"smoke"}
