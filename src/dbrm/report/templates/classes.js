// Probabilities of classes: what dbrm/evidence/families/multinomial.py and ordinal.py compute.
const dbrmClasses = (function () {
  "use strict";
  const { normalCdf } = dbrmDistributions;

  function softmax(eta) {
    const top = Math.max(0, ...eta);
    const powers = [0, ...eta].map((value) => Math.exp(value - top));
    const total = powers.reduce((sum, value) => sum + value, 0);
    return powers.map((value) => value / total);
  }

  // A square root of a symmetric matrix by its eigenvectors, which Jacobi's rotations find.
  function squareRoot(matrix) {
    const n = matrix.length;
    const a = matrix.map((row) => row.slice());
    const vectors = a.map((_, i) => a.map((__, j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < 60; sweep++) {
      let outside = 0;
      for (let p = 0; p < n; p++) {
        for (let q = p + 1; q < n; q++) {
          if (Math.abs(a[p][q]) <= 1e-300) continue;
          outside += Math.abs(a[p][q]);
          const theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
          const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1));
          const c = 1 / Math.hypot(t, 1);
          const s = t * c;
          for (let k = 0; k < n; k++) {
            [a[k][p], a[k][q]] = [c * a[k][p] - s * a[k][q], s * a[k][p] + c * a[k][q]];
          }
          for (let k = 0; k < n; k++) {
            [a[p][k], a[q][k]] = [c * a[p][k] - s * a[q][k], s * a[p][k] + c * a[q][k]];
            [vectors[k][p], vectors[k][q]]
              = [c * vectors[k][p] - s * vectors[k][q], s * vectors[k][p] + c * vectors[k][q]];
          }
        }
      }
      if (outside === 0) break;
    }
    return vectors.map((row) => row.map((value, k) => value * Math.sqrt(Math.max(a[k][k], 0))));
  }

  // Entry of a symmetric matrix whose lower triangle is stored row by row.
  function entry(half, i, j) {
    return i >= j ? half[i * (i + 1) / 2 + j] : half[j * (j + 1) / 2 + i];
  }

  // Averaged over 2m + 1 points with the mean and covariance of the m predictors.
  function multinomial(predictive, model, x) {
    const m = predictive.n_classes - 1;
    const design = [1].concat(x);
    const eta = Array.from({ length: m }, function (_, k) {
      return x.reduce((sum, value, j) => sum + value * model.coefficients[j * m + k],
        model.ancillary[k]);
    });
    if (!predictive.integrate) return softmax(eta);
    const covariance = eta.map((_, k) => eta.map(function (__, l) {
      let total = 0;
      design.forEach((first, i) => design.forEach((second, j) => {
        total += first * second * entry(model.joint, i * m + k, j * m + l);
      }));
      return total;
    }));
    const root = squareRoot(covariance);
    const centre = Math.max(3 - m, 0.5);
    const reach = Math.sqrt(m + centre);
    const total = softmax(eta).map((value) => centre / (m + centre) * value);
    for (let k = 0; k < m; k++) {
      for (const sign of [-reach, reach]) {
        softmax(eta.map((value, l) => value + sign * root[l][k])).forEach((value, c) => {
          total[c] += 0.5 / (m + centre) * value;
        });
      }
    }
    return total;
  }

  // Every threshold less the predictor is normal: integrals over one variable.
  function ordinal(predictive, model, x) {
    const a = predictive.n_classes - 1;
    const eta = x.reduce((sum, value, j) => sum + value * model.coefficients[j], 0);
    let own = 0;
    x.forEach((first, i) => x.forEach((second, j) => {
      if (predictive.integrate) own += first * second * entry(model.joint, a + i, a + j);
    }));
    const logistic = (value) => 1 / (1 + Math.exp(-value));
    let before = 0;
    const found = Array.from({ length: a }, function (_, k) {
      const gap = model.ancillary[k] - eta;
      let cumulative;
      if (!predictive.integrate) {
        cumulative = predictive.link === "probit" ? normalCdf(gap) : logistic(gap);
      } else {
        const across = x.reduce((sum, value, j) => sum + value * entry(model.joint, a + j, k), 0);
        const variance = Math.max(entry(model.joint, k, k) - 2 * across + own, 0);
        const scale = Math.sqrt(variance);
        cumulative = predictive.link === "probit" ? normalCdf(gap / Math.sqrt(1 + variance))
          : predictive.rule.reduce((sum, pair) => sum + pair[1] * logistic(gap + pair[0] * scale), 0);
      }
      const upTo = Math.max(before, cumulative);
      const share = upTo - before;
      before = upTo;
      return share;
    });
    return found.concat([1 - before]);
  }

  // Averaged over models; `designs` are their columns, `weights` add to one.
  function probabilities(predictive, models, weights, designs) {
    const one = predictive.family === "multinomial" ? multinomial : ordinal;
    const total = Array.from({ length: predictive.n_classes }, () => 0);
    models.forEach(function (model, m) {
      if (weights[m] === 0) return;
      one(predictive, model, designs[m]).forEach((value, c) => { total[c] += weights[m] * value; });
    });
    const sum = total.reduce((all, value) => all + value, 0);
    return total.map((value) => value / sum);
  }

  return { probabilities };
})();
