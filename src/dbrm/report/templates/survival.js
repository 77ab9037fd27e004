// Survival of a row: what dbrm/posterior/survival_mixture.py and hazard.py compute.
const dbrmSurvival = (function () {
  "use strict";
  const { normalCdf, quantile } = dbrmDistributions;

  // Hazards of all models, unpacked once.
  function load(state, decode) {
    const predictive = state.data.predictive;
    const hazards = {};
    const keys = ["log_hazard", "spread", "pulls", "log_scale", "scale_variance", "across"];
    for (const key of keys) if (key in predictive) hazards[key] = decode(predictive[key]);
    hazards.count = predictive.times.reduce((sum, times) => sum + times.length, 0);
    // Where the coefficients of each model begin.
    let start = 0;
    hazards.starts = state.models.map(function (model) {
      const own = start;
      start += model.modes.length;
      return own;
    });
    state.hazards = hazards;
  }

  // Location and standard deviation of the log cumulative hazard of a model, from its first
  // event time on.
  function cox(hazards, part, position) {
    const { count, starts } = hazards;
    const m = part.number;
    const place = m * count + position;
    const from = starts[m] * count + position * part.x.length;
    let across = 0;
    part.x.forEach((value, i) => { across += value * hazards.pulls[from + i]; });
    const variance = part.variance + 2 * across + hazards.spread[place];
    return [hazards.log_hazard[place] + part.location, Math.max(variance, 0)];
  }

  function weibull(hazards, part, logTime) {
    const m = part.number;
    const inverse = Math.exp(-hazards.log_scale[m]);
    const u = (logTime - part.location) * inverse;
    let across = 0;
    part.x.forEach((value, i) => { across += value * hazards.across[hazards.starts[m] + i]; });
    const variance = inverse * inverse * part.variance + 2 * u * inverse * across
      + u * u * hazards.scale_variance[m];
    return [u, Math.max(variance, 0)];
  }

  // Probability to survive, averaged over models whose log cumulative hazards are normal.
  function average(predictive, parts, hazardOf) {
    let total = 0;
    for (const part of parts) {
      const [location, variance] = hazardOf(part);
      const scale = predictive.integrate ? Math.sqrt(variance) : 0;
      let chance = 0;
      for (const [node, weight] of predictive.rule) {
        chance += weight * Math.exp(-Math.exp(location + node * scale));
      }
      total += part.weight * chance;
    }
    return Math.min(Math.max(total, 0), 1);
  }

  // Ends of the 95 % interval of the probability.
  function band(predictive, parts, hazardOf) {
    const known = parts.map(function (part) {
      const [location, variance] = hazardOf(part);
      const scale = Math.max(predictive.integrate ? Math.sqrt(variance) : 0, 1e-12);
      return { weight: part.weight, location: Math.max(location, -700), scale };
    });
    const sum = (value) => known.reduce((total, part) => total + part.weight * value(part), 0);
    const centre = sum((part) => part.location);
    const spread = Math.sqrt(sum((part) => part.scale * part.scale
      + Math.pow(part.location - centre, 2)));
    const cdf = (z) => sum((part) => normalCdf((z - part.location) / part.scale));
    return [0.975, 0.025].map((level) => Math.exp(-Math.exp(quantile(cdf, level, centre, spread))));
  }

  // Prediction, survival at each time of the stratum, and at the chosen time with its interval.
  function predict(state, parts, options) {
    const predictive = state.data.predictive;
    const hazards = state.hazards;
    const usable = parts.map((part, number) => Object.assign({ number }, part, {
      variance: state.models[number].dispersion * part.variance
    })).filter((part) => part.weight > 0);
    const times = predictive.times[options.stratum];
    const first = predictive.times.slice(0, options.stratum)
      .reduce((sum, own) => sum + own.length, 0);
    const isCox = predictive.family === "cox";
    const hazardAt = (j) => (isCox ? (part) => cox(hazards, part, first + j)
      : (part) => weibull(hazards, part, Math.log(times[j])));
    const centre = usable.reduce((sum, part) => sum + part.weight * part.location, 0);
    const gone = (log) => 1 - average(predictive, usable, (part) => weibull(hazards, part, log));
    const none = usable.length === 0;
    const quantiles = isCox || none ? [NaN, NaN, NaN]
      : [0.025, 0.5, 0.975].map((level) => Math.exp(quantile(gone, level, centre, 1)));
    return {
      mean: none ? NaN : isCox ? centre : quantiles[1],
      interval: isCox ? null : [quantiles[0], quantiles[2]],
      of_mean: null,
      survival: {
        times: times,
        curve: times.map((_, j) => (none ? NaN : average(predictive, usable, hazardAt(j)))),
        chosen: options.time,
        band: none ? [NaN, NaN] : band(predictive, usable, hazardAt(options.time))
      }
    };
  }

  return { load, predict };
})();
