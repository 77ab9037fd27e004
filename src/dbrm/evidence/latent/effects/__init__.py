"""The latent effects, each in a file of its own, which registers it.

To add one, add a module with a subclass of `Latent`, a frozen dataclass decorated with
``@LATENT_EFFECTS.register(name)``, where the name is that of the class.
"""

from dbrm._choices import import_modules

import_modules(__name__, __path__)
