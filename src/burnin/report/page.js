"use strict";
// Two helpers for the reader: tables that sort, and a scatter plot of any two columns. Nothing is fetched.

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    const key = row => Number(row.cells[column].dataset.value ?? Infinity);  // words among numbers go last
    const compare = head.classList.contains("number")
      ? (a, b) => key(a) === key(b) ? 0 : key(a) - key(b)
      : (a, b) => a.cells[column].textContent.localeCompare(b.cells[column].textContent);
    const rows = [...body.rows].sort((a, b) => up ? compare(a, b) : compare(b, a));
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    body.append(...rows);
  }));
}

const BOX = { left: 104, right: 624, top: 14, bottom: 372 };

const SVG = document.querySelector("svg").namespaceURI;

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text !== undefined) made.textContent = text;
  return made;
}

function written(value) {
  return String(Number(value.toPrecision(4)));
}

// Round numbers from low to high, about `wanted` of them.
function ticks(low, high, wanted) {
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find(one => one * power >= rough) * power;
  const found = [];
  for (let at = Math.ceil(low / step); at * step <= high; at += 1) found.push(at * step);
  return found;
}

// A fixed number between -1/2 and 1/2 for each row, so that rows with the same word do not hide each other.
function jitter(row, column) {
  const wave = Math.sin(12.9898 * (row + 1) + 78.233 * (column + 1)) * 43758.5453;
  return wave - Math.floor(wave) - 0.5;
}

function explore(figure) {
  const content = JSON.parse(figure.querySelector("script").textContent);
  const [across, up] = figure.querySelectorAll("select");
  const picture = figure.querySelector("svg");
  const pointed = figure.querySelector(".pointed");
  const shown = {};
  let points = [];

  content.columns.forEach((column, index) => {
    across.add(new Option(column.name, index));
    up.add(new Option(column.name, index));
  });
  across.value = 0;
  up.value = content.columns.length > 1 ? 1 : 0;
  for (const series of content.series) {
    const label = document.createElement("label");
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
    const key = Object.assign(document.createElement("span"), { className: `key ${series.key}` });
    label.append(box, key, ` ${series.name}`);
    figure.querySelector(".series").append(label);
    shown[series.key] = box;
    box.addEventListener("change", draw);
  }
  across.addEventListener("change", draw);
  up.addEventListener("change", draw);

  function scale(index, from, to) {
    const column = content.columns[index];
    if (column.levels) {
      const width = (to - from) / column.levels.length;
      return {
        at: (value, row) => from + width * (value + 0.5 + 0.7 * jitter(row, index)),
        marks: column.levels.map((level, number) => [from + width * (number + 0.5), level]),
      };
    }
    const room = 0.04 * (column.high - column.low || 1);
    const low = column.low - room, high = column.high + room;
    const at = value => from + (to - from) * (value - low) / (high - low);
    return { at, marks: ticks(low, high, 5).map(value => [at(value), written(value)]) };
  }

  function draw() {
    const x = Number(across.value), y = Number(up.value);
    const sideways = scale(x, BOX.left, BOX.right), upwards = scale(y, BOX.bottom, BOX.top);
    const drawn = [element("rect", { class: "frame", x: BOX.left, y: BOX.top, width: BOX.right - BOX.left, height: BOX.bottom - BOX.top })];
    for (const [at, text] of sideways.marks) drawn.push(element("text", { x: at, y: BOX.bottom + 24, "text-anchor": "middle" }, text));
    for (const [at, text] of upwards.marks) drawn.push(element("text", { x: BOX.left - 8, y: at + 5, "text-anchor": "end" }, text));
    drawn.push(element("text", { x: (BOX.left + BOX.right) / 2, y: BOX.bottom + 56, "text-anchor": "middle" }, content.columns[x].name));
    const middle = (BOX.top + BOX.bottom) / 2;
    drawn.push(element("text", { x: 22, y: middle, "text-anchor": "middle", transform: `rotate(-90 22 ${middle})` }, content.columns[y].name));
    points = [];
    for (const series of content.series) {
      if (!shown[series.key].checked) continue;
      let path = "";
      series.rows.forEach((row, index) => {
        if (row[x] === null || row[y] === null) return;
        const at = sideways.at(row[x], index), height = upwards.at(row[y], index);
        if (at < BOX.left || at > BOX.right || height < BOX.top || height > BOX.bottom) return;
        path += `M${at.toFixed(1)} ${height.toFixed(1)}h0`;
        points.push({ at, height, series, row, index });
      });
      drawn.push(element("path", { class: `dots ${series.key}`, d: path }));
    }
    picture.replaceChildren(...drawn);
    pointed.textContent = "\u00a0";
  }

  function point(event) {
    const corner = picture.getBoundingClientRect();
    const factor = 640 / corner.width;
    const x = (event.clientX - corner.left) * factor, y = (event.clientY - corner.top) * factor;
    let near = null, least = 20 ** 2;
    for (const one of points) {
      const distance = (one.at - x) ** 2 + (one.height - y) ** 2;
      if (distance < least) [near, least] = [one, distance];
    }
    picture.querySelector(".mark")?.remove();
    pointed.textContent = "\u00a0";
    if (near === null) return;
    picture.append(element("circle", { class: "mark", cx: near.at, cy: near.height, r: 7 }));
    const said = [across.value, up.value].map(Number).map(index => {
      const column = content.columns[index], value = near.row[index];
      return `${column.name} ${column.levels ? column.levels[value] : written(value)}`;
    });
    const number = near.series.numbers ? `row ${near.series.numbers[near.index]}` : `one of the ${near.series.name}`;
    pointed.textContent = `${number}: ${said.join(", ")}`;
  }

  picture.addEventListener("pointermove", point);
  picture.addEventListener("pointerdown", point);
  figure.hidden = false;
  draw();
}

document.querySelectorAll("figure.explorer").forEach(explore);
