// What is live on a page: times in the viewer's zone, and parts that are fetched again when something has changed.
// Without this script every page works, shows UTC, and is as old as its loading.
"use strict";

const REFRESH_AFTER_MS = 150;
const REFRESH_ANYWAY_MS = 10000;

const zoned = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "medium" });
const clock = new Intl.DateTimeFormat(document.documentElement.lang, { timeStyle: "medium" });

function showTimes(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    element.textContent = zoned.format(new Date(element.dateTime));
  }
  for (const element of root.querySelectorAll("text[data-time]")) {
    element.textContent = clock.format(new Date(element.dataset.time));
  }
}

function say(text, link) {
  const notice = document.getElementById("connection");
  if (!notice) return;
  notice.hidden = !text;
  notice.textContent = text || "";
  if (text && link) {
    const again = document.createElement("a");
    again.href = location.href;
    again.textContent = notice.dataset.reload;
    notice.append(" ", again);
  }
}

// A part in which somebody is filling in a form stays as it is, and the page says that there is news.
function isInUse(part) {
  return part.querySelector("details.act[open]") !== null || (part.contains(document.activeElement) && document.activeElement.matches("input, textarea, select"));
}

function renew(part, fresh) {
  const open = [...part.querySelectorAll("details[open][id]")].map((details) => details.id);
  const focused = part.contains(document.activeElement) ? document.activeElement.closest("[id]")?.id : null;
  part.replaceChildren(...fresh.childNodes);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  showTimes(part);
  if (focused) {
    const again = document.getElementById(focused);
    (again?.querySelector("summary") ?? again)?.focus({ preventScroll: true });
  }
}

const shown = new Map();
let running = false;
let wanted = false;

async function refresh() {
  if (running) {
    wanted = true;
    return;
  }
  running = true;
  try {
    const answer = await fetch(location.href, { redirect: "manual" });
    if (answer.type === "opaqueredirect") return ended();
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const notice = document.getElementById("connection");
    let kept = false;
    for (const part of document.querySelectorAll("[data-refresh][id]")) {
      const other = fresh.getElementById(part.id);
      if (!other || other.innerHTML === shown.get(part.id)) continue;
      if (isInUse(part)) {
        kept = true;
        continue;
      }
      shown.set(part.id, other.innerHTML);
      renew(part, other);
    }
    say(kept ? notice.dataset.changed : "", kept);
  } catch {
    lost();
  } finally {
    running = false;
    if (wanted) {
      wanted = false;
      refresh();
    }
  }
}

function lost() {
  say(document.getElementById("connection").dataset.lost, false);
}

function ended() {
  say(document.getElementById("connection").dataset.ended, true);
}

function live(address) {
  for (const part of document.querySelectorAll("[data-refresh][id]")) shown.set(part.id, part.innerHTML);
  let soon = 0;
  const source = new EventSource(address);
  source.addEventListener("open", () => {
    say("", false);
    refresh();
  });
  source.addEventListener("change", () => {
    clearTimeout(soon);
    soon = setTimeout(refresh, REFRESH_AFTER_MS);
  });
  source.addEventListener("error", () => (source.readyState === EventSource.CLOSED ? refresh() : lost()));
  setInterval(() => document.hidden || refresh(), REFRESH_ANYWAY_MS);
  addEventListener("pagehide", () => source.close());
}

if (document.body.dataset.live) live(document.body.dataset.live);
showTimes(document);
document.addEventListener("toggle", ({ target }) => {
  if (target.open && target.matches("details.act")) target.querySelector("input:not([type=hidden]), textarea, select")?.focus();
}, true);
