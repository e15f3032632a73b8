// Live progress, and paging without loading the whole page. Every page works without this script.
"use strict";

// A part of the page (`data-part`) is replaced by the one of the same id of another page.
async function replaceFrom(address, ids) {
  const answer = await fetch(address, { headers: { Accept: "text/html" }, credentials: "same-origin" });
  if (!answer.ok || answer.redirected) { location.href = address; return false; }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ids) {
    const now = document.getElementById(id), then = page.getElementById(id);
    if (now && then && now.innerHTML !== then.innerHTML) now.replaceWith(document.adoptNode(then));
  }
  return true;
}

document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-part] a[data-page]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  const id = link.closest("[data-part]").id, label = link.textContent;
  if (!(await replaceFrom(link.href, [id]))) return;
  keep(link.href);
  const again = [...document.querySelectorAll(`#${id} a[data-page]`)].find((each) => each.textContent === label);
  (again || document.getElementById(id)).focus();
});

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-page]");
  if (!form) return;
  event.preventDefault();
  const id = form.closest("[data-part]").id;
  const address = `${form.action.split("?")[0]}?${new URLSearchParams(new FormData(form))}`;
  if (!(await replaceFrom(address, [id]))) return;
  keep(address);
  const field = document.querySelector(`#${id} input[type=search]`);
  if (field) { field.focus(); field.setSelectionRange(field.value.length, field.value.length); }
});

// What is shown is what the address says; a jump within the page, which this hears of too, changes nothing.
let shown = location.pathname + location.search;
function keep(address) {
  history.pushState(null, "", address);
  shown = location.pathname + location.search;
}
window.addEventListener("popstate", () => { if (location.pathname + location.search !== shown) location.reload(); });

// Parts marked `data-live="SECONDS"` follow what happens; not while somebody types in them, nor in a hidden tab.
function follow(part) {
  const every = Number(part.dataset.live) * 1000, id = part.id;
  let waiting = false;
  async function look() {
    const now = document.getElementById(id);
    if (!now || !now.dataset.live) return;
    if (!document.hidden && !waiting && !now.contains(document.activeElement)) {
      waiting = true;
      try { await replaceFrom(location.href, [id]); } catch { /* the server is away: look again later */ }
      waiting = false;
    }
    setTimeout(look, every);
  }
  setTimeout(look, every);
}

// The progress of one run comes as events; a change of its state that the page does not show yet loads it again.
function watch(part) {
  const events = new EventSource(part.dataset.events), seen = Number(part.dataset.seen);
  events.addEventListener("progress", (event) => {
    const progress = JSON.parse(event.data), bar = document.getElementById("bar"), line = document.getElementById("line");
    if (!bar) { replaceFrom(location.href, ["standing"]); return; } // its first word
    bar.value = progress.share || 0;
    const seconds = progress.seconds_left, known = seconds !== null && seconds !== undefined;
    const left = !known ? "" : seconds < 90 ? `, ${Math.round(seconds)} s left`
      : seconds < 5400 ? `, ${Math.round(seconds / 60)} min left` : `, ${(seconds / 3600).toFixed(1)} h left`;
    document.getElementById("left").textContent = `${Math.round(100 * bar.value)}%${left}`;
    if (line && progress.line) line.textContent = progress.line;
  });
  events.addEventListener("state", (event) => {
    if (Number(event.lastEventId) <= seen) return;
    events.close();
    location.reload();
  });
}

for (const part of document.querySelectorAll("[data-live]")) follow(part);
for (const part of document.querySelectorAll("[data-events]")) watch(part);
