// Texts get into the page as text only (textContent, append), whatever is in them.
"use strict";
for (const box of document.querySelectorAll(".data")) {
  const PAGE = 50;
  const given = JSON.parse(box.querySelector("script").textContent);
  const columns = given.columns.map(column => ({...column,
    get: column.codes ? row => column.texts[column.codes[row]] : row => column.values[row]}));
  const count = (columns[0].codes || columns[0].values).length;
  const make = (name, text, parent, more) => {
    const made = Object.assign(document.createElement(name), more);
    if (text !== null && text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  const shown = columns.filter(column => !column.detail);
  const state = new URLSearchParams(location.hash.slice(1));
  const opened = new Set();
  let rows = [], page = 0, texts = null;

  const tools = make("div", null, box, {className: "tools"});
  const find = make("input", null, tools, {type: "search", placeholder: `Search ${given.noun}`, value: state.get("find") || ""});
  find.setAttribute("aria-label", find.placeholder);
  const filters = columns.filter(column => column.filtered).map(column => {
    const select = make("select", null, tools);
    select.setAttribute("aria-label", column.title);
    make("option", `${column.title}: all`, select, {value: ""});
    const values = column.texts || [...new Set(column.values)];
    for (const value of values.filter(value => value !== null).sort()) make("option", value, select, {value});
    select.value = state.get(column.title) || "";
    select.onchange = update;
    return [column, select];
  });
  const table = make("table", null, make("div", null, box, {className: "scroll"}));
  const head = make("tr", null, make("thead", null, table));
  const body = make("tbody", null, table);
  const foot = make("div", null, box, {className: "tools"});
  const back = make("button", "← back", foot, {onclick: () => turn(-1)});
  const told = make("span", null, foot, {role: "status"});
  const next = make("button", "more →", foot, {onclick: () => turn(1)});

  const dressed = (cell, column) =>
    cell.className = [column.number ? "" : "text", column.long ? "long" : "", column.narrow || column === columns[0] ? "" : "wide"].join(" ").trim();
  for (const column of shown) {
    const cell = make("th", null, head, {scope: "col"});
    dressed(cell, column);
    make("button", column.title, cell, {onclick: () => {
      const down = state.get("sort") === column.title ? !state.has("down") : column.number;
      state.set("sort", column.title);
      down ? state.set("down", "1") : state.delete("down");
      update();
    }});
  }

  function update() {
    const wanted = find.value.trim().toLowerCase();
    wanted ? state.set("find", find.value) : state.delete("find");
    for (const [column, select] of filters)
      select.value ? state.set(column.title, select.value) : state.delete(column.title);
    const all = columns.filter(column => !column.number);
    if (wanted && !texts) {
      texts = new Array(count);
      for (let row = 0; row < count; row++) texts[row] = all.map(column => column.get(row) || "").join("\n").toLowerCase();
    }
    const chosen = filters.filter(([, select]) => select.value);
    rows = [];
    for (let row = 0; row < count; row++)
      if ((!wanted || texts[row].includes(wanted)) && chosen.every(([column, select]) => column.get(row) === select.value))
        rows.push(row);
    const by = shown.find(column => column.title === state.get("sort")) || columns[0];
    const sign = state.has("down") ? -1 : 1;
    if (by === columns[0]) { if (sign < 0) rows.reverse(); }
    else {
      const none = value => value === null || value === "";
      rows.sort((a, b) => {
        const left = by.get(a), right = by.get(b);
        if (none(left) || none(right)) return none(left) - none(right) || a - b;
        return left < right ? -sign : left > right ? sign : a - b;
      });
    }
    shown.forEach((column, place) => column === by
      ? head.children[place].setAttribute("aria-sort", sign < 0 ? "descending" : "ascending")
      : head.children[place].removeAttribute("aria-sort"));
    page = 0;
    const hash = state.toString();
    try { history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search); } catch (refused) {}
    draw();
  }

  function turn(by) { page += by; draw(); }

  function draw() {
    const first = page * PAGE, some = rows.slice(first, first + PAGE);
    body.replaceChildren();
    for (const row of some) {
      const line = make("tr", null, body, {className: given.tones[row] || ""});
      for (const column of shown) {
        const cell = make("td", null, line);
        dressed(cell, column);
        if (column !== columns[0]) { tell(column.get(row), cell); continue; }
        const button = make("button", say(column.get(row)), cell, {onclick: () => {
          opened.has(row) ? opened.delete(row) : opened.add(row);
          draw();
        }});
        button.setAttribute("aria-expanded", opened.has(row));
      }
      if (!opened.has(row)) continue;
      const list = make("dl", null, make("td", null, make("tr", null, body), {className: "opened", colSpan: shown.length}));
      for (const column of columns.slice(1)) {
        const value = column.get(row);
        if (value === null || value === "") continue;
        make("dt", column.title, list);
        tell(value, make("dd", null, list));
      }
      if (given.more) {
        make("dt", "more", list);
        tell(given.more.replace(/\{\}(?=`$)/, () => quoted(say(columns[0].get(row)))), make("dd", null, list));
      }
    }
    const several = rows.length > PAGE;
    const place = several ? `${(first + 1).toLocaleString("en")} to ${(first + some.length).toLocaleString("en")} of ` : "";
    const less = rows.length === count ? "" : ` (${count.toLocaleString("en")} in all)`;
    const noun = rows.length === 1 ? given.noun.replace(/s$/, "") : given.noun;
    told.textContent = `${place}${rows.length.toLocaleString("en")} ${noun}${less}`;
    back.hidden = next.hidden = !several;
    back.disabled = !page;
    next.disabled = first + PAGE >= rows.length;
  }

  const quoted = text => /^[\w@%+=:,./][\w@%+=:,./-]*$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`; // for a shell

  function say(value) { return value === null ? "" : String(value); }

  function tell(value, parent) { // `code` between two marks, as elsewhere on the page; a lone mark stays
    say(value).split("`").forEach((part, place, parts) => {
      if (place % 2 && place < parts.length - 1) make("code", part, parent);
      else parent.append(place % 2 ? `\`${part}` : part);
    });
  }

  let waiting;
  find.oninput = () => { clearTimeout(waiting); waiting = setTimeout(update, 120); };
  if (state.has("open")) {
    for (let row = 0; row < count; row++) if (columns[0].get(row) === state.get("open")) opened.add(row);
  }
  addEventListener("hashchange", () => location.reload()); // a link that is followed from this page
  update();
  const linked = rows.findIndex(row => opened.has(row));
  if (linked >= 0) { // on whatever page of the table it is
    page = Math.floor(linked / PAGE);
    draw();
    body.querySelector('[aria-expanded="true"]').scrollIntoView({block: "center"});
  }
}
