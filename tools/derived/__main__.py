"""What `mvstack render` and `mvstack check` run in a clone."""

from derived import derived as derived
from recipes.checks import check_recipes as check_recipes
