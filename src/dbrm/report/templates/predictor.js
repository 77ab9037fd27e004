// Predictions of averaged models from plain data: what dbrm/posterior/portable.py writes.
// Formulas are trees of operations that are interpreted here; nothing is compiled from text.
const dbrmPredictor = (function () {
  "use strict";
  const { erf, normalCdf, studentCdf, logGammaCdf, logGammaMoments, quantile } = dbrmDistributions;

  function decode(text) {
    const raw = atob(text);
    const bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    return new Float64Array(bytes.buffer);
  }

  const functions = {
    "+": (a, b) => a + b,
    "-": (a, b) => a - b,
    "*": (a, b) => a * b,
    "/": (a, b) => a / b,
    "**": (a, b) => Math.pow(a, b),
    ">": (a, b) => a > b,
    "<": (a, b) => a < b,
    neg: (a) => -a,
    where: (condition, yes, no) => (condition ? yes : no),
    exp: Math.exp, log: Math.log, sin: Math.sin, cos: Math.cos, tanh: Math.tanh,
    atan: Math.atan, asinh: Math.asinh, sqrt: Math.sqrt, abs: Math.abs, max: Math.max, erf: erf
  };

  function interpret(tree, names) {
    if (typeof tree === "number") return tree;
    if (typeof tree === "string") return names[tree];
    const values = tree.slice(1).map((part) => interpret(part, names));
    return functions[tree[0]](...values);
  }

  const levels = [0.025, 0.975];

  function clip(value, low, high) {
    return isNaN(value) ? value : Math.min(Math.max(value, low), high);
  }

  // Columns of the table from the inputs, in the units of the fit.
  function tableRow(data, inputs) {
    return data.columns.map(function (column) {
      if ("constant" in column) return column.constant;
      const value = inputs[column.input];
      if ("values" in column) return column.values[value];
      const number = "floor" in column
        ? Math.log(Math.max(value, column.floor) + column.shift) : value;
      return (number - column.mean) / column.sd;
    });
  }

  function apply(data, node, argument, hold) {
    const x = hold && node.clip ? clip(argument, node.clip[0], node.clip[1]) : argument;
    const transform = data.transforms[node.apply];
    if (transform.domain) {
      const [low, high, lowClosed, highClosed] = transform.domain;
      const above = low === null || (lowClosed ? x >= low : x > low);
      const below = high === null || (highClosed ? x <= high : x < high);
      if (!(above && below)) return NaN;
    }
    return interpret(transform.tree, { x: x, c: node.knot });
  }

  // Values of all nodes, with covariates and arguments held inside their training ranges or not.
  function nodeValues(data, row, hold) {
    const values = [];
    for (const node of data.nodes) {
      let value;
      if ("column" in node) {
        value = row[node.column];
        if (hold && node.clip) value = clip(value, node.clip[0], node.clip[1]);
      } else if ("product" in node) {
        value = node.product.reduce((total, child) => total * values[child], 1);
      } else if ("centre" in node) {
        value = (values[node.of] - node.centre) / node.scale;
      } else if ("sum" in node) {
        let total = 0;
        node.sum.forEach((child, j) => { total += node.weights[j] * values[child]; });
        if (node.bias !== null) total += node.bias;
        value = apply(data, node, total, hold);
      } else value = apply(data, node, values[node.of], hold);
      values.push(value);
    }
    return values;
  }

  // Prediction of a single formula, at the location of its coefficients.
  function single(data, formula, nodes) {
    let eta = formula.coefficients[0];
    formula.terms.forEach((node, j) => { eta += formula.coefficients[j + 1] * nodes[node]; });
    return interpret(data.predictive.mean, { x: eta });
  }

  // The models, unpacked once.
  function unpack(data) {
    const models = data.models;
    const arrays = {};
    for (const key of ["probability", "modes", "dispersion", "covariance", "moves", "fitted"]) {
      arrays[key] = key in models ? decode(models[key]) : null;
    }
    const fixed = Array.from({ length: models.fixed }, (_, j) => j);
    const joint = models.joint ? unpackJoint(models) : null;
    let member = 0;
    let start = 0;
    let corner = 0;
    return models.sizes.map(function (size, m) {
      const own = models.members.slice(member, member + size).map((j) => models.fixed + j);
      const terms = fixed.concat(own);
      const k = 1 + terms.length;
      const half = k * (k + 1) / 2;
      const found = {
        terms: terms,
        linear: models.linear[m] === 1,
        probability: arrays.probability[m],
        dispersion: arrays.dispersion[m],
        square: (data.predictive.squares || [])[m] === 1,
        modes: arrays.modes.subarray(start, start + k),
        moves: arrays.moves && arrays.moves.subarray(start, start + k),
        covariance: arrays.covariance && arrays.covariance.subarray(corner, corner + half),
        fitted: arrays.fitted && arrays.fitted.subarray(2 * m, 2 * m + 2)
      };
      if (joint) Object.assign(found, joint[m]);
      found.columns = Array.from(new Set(found.terms.flatMap((j) => data.uses[j])));
      member += size;
      start += k;
      corner += half;
      return found;
    });
  }

  // All parameters of models of classes: ancillary ones, coefficients, half a covariance matrix.
  function unpackJoint(models) {
    const arrays = {};
    for (const key of ["ancillary", "coefficients", "covariance"]) {
      arrays[key] = decode(models.joint[key]);
    }
    const [a, m] = models.joint.counts;
    let start = 0;
    let corner = 0;
    return models.sizes.map(function (size, position) {
      const count = m * (models.fixed + size);
      const half = (a + count) * (a + count + 1) / 2;
      const found = {
        ancillary: arrays.ancillary.subarray(a * position, a * (position + 1)),
        coefficients: arrays.coefficients.subarray(start, start + count),
        joint: arrays.covariance.subarray(corner, corner + half)
      };
      start += count;
      corner += half;
      return found;
    });
  }

  // Which columns each feature uses.
  function columnsOf(data) {
    const found = [];
    for (const node of data.nodes) {
      let own;
      if ("column" in node) own = [node.column];
      else {
        const children = node.product || node.sum || [node.of];
        own = Array.from(new Set(children.flatMap((child) => found[child])));
      }
      found.push(own);
    }
    return data.features.map((position) => found[position]);
  }

  function outsideBy(range, value) {
    if (!range) return 0;
    const beyond = Math.max(range[0] - value, value - range[1], 0);
    const length = range[1] - range[0];
    return length > 0 ? beyond / length : beyond > 0 ? Infinity : 0;
  }

  function limitsOf(model, outside) {
    // Only a linear model goes on outside; others predict a row there as one at the edge.
    let distance = 0;
    if (model.linear) {
      for (const column of model.columns) distance = Math.max(distance, outside[column]);
    }
    if (distance >= 0.5) return [-Infinity, Infinity];
    // Limits are those of a mean; a model of the root has the root of its mean here.
    const [low, high] = Array.from(model.fitted, (end) => model.square ? Math.max(end, 0) ** 2 : end);
    const reach = 0.25 * (high - low) * Math.pow(1 + distance, 10);
    const limits = [low - reach, high + reach];
    return model.square ? limits.map((end) => Math.sqrt(Math.max(end, 0))) : limits;
  }

  // Weight, mode, shift and variance of each model's linear predictor at one row.
  function predictors(state, features, row) {
    const data = state.data;
    const outside = row.map((value, j) => outsideBy(data.ranges[j], value));
    const found = state.models.map(function (model) {
      const x = [1].concat(model.terms.map(function (j) {
        return data.hold && model.linear ? row[data.models.plain[j]] : features[j];
      }));
      const defined = model.terms.every((j) => isFinite(features[j]));
      let location = 0;
      let shift = 0;
      let variance = 0;
      let place = 0;
      for (let i = 0; i < x.length; i++) {
        location += model.modes[i] * x[i];
        if (model.moves) shift += model.moves[i] * x[i];
        if (model.covariance) {
          let half = 0;
          for (let j = 0; j <= i; j++) half += model.covariance[place++] * x[j];
          variance += half * x[i];
        }
      }
      // Below zero a square would grow again.
      if (model.square) location = Math.max(location, 0);
      const usable = defined && isFinite(location + shift) && isFinite(variance);
      if (!usable) return { weight: 0, location: 1, shift: 0, variance: 0, limits: null, x };
      const limits = model.fitted ? limitsOf(model, outside) : null;
      variance = Math.max(variance, 0);
      return { weight: model.probability, location, shift, variance, limits, x };
    });
    const total = found.reduce((sum, part) => sum + part.weight, 0);
    found.forEach((part) => { part.weight = total > 0 ? part.weight / total : NaN; });
    return { parts: found, total: total, outside: outside };
  }

  // A mixture of t distributions; of models of the root of the response, of their squares.
  function student(state, parts) {
    const predictive = state.data.predictive;
    const found = parts.map(function (part, m) {
      const [low, high] = part.limits || [-Infinity, Infinity];
      const dispersion = state.models[m].dispersion;
      const location = clip(part.location, low, high);
      const df = predictive.df[predictive.of[m]];
      const inflation = df ? df[0] / (df[0] - 2) : 1;
      const own = { weight: part.weight, location, df, square: state.models[m].square };
      // What is uncertain about a root adds to the mean of its square, within the limit.
      const room = own.square ? Math.max(high * high - location * location, 0) : Infinity;
      const variance = Math.min(part.variance, room / (inflation * dispersion));
      const scale = Math.sqrt(dispersion * (1 + variance));
      const certain = Math.sqrt(variance / (1 + variance));
      const of_mean = scale * Math.max(certain, 1e-9);
      if (!own.square) return Object.assign(own, { centre: location, slope: 1, scale, of_mean });
      const noise = inflation * scale * scale;
      const centre = location * location + noise - predictive.origin;
      const origins = {
        scale: predictive.origin, of_mean: predictive.origin - noise / (1 + variance)
      };
      return Object.assign(own, { centre, slope: 2 * location, scale, of_mean, origins });
    });
    const mean = found.reduce((sum, part) => sum + part.weight * part.centre, 0);
    const heavy = found.filter((part) => part.weight > 0);
    function interval(key) {
      const spread = Math.sqrt(heavy.reduce((sum, part) => sum + part.weight
        * (Math.pow(part.slope * part[key], 2) + Math.pow(part.centre - mean, 2)), 0));
      function below(part, value) {
        if (!part.square) return studentCdf(part.df, (value - part.location) / part[key]);
        const root = Math.sqrt(Math.max(value + part.origins[key], 0));
        return studentCdf(part.df, (root - part.location) / part[key])
          - studentCdf(part.df, (-root - part.location) / part[key]);
      }
      const cdf = (value) => heavy.reduce((sum, part) => sum + part.weight * below(part, value), 0);
      return levels.map((level) => quantile(cdf, level, mean, spread));
    }
    return { mean: mean, interval: interval("scale"), of_mean: interval("of_mean") };
  }

  function inside(state, mean) {
    return clip(mean, state.ends[0], state.ends[1]);
  }

  // Mean of the response under a normal linear predictor: the same nodes as in dbrm.
  function smoothMean(state, location, scale, weight) {
    const tree = state.data.predictive.mean;
    const worst = weight > 1e-4 ? Math.min(scale, 401) : 0;
    const half = Math.min(Math.ceil(7 * Math.sqrt(1 + worst * worst)), 200);
    let total = 0;
    let mean = 0;
    for (let q = -half; q <= half; q++) {
      const node = 7 * q / half;
      const share = Math.exp(-0.5 * node * node);
      total += share;
      mean += share * inside(state, interpret(tree, { x: location + node * scale }));
    }
    return mean / total;
  }

  // Distribution of a part's linear predictor: its mean on the scale of the response; mean,
  // standard deviation, distribution function, ends, density and moments of its own. Under a log
  // link rates are gamma variables; under others the predictor is normal.
  function distribution(state, location, scale, shift, weight, highest) {
    const predictive = state.data.predictive;
    if (predictive.integrate && predictive.link === "log") {
      const precision = Math.pow(Math.max(scale, 1e-6), -2);
      const delta = clip(0.5 + shift * precision, 0, 1);
      const centre = Math.min(location + Math.log1p(delta / precision), highest, 300);
      const shape = Math.max(precision + delta, 0.25);
      const below = logGammaCdf(shape);
      const moments = logGammaMoments(shape);
      const far = 4.5 / Math.sqrt(shape) + 9 / shape;
      return {
        mean: Math.exp(centre),
        centre: centre + moments[0],
        width: Math.sqrt(moments[1]),
        cdf: (eta) => below(eta - centre),
        reach: [centre - far, centre + Math.log1p(far)],
        density: (eta) => Math.exp(shape * (eta - centre - Math.expm1(eta - centre))),
        skewness: moments[2] / Math.pow(moments[1], 1.5),
        kurtosis: 3 + moments[3] / (moments[1] * moments[1])
      };
    }
    const centre = location + shift;
    return {
      mean: predictive.integrate
        ? smoothMean(state, centre, scale, weight) : interpret(predictive.mean, { x: centre }),
      centre: centre,
      width: scale,
      cdf: (eta) => normalCdf((eta - centre) / Math.max(scale, 1e-300)),
      reach: [centre - 4.5 * scale, centre + 4.5 * scale],
      density: (eta) => Math.exp(-0.5 * Math.pow((eta - centre) / scale, 2)),
      skewness: 0,
      kurtosis: 3
    };
  }

  function family(state, parts) {
    const predictive = state.data.predictive;
    const found = predictive.parts.map(function (m, c) {
      const part = parts[m];
      const weight = part.weight * state.shares[c];
      const [low, high] = part.limits || [-Infinity, Infinity];
      const location = predictive.link === "identity" ? clip(part.location, low, high)
        : part.location;
      const factor = state.factors[c];
      const scale = Math.sqrt(state.models[m].dispersion * part.variance * factor);
      const own = distribution(state, location, scale, part.shift * factor, weight, Math.log(high));
      const dispersion = state.dispersions[c];
      return Object.assign(own, { weight, dispersion, mean: inside(state, own.mean) });
    }).filter((part) => part.weight !== 0);
    const average = (value) => found.reduce((sum, part) => sum + part.weight * value(part), 0);
    const centre = average((part) => part.centre);
    const spread = Math.sqrt(average((part) => part.width * part.width
      + Math.pow(part.centre - centre, 2)));
    const cdf = (eta) => average((part) => part.cdf(eta));
    const ends = levels.map((level) => quantile(cdf, level, centre, spread));
    const of_mean = ends.map((eta) => inside(state, interpret(predictive.mean, { x: eta })));
    const mean = average((part) => part.mean);
    const interval = dbrmResponse.interval(predictive, found, mean, state.ends, levels);
    return { mean: mean, interval: interval, of_mean: of_mean };
  }

  function classes(state, parts) {
    const weights = parts.map((part) => part.weight);
    const designs = parts.map((part) => part.x.slice(1));
    const predictive = state.data.predictive;
    return { chances: dbrmClasses.probabilities(predictive, state.models, weights, designs) };
  }

  function survival(state, parts, options) {
    const placed = parts.map((part) => (part.limits
      ? Object.assign({}, part, { location: clip(part.location, ...part.limits) }) : part));
    return dbrmSurvival.predict(state, placed, options);
  }

  // What moves the linear predictor away from its average, feature by feature.
  function contributions(state, features) {
    const data = state.data;
    const moved = features.map(() => 0);
    let total = 0;
    let baseline = 0;
    for (const model of state.models) {
      if (!model.terms.every((j) => isFinite(features[j]))) continue;
      total += model.probability;
      const own = Array.from(model.modes, (mode, i) => mode + (model.moves ? model.moves[i] : 0));
      let level = model.terms.reduce((sum, j, i) => sum + own[i + 1] * data.centres[j], own[0]);
      // The tangent at the average row.
      let steepness = 1;
      if (model.square) {
        steepness = 2 * Math.max(level, 0);
        level = Math.pow(Math.max(level, 0), 2) + model.dispersion - data.predictive.origin;
      }
      model.terms.forEach(function (j, i) {
        moved[j] += model.probability * steepness * own[i + 1] * (features[j] - data.centres[j]);
      });
      baseline += model.probability * level;
    }
    return { baseline: baseline / total, parts: moved.map((value) => value / total) };
  }

  function load(data) {
    data.uses = columnsOf(data);
    const predictive = data.predictive;
    const state = { data: data, models: unpack(data) };
    if (predictive.kind === "family") {
      state.ends = decode(predictive.ends);
      state.shares = decode(predictive.shares);
      state.factors = decode(predictive.factors);
      state.dispersions = decode(predictive.dispersions);
    }
    if (predictive.kind === "survival") dbrmSurvival.load(state, decode);
    return state;
  }

  // Prediction, 95 % intervals, contributions and columns outside their training range.
  // Options: of survival times the number of the stratum and that of the time.
  function predict(state, inputs, options) {
    const row = tableRow(state.data, inputs);
    const held = nodeValues(state.data, row, true);
    const features = state.data.features.map((position) => held[position]);
    const free = nodeValues(state.data, row, false);
    const found = predictors(state, features, row);
    const kind = { student, family, classes, survival }[state.data.predictive.kind];
    const outside = found.outside.map((distance, j) => (distance > 1e-9 ? j : -1))
      .filter((j) => j >= 0).map((j) => state.data.columns[j].input);
    return Object.assign(kind(state, found.parts, options), {
      contributions: contributions(state, features),
      formulas: state.data.formulas.map((formula) => single(state.data, formula, free)),
      outside: Array.from(new Set(outside))
    });
  }

  return { load: load, predict: predict };
})();
