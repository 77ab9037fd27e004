(function () {
  "use strict";
  var root = document.documentElement;
  var button = document.querySelector("button.theme");

  function show(theme) {
    root.dataset.theme = theme;
    var dark = theme === "dark";
    button.textContent = dark ? "Light theme" : "Dark theme";
    button.setAttribute("aria-pressed", String(dark));
  }

  button.hidden = false;
  show(root.dataset.theme);
  button.addEventListener("click", function () {
    show(root.dataset.theme === "dark" ? "light" : "dark");
    try { localStorage.setItem("dbrm-theme", root.dataset.theme); } catch (error) { /* private */ }
  });

  function valueOf(row, column) {
    var cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
  }

  function compare(a, b) {
    return typeof a === "number" ? a - b : a.localeCompare(b);
  }

  document.querySelectorAll("table.sortable thead th").forEach(function (head) {
    var inner = document.createElement("button");
    inner.type = "button";
    inner.textContent = head.textContent;
    inner.title = "Sort by " + head.textContent;
    head.replaceChildren(inner);
    inner.addEventListener("click", function () {
      var table = head.closest("table");
      var body = table.tBodies[0];
      var place = head.cellIndex;
      // Numbers start with the largest, words with the first letter.
      var numeric = body.rows.length > 0 && typeof valueOf(body.rows[0], place) === "number";
      var before = head.getAttribute("aria-sort");
      var first = numeric ? "descending" : "ascending";
      var other = numeric ? "ascending" : "descending";
      var order = before === first ? other : first;
      table.querySelectorAll("thead th").forEach(function (th) { th.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", order);
      var sign = order === "ascending" ? 1 : -1;
      Array.from(body.rows).sort(function (a, b) {
        return sign * compare(valueOf(a, place), valueOf(b, place));
      }).forEach(function (row) { body.appendChild(row); });
    });
  });
})();
