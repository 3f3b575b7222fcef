"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);

  const sortKey = (cell) => cell.dataset.s ?? cell.textContent.trim().toLowerCase();

  function sortBy(table, index) {
    const heading = table.tHead.rows[0].cells[index];
    const numeric = heading.classList.contains("num");
    const before = heading.getAttribute("aria-sort");
    // Numbers start with the largest, text with A.
    const descending = before ? before === "ascending" : numeric;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row) => [sortKey(row.cells[index]), row]);
    const sign = descending ? -1 : 1;
    rows.sort(([a], [b]) => {
      if (a === "" || b === "") return (a === "") - (b === ""); // unknown comes last either way
      return sign * (numeric ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0);
    });
    body.append(...rows.map(([, row]) => row));
  }

  for (const table of document.querySelectorAll("main table")) {
    Array.from(table.tHead.rows[0].cells, (heading, index) =>
      heading.firstElementChild.addEventListener("click", () => sortBy(table, index)));
  }

  for (const field of document.querySelectorAll("input[data-table]")) {
    const table = document.getElementById(field.dataset.table);
    const shown = document.getElementById(field.dataset.table + "-shown");
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      for (const row of table.tBodies[0].rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        count += row.hidden ? 0 : 1;
      }
      const all = table.tBodies[0].rows.length;
      shown.textContent = count === all ? `${all} rows` : `${count} of ${all} rows`;
    });
  }

  for (const box of document.querySelectorAll("input[data-names]")) {
    box.addEventListener("change", () =>
      document.getElementById(box.dataset.names).classList.toggle("names-full", box.checked));
  }

  function element(tag, text, css) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (css) made.className = css;
    return made;
  }

  // What would read as zero without being it is bounded, as in the other tables.
  const share = (part) => (part > 0 && part < 0.0005 ? "<0.1 %" : (part * 100).toFixed(1) + " %");

  function kernelTable(kernels) {
    const table = element("table");
    const head = table.createTHead().insertRow();
    for (const [title, css] of [["kernel", "name"], ["µs", "num"], ["share", "num"], ["role", "text tight"], ["runs", "num"]]) {
      const heading = element("th", title, css);
      heading.scope = "col";
      heading.style.padding = "6px 10px";
      head.append(heading);
    }
    const total = kernels.reduce((sum, kernel) => sum + kernel[3], 0);
    const body = table.createTBody();
    for (const [name, role, count, ns] of kernels) {
      const row = body.insertRow();
      const [short, full] = data.names[name];
      const cell = element("td", short, "name");
      if (full !== short) cell.title = full;
      row.append(
        cell,
        element("td", (ns / 1000).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 }), "num"),
        element("td", share(total ? ns / total : 0), "num"),
        element("td", role, "text tight"),
        element("td", String(count), "num"),
      );
    }
    return table;
  }

  for (const strip of document.querySelectorAll(".strip")) {
    const detail = document.getElementById(strip.dataset.strip + "-d");
    const cells = Array.from(strip.querySelectorAll(".cell"));
    const focus = (at) => {
      for (const cell of cells) cell.tabIndex = -1;
      cells[at].tabIndex = 0;
      cells[at].focus();
    };
    cells.forEach((cell, at) => {
      cell.addEventListener("click", () => {
        const chosen = cell.getAttribute("aria-pressed") !== "true";
        for (const other of cells) other.setAttribute("aria-pressed", "false");
        cell.setAttribute("aria-pressed", String(chosen));
        detail.hidden = !chosen;
        detail.replaceChildren();
        if (!chosen) return;
        const box = element("div", undefined, "scroll");
        box.tabIndex = 0;
        box.setAttribute("role", "region");
        box.setAttribute("aria-label", "Kernels of the block");
        box.append(kernelTable(data.strips[strip.dataset.strip][cell.dataset.block] ?? []));
        detail.append(element("p", cell.getAttribute("aria-label"), "chosen"), box);
      });
      cell.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        const to = step ? at + step : { Home: 0, End: cells.length - 1 }[event.key];
        if (to === undefined || !cells[to]) return;
        event.preventDefault();
        focus(to);
      });
    });
  }
})();
