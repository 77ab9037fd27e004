// Sliders for the covariates, and the prediction that follows them.
(function () {
  "use strict";
  const section = document.getElementById("whatif");
  const data = JSON.parse(document.getElementById("whatif-data").textContent);
  const state = dbrmPredictor.load(data);
  const most = 12;
  const shown = 7;
  const controls = [];

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function format(value) {
    if (value === null || !isFinite(value)) return "not defined";
    const size = Math.abs(value);
    const text = size !== 0 && (size < 1e-4 || size >= 1e6)
      ? value.toExponential(3) : String(Number(value.toPrecision(5)));
    return text.replaceAll("-", "\u2212");
  }

  function levels(input, label) {
    const choice = element("select");
    input.levels.forEach(function (level, j) {
      const option = element("option", "", level);
      option.value = String(j);
      choice.appendChild(option);
    });
    label.appendChild(choice);
    choice.addEventListener("change", later);
    return {
      get: () => (input.values ? input.values[Number(choice.value)] : Number(choice.value)),
      reset: () => { choice.value = "0"; }
    };
  }

  function numbers(input, label) {
    const pair = element("span", "pair");
    const slider = element("input");
    const box = element("input");
    slider.type = "range";
    box.type = "number";
    slider.min = input.low;
    slider.max = input.high;
    slider.step = input.whole ? "1" : "any";
    box.step = "any";
    slider.setAttribute("aria-label", input.name + ", slider");
    box.setAttribute("aria-label", input.name + ", number");
    pair.append(slider, box);
    label.appendChild(pair);
    // What is shown is what is used: four digits of the range.
    const range = input.high - input.low;
    const digits = range > 0 ? Math.min(Math.max(3 - Math.floor(Math.log10(range)), 0), 20) : 6;
    const round = (number) => Number(number.toFixed(input.whole ? 0 : digits));
    let value = round(input.start);
    slider.addEventListener("input", function () {
      value = round(Number(slider.value));
      box.value = String(value);
      later();
    });
    box.addEventListener("input", function () {
      if (box.value === "" || isNaN(Number(box.value))) return;
      value = Number(box.value);
      slider.value = String(value);
      later();
    });
    return {
      get: () => value,
      reset: function () {
        value = round(input.start);
        slider.value = String(value);
        box.value = String(value);
      }
    };
  }

  function build() {
    const order = data.inputs.map((_, j) => j).sort((a, b) => data.shares[b] - data.shares[a]);
    const first = section.querySelector("form.inputs");
    const rest = section.querySelector("details.rest");
    order.forEach(function (j, rank) {
      const input = data.inputs[j];
      const label = element("label");
      label.appendChild(element("span", "name", input.name));
      controls[j] = input.levels ? levels(input, label) : numbers(input, label);
      (rank < most ? first : rest.querySelector(".inputs")).appendChild(label);
    });
    rest.hidden = order.length <= most;
    first.addEventListener("submit", (event) => event.preventDefault());
    section.querySelector("button.again").addEventListener("click", reset);
  }

  function showClasses(chances) {
    const most = Math.max(...chances);
    section.querySelector(".chances tbody").replaceChildren(...chances.map(function (chance, j) {
      const row = element("tr", chance === most ? "chosen" : "");
      const head = element("th", "", data.classes[j]);
      head.scope = "row";
      const cell = element("td", "n", chance.toFixed(4));
      cell.dataset.value = String(chance);
      const bar = element("td");
      const gauge = element("span", "gauge");
      const part = element("i");
      part.style.width = (100 * chance).toFixed(2) + "%";
      gauge.appendChild(part);
      bar.appendChild(gauge);
      row.append(head, bar, cell);
      return row;
    }));
  }

  function showMoves(contributions) {
    const body = section.querySelector(".moves tbody");
    if (!body) return;
    const order = contributions.parts.map((value, j) => [value, j])
      .filter((pair) => pair[0] !== 0).sort((a, b) => Math.abs(b[0]) - Math.abs(a[0]));
    const largest = order.length ? Math.abs(order[0][0]) : 1;
    // What would be too small to see is summed up.
    const visible = order.filter((pair) => Math.abs(pair[0]) > 1e-3 * largest).slice(0, shown);
    const rows = visible.map(([value, j]) => [data.labels[j], value]);
    const hidden = order.slice(visible.length);
    if (hidden.length) {
      const others = hidden.reduce((total, pair) => total + pair[0], 0);
      const count = String(hidden.length);
      rows.push([count + (hidden.length === 1 ? " other" : " others together"), others]);
    }
    body.replaceChildren(...rows.map(function ([name, value]) {
      const row = element("tr");
      const bar = element("td", "track");
      const track = element("i");
      const part = element("b", value > 0 ? "up" : "down");
      part.style.width = (50 * Math.abs(value) / largest).toFixed(2) + "%";
      track.appendChild(part);
      bar.appendChild(track);
      row.append(element("td", "feature", name), bar, element("td", "n", format(value)));
      return row;
    }));
  }

  function showInterval(name, ends) {
    const output = section.querySelector(name);
    output.parentElement.hidden = ends === null;
    if (ends === null) return;
    output.textContent = format(ends[0]) + " to " + format(ends[1]);
    output.dataset.lower = String(ends[0]);
    output.dataset.upper = String(ends[1]);
  }

  // Stratum and time of survival curves.
  const curve = { stratum: 0, time: 0, show: () => {} };

  function buildCurve() {
    const box = section.querySelector(".survival");
    if (!box) return;
    const inputs = box.querySelector(".inputs");
    if (data.strata.length) {
      const label = element("label");
      label.appendChild(element("span", "name", "stratum"));
      const control = levels({ levels: data.strata }, label);
      inputs.appendChild(label);
      label.querySelector("select").addEventListener("change", function () {
        curve.stratum = control.get();
        fitTimes();
      });
    }
    const label = element("label");
    label.appendChild(element("span", "name", "time"));
    const pair = element("span", "pair");
    const slider = element("input");
    const shown = element("output", "time");
    slider.type = "range";
    slider.min = 0;
    slider.step = 1;
    slider.setAttribute("aria-label", "time, slider");
    pair.append(slider, shown);
    label.appendChild(pair);
    inputs.appendChild(label);
    function fitTimes() {
      slider.max = data.predictive.times[curve.stratum].length - 1;
      slider.value = String(Math.floor(slider.max / 2));
      curve.time = Number(slider.value);
    }
    slider.addEventListener("input", function () {
      curve.time = Number(slider.value);
      later();
    });
    fitTimes();
    curve.show = function (found) {
      const time = found.times[found.chosen];
      shown.textContent = format(time);
      shown.dataset.value = String(time);
      slider.setAttribute("aria-valuetext", format(time));
      const chance = box.querySelector(".chance");
      chance.textContent = found.curve[found.chosen].toFixed(4);
      chance.dataset.value = String(found.curve[found.chosen]);
      box.dataset.curve = JSON.stringify(found.curve);
      showInterval(".of-chance", found.band);
      draw(box.querySelector("svg"), found);
    };
  }

  function line(name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function draw(svg, found) {
    const [left, right, top, bottom] = [34, 470, 8, 172];
    const last = found.times[found.times.length - 1];
    const x = (time) => (left + (right - left) * time / last).toFixed(2);
    const y = (chance) => (bottom - (bottom - top) * chance).toFixed(2);
    const steps = data.predictive.family === "cox";
    let path = "M" + x(0) + " " + y(1);
    found.times.forEach(function (time, j) {
      path += steps ? "H" + x(time) + "V" + y(found.curve[j])
        : "L" + x(time) + " " + y(found.curve[j]);
    });
    const here = x(found.times[found.chosen]);
    const marks = [0, 0.5, 1].flatMap((share) => [
      line("line", { class: "grid", x1: left, x2: right, y1: y(share), y2: y(share) }),
      line("text", { x: left - 6, y: Number(y(share)) + 4, "text-anchor": "end" }, String(share))
    ]);
    svg.replaceChildren(...marks,
      line("text", { x: left, y: bottom + 18, "text-anchor": "middle" }, "0"),
      line("text", { x: right, y: bottom + 18, "text-anchor": "end" }, data.response + " " + format(last)),
      line("path", { class: "line", d: path }),
      line("line", { class: "bar", x1: here, x2: here, y1: y(found.band[0]), y2: y(found.band[1]) }),
      line("circle", { class: "point", cx: here, cy: y(found.curve[found.chosen]), r: 4 }));
  }

  function showMean(found) {
    const mean = section.querySelector(".mean");
    mean.textContent = format(found.mean);
    mean.dataset.value = String(found.mean);
    showInterval(".of-mean", found.of_mean);
    showInterval(".of-response", found.interval);
  }

  function update() {
    const found = dbrmPredictor.predict(state, controls.map((control) => control.get()), curve);
    if (found.chances) showClasses(found.chances);
    else showMean(found);
    if (found.survival) curve.show(found.survival);
    const note = section.querySelector(".outside");
    note.hidden = found.outside.length === 0;
    const names = found.outside.map((j) => data.inputs[j].name);
    note.textContent = "Outside the training range: " + names.join(", ") + ". "
      + (data.hold ? "Nonlinear formulas hold it at the edge; linear ones go on." : "The formulas are followed.");
    section.dataset.baseline = String(found.contributions.baseline);
    section.dataset.parts = JSON.stringify(found.contributions.parts);
    showMoves(found.contributions);
    document.querySelectorAll("#simpler td.here").forEach(function (cell, j) {
      cell.textContent = format(found.formulas[j]);
      cell.dataset.value = String(found.formulas[j]);
    });
  }

  // At most one update for each picture on the screen.
  let waiting = false;
  function later() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(function () { waiting = false; update(); });
  }

  function reset() {
    controls.forEach((control) => control.reset());
    update();
  }

  build();
  buildCurve();
  section.hidden = false;
  document.querySelectorAll("#simpler .here").forEach((cell) => { cell.hidden = false; });
  reset();
})();
