"""The Spack recipes, read without Spack."""

from mvstack.recipes.checks import check_recipes
from mvstack.recipes.model import Recipe
from mvstack.recipes.reading import RECIPES, read_recipe, read_recipes

__all__ = ["RECIPES", "Recipe", "check_recipes", "read_recipe", "read_recipes"]
