"""A feature as text that is sure to be read back as the same feature."""

from collections.abc import Iterable, Sequence

from dbrm.errors import DBRMError, InvalidSettingError
from dbrm.features.base import Feature
from dbrm.features.parsing import parse_feature
from dbrm.features.transforms import Transform

__all__ = ["write_features"]


def write_features(
    features: Iterable[Feature], names: Sequence[str], transforms: Sequence[Transform]
) -> list[str]:
    """Text of each feature with all digits, after a look whether it can be read back."""
    texts = []
    for feature in features:
        text = str(feature)
        try:
            again = parse_feature(text, names, transforms=transforms)
        except DBRMError as error:
            msg = f"The feature {text} cannot be saved, because it cannot be read: {error}"
            raise InvalidSettingError(msg) from error
        if again.key != feature.key:
            msg = f"The feature {text} cannot be saved: it reads back as {again}."
            raise InvalidSettingError(msg)
        texts.append(text)
    return texts
