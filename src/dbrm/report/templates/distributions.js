// Distribution functions, and quantiles from them: all digits that double precision has.
const dbrmDistributions = (function () {
  "use strict";

  // Error function: a series of positive terms near zero, a continued fraction further out.
  function erf(x) {
    const size = Math.abs(x);
    if (!(size < 2.5)) return isNaN(x) ? NaN : Math.sign(x) * (1 - erfcTail(size));
    let term = size;
    let total = size;
    for (let n = 1; n < 200 && term > 1e-17 * total; n++) {
      term *= 2 * size * size / (2 * n + 1);
      total += term;
    }
    return Math.sign(x) * 2 / Math.sqrt(Math.PI) * Math.exp(-size * size) * total;
  }

  function erfcTail(x) {
    if (x > 27) return 0;
    let fraction = 0;
    for (let n = 120; n > 0; n--) fraction = n / 2 / (x + fraction);
    return Math.exp(-x * x) / Math.sqrt(Math.PI) / (x + fraction);
  }

  function normalCdf(x) {
    const z = x / Math.SQRT2;
    return z < -2.5 ? 0.5 * erfcTail(-z) : 0.5 * (1 + erf(z));
  }

  // Upper tail of the t distribution beyond |t|: half of an incomplete beta function.
  function studentCdf(known, t) {
    if (known === null) return normalCdf(t);
    const df = known[0];
    const square = t * t / df;
    const x = 1 / (1 + square);
    // x^(df/2) (1 - x)^(1/2) / B(df/2, 1/2)
    const front = Math.exp(-0.5 * df * Math.log1p(square) - known[1]) * Math.sqrt(square * x);
    let tail;
    if (t === 0) tail = 0.5;
    else if (x < (0.5 * df + 1) / (0.5 * df + 2.5)) {
      tail = 0.5 * front * betaFraction(0.5 * df, 0.5, x) / (0.5 * df);
    } else tail = 0.5 - 0.5 * front * betaFraction(0.5, 0.5 * df, square * x) / 0.5;
    return t > 0 ? 1 - tail : tail;
  }

  function betaFraction(a, b, x) {
    const tiny = 1e-300;
    let c = 1;
    let d = 1 - (a + b) * x / (a + 1);
    d = 1 / (Math.abs(d) < tiny ? tiny : d);
    let h = d;
    for (let m = 1; m < 5000; m++) {
      let step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      d = 1 + step * d;
      c = 1 + step / c;
      d = 1 / (Math.abs(d) < tiny ? tiny : d);
      if (Math.abs(c) < tiny) c = tiny;
      h *= d * c;
      step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
      d = 1 + step * d;
      c = 1 + step / c;
      d = 1 / (Math.abs(d) < tiny ? tiny : d);
      if (Math.abs(c) < tiny) c = tiny;
      const change = d * c;
      h *= change;
      if (Math.abs(change - 1) < 1e-16) break;
    }
    return h;
  }

  // Coefficients of the expansion by Temme (1979): eta / (lambda - 1) in powers of eta, where
  // eta^2 / 2 = lambda - 1 - log(lambda).
  const temme = (function () {
    const alpha = [0, 1];
    for (let n = 2; n < 34; n++) {
      let total = alpha[n - 1];
      for (let j = 2; j < n; j++) total -= j * alpha[j] * alpha[n - j + 1];
      alpha.push(total / (n + 1));
    }
    const found = alpha.slice(1).map((value, n) => (n + 1) * value);
    found[1] -= 1;
    return found;
  })();

  // Logarithm of a gamma variable with mean one: its distribution function. Shapes below 20 are
  // raised by P(a, x) = P(a + 1, x) + x^a e^-x / Gamma(a + 1).
  function logGammaCdf(shape) {
    const raised = shape < 20 ? Math.ceil(20 - shape) : 0;
    const a = shape + raised;
    const beta = new Array(temme.length + 1).fill(0);
    for (let n = temme.length - 1; n > 0; n--) beta[n - 1] = temme[n] + (n + 1) * beta[n + 1] / a;
    const whole = 1 + beta[1] / a;
    const front = Math.sqrt(2 * Math.PI * a) * whole;
    const up = Math.log(shape / a);
    const factorial = logGamma(shape + 1);
    return function (u) {
      const v = u + up;
      const eta = Math.sign(v) * Math.sqrt(2 * Math.max(Math.expm1(v) - v, 0));
      if (eta > 3) return 1;
      let total = 0;
      if (eta > -3) {
        let sum = 0;
        for (let n = temme.length - 2; n >= 0; n--) sum = sum * eta + beta[n];
        total = normalCdf(eta * Math.sqrt(a)) - Math.exp(-0.5 * a * eta * eta) * sum / front;
      }
      if (raised) {
        const x = shape * Math.exp(u);
        let term = Math.exp(shape * (Math.log(shape) + u) - x - factorial);
        for (let k = 1; k <= raised; k++) {
          total += term;
          term *= x / (shape + k);
        }
      }
      return total;
    };
  }

  // Logarithm of the gamma function, by Stirling's series for arguments above 20.
  function logGamma(a) {
    let below = 0;
    let x = a;
    for (; x < 20; x++) below += Math.log(x);
    return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + stirlingRest(x) - below;
  }

  // Mean, variance, third and fourth cumulant of the logarithm of a gamma variable with mean one.
  function logGammaMoments(shape) {
    const sums = [0, 0, 0, 0];
    let x = shape;
    for (; x < 8; x++) {
      for (let order = 1; order <= 4; order++) sums[order - 1] += Math.pow(x, -order);
    }
    const q = 1 / x;
    const q2 = q * q;
    return [
      -0.5 * q - q2 * (1 / 12 - q2 * (1 / 120 - q2 * (1 / 252 - q2 / 240))) - sums[0]
        + Math.log(x / shape),
      q * (1 + q * (0.5 + q * (1 / 6 - q2 * (1 / 30 - q2 * (1 / 42 - q2 / 30))))) + sums[1],
      -q2 * (1 + q * (1 + q * (0.5 - q2 * (1 / 6 - q2 * (1 / 6 - 0.3 * q2))))) - 2 * sums[2],
      q2 * q * (2 + q * (3 + q * (2 - q2 * (1 - q2 * (4 / 3 - 3 * q2))))) + 6 * sums[3]
    ];
  }

  // What is left of Stirling's formula.
  function stirlingRest(x) {
    const q = 1 / (x * x);
    return (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q / 1680))) / x;
  }

  // Logarithm of Gamma(large) / Gamma(large + small), without the digits that would cancel.
  function logGammaRatio(large, small) {
    let x = large;
    let below = 0;
    for (; x < 20; x++) below += Math.log1p(small / x);
    return below + small - small * Math.log(x) - (x + small - 0.5) * Math.log1p(small / x)
      + stirlingRest(x) - stirlingRest(x + small);
  }

  // Negative binomial with this shape and odds = mean / shape: distribution function at a count,
  // an incomplete beta function; of a count or shape beyond the other an incomplete gamma function.
  function negativeBinomialCdf(shape, count) {
    const b = count + 1;
    if (b > 1e6 * (1 + shape)) {
      const below = logGammaCdf(shape);
      return (odds) => below(Math.log((b + (shape - 1) / 2) * Math.log1p(1 / odds) / shape));
    }
    if (shape > 1e6 * (1 + b)) {
      const below = logGammaCdf(b);
      return (odds) => 1 - below(Math.log((shape + (b - 1) / 2) * Math.log1p(odds) / b));
    }
    const [small, large] = [Math.min(shape, b), Math.max(shape, b)];
    const logBeta = logGamma(small) + logGammaRatio(large, small);
    return function (odds) {
      const front = Math.exp(-shape * Math.log1p(odds) - b * Math.log1p(1 / odds) - logBeta);
      const x = 1 / (1 + odds);
      if (x < (shape + 1) / (shape + b + 2)) return front * betaFraction(shape, b, x) / shape;
      return 1 - front * betaFraction(b, shape, odds / (1 + odds)) / b;
    };
  }

  // A bracket, then the Illinois method with halving: to the last digits.
  function quantile(cdf, level, centre, spread) {
    if (!isFinite(centre) || !isFinite(spread)) return NaN;
    let width = Math.max(spread, 1e-12 * Math.abs(centre) + 1e-300);
    let low = centre - 2 * width;
    let high = centre + 2 * width;
    let below = cdf(low) - level;
    let above = cdf(high) - level;
    for (let n = 0; n < 200 && below > 0; n++) { width *= 2; low -= width; below = cdf(low) - level; }
    for (let n = 0; n < 200 && above < 0; n++) { width *= 2; high += width; above = cdf(high) - level; }
    let side = 0;
    for (let n = 0; n < 200; n++) {
      const size = Math.abs(low) + Math.abs(high) + spread;
      if (high - low <= 4e-16 * size) break;
      let middle = n % 4 === 3 ? 0.5 * (low + high) : low - below * (high - low) / (above - below);
      if (!(middle > low && middle < high)) middle = 0.5 * (low + high);
      const miss = cdf(middle) - level;
      if (Math.abs(miss) <= 1e-14 * Math.min(level, 1 - level)) return middle;
      if (miss < 0) {
        low = middle; below = miss;
        if (side === -1) above /= 2;
        side = -1;
      } else {
        high = middle; above = miss;
        if (side === 1) below /= 2;
        side = 1;
      }
    }
    return 0.5 * (low + high);
  }

  // Smallest whole number, none negative, at which the distribution function reaches the level.
  function wholeQuantile(cdf, level, centre) {
    if (!isFinite(centre)) return NaN;
    let low = -1;
    let high = Math.max(Math.round(centre), 1);
    while (cdf(high) < level) { low = high; high *= 2; }
    while (high - low > Math.max(1, 1e-15 * high)) {
      // Counts of any order of magnitude: halve the logarithm first.
      const wide = high > 16 * (low + 2);
      const middle = Math.floor(wide ? Math.sqrt((low + 2) * high) : (low + high) / 2);
      if (cdf(middle) < level) low = middle; else high = middle;
    }
    return high;
  }

  return {
    erf, normalCdf, studentCdf, logGammaCdf, logGammaMoments, negativeBinomialCdf, quantile, wholeQuantile
  };
})();
