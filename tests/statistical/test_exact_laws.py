"""The physical laws by exhaustion: all models of total complexity at most four.

No search, no randomness: every canonical feature up to complexity four (the sweep's own
list), every model whose complexities add up to four, the engine's evidence for each. On
the authors' planets this must give the reference numbers; on simulated planets the search
must find what exhaustion finds.
"""

import json

import numpy as np
import pytest
from tests.unit.evolution.simple import simple_features

import dbrm
from dbrm.data import learn_recipe
from dbrm.datasets import load_exoplanets, simulate_planets
from dbrm.evidence import GaussianEngine, KnownVariance
from dbrm.evolution import Filtration, Grammar, Problem, Registry, SearchBudget
from dbrm.evolution.projection import OptimizeThenTransform
from dbrm.features import column_status, resolve_transforms
from dbrm.priors import Complexity
from dbrm.status import Status

TOTAL = 4
MASS_LAW = "RadiusJpt*RadiusJpt*RadiusJpt*PlanetaryDensJpt"
KEPLER = "troot(PeriodDays*PeriodDays*HostStar{})"
BLOCK = 400


class Exhausted:
    """Every model of total complexity at most `TOTAL`, under the scripts' criterion."""

    def __init__(self, planets, response, transforms):
        _, table = learn_recipe(planets.drop(columns=response))
        y = planets[response].to_numpy(float)
        self._penalty = np.log(y.size)
        self._engine = GaussianEngine(y, KnownVariance())
        problem = Problem(
            table=table,
            engine=self._engine,
            model_prior=Complexity(self._penalty),
            grammar=Grammar(resolve_transforms(transforms), 5, TOTAL, 4, OptimizeThenTransform()),
            filtration=Filtration(),
            budget=SearchBudget(15, 1, n_init=1, n_final=1),
            max_model_size=TOTAL,
        )
        features, columns = simple_features(problem, TOTAL)
        self.registry, kept = Registry(table), {}
        for feature, column in zip(features, columns.T, strict=True):
            if column_status(column) == Status.OK:
                kept.setdefault(self.registry.number(feature, column), column)
        self.features = self.registry.features
        self._columns = np.column_stack([kept[number] for number in range(len(kept))])
        self._complexity = np.array([feature.complexity for feature in self.features])
        self.scores = {}
        self._score_all()
        values = np.array(list(self.scores.values()))
        self.log_mass = values.max() + np.log(np.exp(values - values.max()).sum())

    def _of(self, complexity):
        return np.flatnonzero(self._complexity == complexity)

    def _score_all(self):
        """Small features in all combinations, the others alone or beside one covariate."""
        small = np.concatenate([self._of(1), self._of(2)])
        self._score(small, list(_within_budget(self._complexity[small])))
        covariates = self._of(1)
        beside = np.arange(covariates.size)
        for start in range(0, self._of(3).size, BLOCK):
            chunk = self._of(3)[start : start + BLOCK]
            inside = covariates.size + np.arange(chunk.size)
            pairs = [(int(i), int(j)) for j in inside for i in beside]
            self._score(np.concatenate([covariates, chunk]), [(int(j),) for j in inside] + pairs)
        for start in range(0, self._of(4).size, BLOCK):
            chunk = self._of(4)[start : start + BLOCK]
            self._score(chunk, [(j,) for j in range(chunk.size)])

    def _score(self, numbers, sets):
        prepared = self._engine.prepare(self._columns[:, numbers])
        masks = np.zeros((len(sets), numbers.size), dtype=np.bool_)
        for row, chosen in enumerate(sets):
            masks[row, list(chosen)] = True
        log_evidence, _ = prepared.log_evidence(masks)
        half_n = 0.5 * self._engine.n_rows * np.log(2 * np.pi)
        complexity = masks @ self._complexity[numbers]
        scores = log_evidence + half_n - self._penalty * (1 + complexity)
        for chosen, score in zip(sets, scores, strict=True):
            self.scores[frozenset(numbers[list(chosen)].tolist())] = float(score)

    def number(self, text):
        feature = dbrm.parse_feature(text)
        number = self.registry.known(feature)
        assert number is not None, text
        return number

    def score(self, text):
        """Criterion of the model with this feature alone."""
        return self.scores[frozenset([self.number(text)])]

    def inclusion(self, text):
        number = self.number(text)
        total = sum(np.exp(s - self.log_mass) for key, s in self.scores.items() if number in key)
        return float(total)


def _within_budget(sizes, start=0, budget=TOTAL, chosen=()):
    """Every set of positions whose sizes add up to at most the budget."""
    yield chosen
    for position in range(start, len(sizes)):
        if sizes[position] <= budget:
            yield from _within_budget(
                sizes, position + 1, budget - sizes[position], (*chosen, position)
            )


@pytest.fixture(scope="module")
def exoplanets():
    return load_exoplanets()


@pytest.fixture(scope="module")
def exact(reference):
    return json.loads((reference / "exact_values.json").read_text())


@pytest.mark.parametrize(
    "transforms", ["paper-g1", pytest.param("paper-g1-code", marks=pytest.mark.slow)]
)
def test_mass_law_under_g1(exoplanets, exact, transforms):
    found = Exhausted(exoplanets, "PlanetaryMassJpt", transforms)
    expected = exact["mass_code_criterion_total_complexity_le_4"]["G1"]
    assert max(found.scores, key=found.scores.get) == {found.number(MASS_LAW)}
    assert found.score(MASS_LAW) == pytest.approx(expected["logcrit"], abs=5e-4)
    assert found.inclusion(MASS_LAW) == pytest.approx(expected["PIP"], abs=5e-5)


@pytest.mark.slow
def test_mass_law_under_g2_is_beaten(exoplanets, exact):
    """With the scripts' G2, a 3.5th power costs less than three factors."""
    found = Exhausted(exoplanets, "PlanetaryMassJpt", "paper-g2-code")
    expected = exact["mass_code_criterion_total_complexity_le_4"]["G2"]
    for text, name in {
        "pow3_5(RadiusJpt)*PlanetaryDensJpt": "R^3.5*rho",
        MASS_LAW: "R*R*R*rho",
    }.items():
        score, inclusion = expected[name]
        assert found.score(text) == pytest.approx(score, abs=5e-4)
        assert found.inclusion(text) == pytest.approx(inclusion, abs=5e-4)


def test_keplers_law_and_its_near_ties(exoplanets, exact):
    found = Exhausted(exoplanets, "SemiMajorAxisAU", "paper-g1")
    expected = exact["kepler_code_criterion_total_complexity_le_4"]
    variants = {
        "MassSlrMass": "F1 (P*P*Mh)^(1/3)",
        "RadiusSlrRad": "F2 (P*P*Rh)^(1/3)",
        "TempK": "F3 (P*P*Th)^(1/3)",
    }
    for variant, name in variants.items():
        score, inclusion = expected[name]
        assert found.score(KEPLER.format(variant)) == pytest.approx(score, abs=5e-4)
        assert found.inclusion(KEPLER.format(variant)) == pytest.approx(inclusion, abs=5e-4)


def test_keplers_law_under_the_criterion_of_the_text(exoplanets, exact):
    """Jeffreys' prior and a = n**-2 per unit of complexity."""
    expected = exact["kepler_paper_text_criterion"]
    y = exoplanets["SemiMajorAxisAU"]
    law = dbrm.parse_feature(KEPLER.format("MassSlrMass"))
    mass = dbrm.parse_feature("PlanetaryMassJpt*PeriodDays")
    penalty = 2 * np.log(len(y))
    one = np.column_stack([law.evaluate(exoplanets)])
    two = np.column_stack([law.evaluate(exoplanets), mass.evaluate(exoplanets)])
    score = dbrm.log_evidence(one, y) - penalty * law.complexity
    assert score == pytest.approx(expected["F1"], abs=0.005)
    score = dbrm.log_evidence(two, y) - penalty * (law.complexity + mass.complexity)
    assert score == pytest.approx(expected["F1 + PlanetaryMass*PeriodDays"], abs=0.005)


@pytest.fixture(scope="module")
def simulated():
    # So noisy that exhaustion leaves the law in doubt: probabilities are worth comparing.
    return simulate_planets(seed=5, n=120, noise=0.3)


@pytest.fixture(scope="module")
def exhausted(simulated):
    return Exhausted(simulated, "SemiMajorAxisAU", ["troot", "tanh"])


def test_exhaustion_agrees_with_plain_least_squares(simulated, exhausted):
    """Three hundred models of all kinds, each once more from its feature's text."""
    y = simulated["SemiMajorAxisAU"].to_numpy()
    keys = list(exhausted.scores)
    for key in keys[:: len(keys) // 300]:
        features = [exhausted.features[number] for number in sorted(key)]
        columns = [np.ones(y.size), *(feature.evaluate(simulated) for feature in features)]
        design = np.column_stack(columns)
        design /= np.abs(design).max(axis=0)
        if np.linalg.matrix_rank(design, tol=1e-4) < design.shape[1]:
            continue
        residual = y - design @ np.linalg.lstsq(design, y)[0]
        complexity = sum(feature.complexity for feature in features)
        expected = -0.5 * residual @ residual - np.log(y.size) * (1 + complexity)
        assert exhausted.scores[key] == pytest.approx(expected, rel=1e-9)


def test_the_search_finds_what_exhaustion_finds(simulated, exhausted):
    """Restricted to the same models, nearly all the exact mass, at the exact ratios."""
    posterior = dbrm.fit(
        simulated.drop(columns="SemiMajorAxisAU"),
        simulated["SemiMajorAxisAU"],
        preset="paper_code",
        transforms=["troot", "tanh"],
        max_complexity=TOTAL,
        operators={"projection": 0.0},
        random_state=1,
        n_chains=2,
        n_populations=30,
    )
    found = {}
    for row in posterior.models.itertuples():
        complexity = sum(dbrm.parse_feature(text).complexity for text in row.features)
        if complexity <= TOTAL:
            key = frozenset(exhausted.number(text) for text in row.features)
            # A chain may not have met the simplest spelling of a column: then it pays more.
            excess = complexity - sum(exhausted.features[number].complexity for number in key)
            found[key] = row.log_evidence + row.log_prior + np.log(len(simulated)) * excess
    exact_scores = np.array([exhausted.scores[key] for key in found])
    scores = np.array(list(found.values()))
    np.testing.assert_allclose(scores - scores[0], exact_scores - exact_scores[0], atol=1e-6)
    assert np.exp(exact_scores - exhausted.log_mass).sum() > 0.99
