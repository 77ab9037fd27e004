"""The raw files of the paper's examples: from a local copy, or downloaded once.

Every file is checked against its SHA-256, so that the loaders read exactly the bytes
they were written for. This module returns paths and reads no data.
"""

import hashlib
import os
from pathlib import Path
from urllib.parse import quote

from dbrm.errors import DBRMError

__all__ = ["DataUnavailableError", "find_local", "locate"]

REPOSITORY = "aliaksah/EMJMCMC2016"
COMMIT = "3954d55fc45296297ee561e0f97f85eb5048c39e"
FOLDER = "examples/DBRM supplementaries"
# The environment variable that names a local copy of FOLDER.
VARIABLE = "DBRM_DATA"

SHA256 = {
    "asteroids/Teach/NeoPHA.txt": (
        "8e52f270dc0be43a564c9cfadd29b73ae85f90a4c9b4b2f846db1f65815ad712"
    ),
    "asteroids/Teach/NotNeo-Type7.txt": (
        "6bc7a544233434fd5cd1806a683b1253b20a982e76233ab28cf3c0c05bdae0e6"
    ),
    "asteroids/Recognize/NEAs.txt": (
        "5157b321df82ed5ea627d20fea35077c8779ffb0a2544b9375cf837735fc979f"
    ),
    "asteroids/Recognize/NotNeas8+.txt": (
        "ea24074193445d81d5b47c19007af6d1658cb98e0f5394b3661e4399a7b347b8"
    ),
    "breast cancer/train.csv": "7445bca80754e568f4b55d5f67e09140b3bc4b8b65fb67eb5b7ced798f8793cd",
    "breast cancer/test.csv": "030363b156b64818d83c13fb1da1ba0718ca958b2e464824c74466b98ed82a84",
    "epigenetic modifications/epigen.txt": (
        "7696ff41102c04d52b242f40e100f4dc2392e263fa22b82baa4d295d20ae87a9"
    ),
    "spam/spam.data": "3713db45216898c90b939f058343a8b2317a401e5f018c9a5d7673f7d70a591e",
    "spam/spam.traintest": "ba6718589db52bc72324e3edb5dc458c547675088aa114a81afa84d972d35ba5",
}


class DataUnavailableError(DBRMError, OSError):
    """A file of the paper's data cannot be found or downloaded, or has the wrong content."""


def locate(name: str) -> Path:
    """Return the path of one raw file, downloading it on first use.

    Parameters
    ----------
    name
        Path of the file inside the authors' folder, one of `SHA256`.

    Notes
    -----
    If the environment variable ``DBRM_DATA`` is set, it names a local copy of the
    folder and nothing is downloaded. Otherwise files are kept in the user's cache.
    """
    folder = os.environ.get(VARIABLE)
    return _download(name) if folder is None else _find(Path(folder), name)


def find_local(name: str) -> Path | None:
    """Return the path of a raw file if it is on this machine; never download."""
    folder = os.environ.get(VARIABLE)
    if folder is not None:
        path = Path(folder, name)
    else:
        try:
            path = _cache() / name
        except ImportError:
            return None
    return path if path.is_file() else None


def _cache() -> Path:
    import pooch

    return Path(pooch.os_cache("dbrm"), COMMIT[:8])


def _find(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        msg = (
            f"{VARIABLE}={str(folder)!r} has no file {name!r}. It must be a copy of the folder "
            f"{FOLDER!r} of github.com/{REPOSITORY}; unset it to download instead."
        )
        raise DataUnavailableError(msg)
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256[name]:
        msg = (
            f"{str(path)!r} differs from the authors' file (SHA-256). Copy it again, without "
            "converting line endings."
        )
        raise DataUnavailableError(msg)
    return path


def _download(name: str) -> Path:
    url = f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}/{quote(FOLDER)}/{quote(name)}"
    advice = (
        f"Or copy the folder {FOLDER!r} of github.com/{REPOSITORY} at commit {COMMIT[:8]} and set "
        f"the environment variable {VARIABLE} to where it is."
    )
    try:
        import pooch
    except ImportError as error:
        msg = f"Downloading {name!r} needs pooch: pip install 'dbrm[data]'. {advice}"
        raise DataUnavailableError(msg) from error
    logger, level = pooch.get_logger(), pooch.get_logger().level
    logger.setLevel("WARNING")
    try:
        return Path(pooch.retrieve(url, f"sha256:{SHA256[name]}", fname=name, path=_cache()))
    except (OSError, ValueError) as error:
        msg = f"{name!r} could not be downloaded from {url} ({error}). Is there a network? {advice}"
        raise DataUnavailableError(msg) from error
    finally:
        logger.setLevel(level)
