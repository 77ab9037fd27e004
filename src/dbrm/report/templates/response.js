// The interval of a new response: what dbrm/posterior/family_mixture.py computes, on the same grid.
const dbrmResponse = (function () {
  "use strict";
  const { normalCdf, logGammaCdf, negativeBinomialCdf, quantile, wholeQuantile } = dbrmDistributions;
  const widest = 1.5;
  const shared = 6;

  // Variance of a response, and its distribution function at a value, by the mean.
  const families = {
    gaussian: {
      variance: (mean, dispersion) => dispersion,
      cdf: (y, dispersion) => (mean) => normalCdf((y - mean) / Math.sqrt(dispersion))
    },
    gamma: {
      variance: (mean, dispersion) => dispersion * mean * mean,
      cdf: function (y, dispersion) {
        const below = logGammaCdf(1 / dispersion);
        return (mean) => below(Math.log(y) - Math.log(mean));
      }
    },
    poisson: {
      variance: (mean) => mean,
      cdf: function (y) {
        const below = logGammaCdf(y + 1);
        return (mean) => 1 - below(Math.log(mean) - Math.log(y + 1));
      }
    },
    negative_binomial: {
      variance: (mean, dispersion) => mean * (1 + dispersion * mean),
      cdf: function (y, dispersion) {
        const below = negativeBinomialCdf(1 / dispersion, y);
        return (mean) => below(dispersion * mean);
      }
    }
  };

  // Least width in eta over which the distribution function of the response varies.
  function widthOf(kind, parts, meanOf, slopeOf) {
    let width = widest;
    for (const part of parts) {
      if (!(part.weight > 1e-4)) continue;
      for (const eta of [part.centre - 2 * part.width, part.centre + 2 * part.width]) {
        const noise = Math.sqrt(kind.variance(meanOf(eta), part.dispersion)) / slopeOf(eta);
        if (noise > 0) width = Math.min(width, noise);
      }
    }
    return width;
  }

  // Three nodes and weights with the first four moments of a part.
  function threeNodes(part) {
    const half = Math.sqrt(part.kurtosis - 0.75 * part.skewness * part.skewness);
    const below = 0.5 * part.skewness - half;
    const above = 0.5 * part.skewness + half;
    const first = -1 / (below * 2 * half);
    const last = 1 / (above * 2 * half);
    return [[below, first], [0, 1 - first - last], [above, last]]
      .map(([node, weight]) => [part.centre + node * part.width, weight]);
  }

  // Masses of the parts on equally spaced points; narrow parts are shared among six points so
  // that polynomials of degree five stay exact.
  function spread(parts, width) {
    const low = Math.min(...parts.map((part) => part.reach[0]));
    const high = Math.max(...parts.map((part) => part.reach[1]));
    const count = Math.min(Math.ceil((high - low) / (width / 4)), 1000) + 1 + shared;
    const step = Math.max(width / 4, (high - low) / (count - shared));
    const start = 0.5 * (low + high) - 0.5 * (count - 1) * step;
    const points = Array.from({ length: count }, (_, j) => start + j * step);
    const masses = new Float64Array(count);
    for (const part of parts) {
      if (part.width >= step) {
        const values = points.map(part.density);
        const total = values.reduce((sum, value) => sum + value, 0);
        values.forEach((value, j) => { masses[j] += part.weight * value / total; });
        continue;
      }
      for (const [node, weight] of threeNodes(part)) {
        const place = (node - start) / step;
        const first = Math.min(Math.max(Math.floor(place) - shared / 2 + 1, 0), count - shared);
        for (let j = 0; j < shared; j++) {
          let share = 1;
          for (let i = 0; i < shared; i++) if (i !== j) share *= (place - first - i) / (j - i);
          masses[first + j] += part.weight * weight * share;
        }
      }
    }
    return { points, masses };
  }

  // Parts whose dispersions are within one percent share a grid.
  function grids(predictive, parts, width) {
    const groups = new Map();
    for (const part of parts) {
      const key = predictive.dispersed ? Math.round(Math.log(part.dispersion) / 0.01) : 0;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(part);
    }
    return Array.from(groups.values(), function (own) {
      const total = own.reduce((sum, part) => sum + part.weight, 0);
      const dispersion = own.reduce((sum, part) => sum + part.weight * part.dispersion, 0) / total;
      return Object.assign(spread(own, width), { dispersion });
    });
  }

  // Lower and upper end, or null where there is none to show.
  function interval(predictive, found, mean, ends, levels) {
    const kind = families[predictive.family];
    const isLog = predictive.link === "log";
    if (!kind || !(isLog || predictive.link === "identity")) return null;
    const parts = found.filter((part) => part.weight > 0);
    if (!parts.length || !isFinite(mean)) return levels.map(() => NaN);
    const inside = (value) => Math.min(Math.max(value, ends[0]), ends[1]);
    const meanOf = (eta) => inside(isLog ? Math.exp(eta) : eta);
    const width = widthOf(kind, parts, meanOf, (eta) => (isLog ? Math.exp(eta) : 1));
    const known = grids(predictive, parts, width);
    for (const grid of known) grid.means = grid.points.map(meanOf);
    function cdf(y) {
      let total = 0;
      for (const grid of known) {
        const below = kind.cdf(y, grid.dispersion);
        grid.means.forEach((value, j) => {
          if (Math.abs(grid.masses[j]) > 1e-17) total += grid.masses[j] * below(value);
        });
      }
      return Math.min(Math.max(total, 0), 1);
    }
    if (predictive.discrete) return levels.map((level) => wholeQuantile(cdf, level, mean));
    const noise = Math.sqrt(kind.variance(mean, parts[0].dispersion));
    if (predictive.family !== "gamma") {
      return levels.map((level) => quantile(cdf, level, mean, noise));
    }
    return levels.map((level) => Math.exp(
      quantile((log) => cdf(Math.exp(log)), level, Math.log(mean), noise / mean)));
  }

  return { interval };
})();
