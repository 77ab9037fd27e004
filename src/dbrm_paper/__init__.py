"""The paper reproduced: its data sets, its tables computed again, and their pages.

Nothing in `dbrm` needs this package, except that the commands ``dbrm reproduce`` and
``dbrm data`` and the loaders of the paper's large data sets are found here.
"""
