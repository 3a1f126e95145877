"""What `mvstack render`, `check`, `outdated` and `bump` run in a clone."""

from derived import derived as derived
from recipes.checks import check_recipes as check_recipes
from versions.bump import Bump as Bump
from versions.elsewhere import Elsewhere as Elsewhere
from versions.elsewhere import compared as compared
