"""Hashes of recipes are the same on every Python: a cache is filled on one and used on another."""

from __future__ import annotations

from mvstack.support.hashes import normalised

DUMPED = (
    "Module(body=[FunctionDef(name='f', args=arguments(posonlyargs=[], args=[arg(arg='a')], "
    "kwonlyargs=[], kw_defaults=[], defaults=[]), body=[Return(value=List(elts=[], ctx=Load()))], "
    "decorator_list=[]), ClassDef(name='C', bases=[], keywords=[], body=[Pass()], "
    "decorator_list=[]), Expr(value=Constant(value=None))], type_ignores=[])"
)


def test_what_is_hashed_is_what_python_3_11_says() -> None:
    text = 'def f(a):\n    "x"\n    return []  # nothing\n\n\nclass C:\n    pass\n\n\nNone\n'
    assert normalised(text) == DUMPED
