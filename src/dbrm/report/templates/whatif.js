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

  function showMean(found) {
    const mean = section.querySelector(".mean");
    mean.textContent = format(found.mean);
    mean.dataset.value = String(found.mean);
    showInterval(".of-mean", found.of_mean);
    showInterval(".of-response", found.interval);
  }

  function update() {
    const found = dbrmPredictor.predict(state, controls.map((control) => control.get()));
    if (found.chances) showClasses(found.chances);
    else showMean(found);
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
  section.hidden = false;
  document.querySelectorAll("#simpler .here").forEach((cell) => { cell.hidden = false; });
  reset();
})();
