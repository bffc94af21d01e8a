// The page's story.
//
// 1. A link with a token logs in, once; without a session the page says how to get one.
// 2. What the portal remembers is fetched; from then on it says by itself what is new (server-sent events).
// 3. What is to be done is asked for again, and goes with the session's second secret.

import { Chart, METRICS, Record, SPANS, UNITS } from "./charts.js";
import { Cards, access, events, find, findings, flows, head, make, paths, speeds, text } from "./view.js";

/** Milliseconds that an answer is waited for: a long one by a thin line, and a short one. */
const PATIENCE = 60000;
const SHORT = 5000;
/** Milliseconds without a word, of which one comes each 400, until the way to the portal counts as gone. */
const SILENT = 3000;

/** `skew`: how far the portal's clock is ahead of this one's, ms. */
const state = { status: null, events: [], hour: new Record(), day: new Record(), metric: "rate", span: 120, skew: 0 };
const chart = new Chart(find("chart"));
const cards = new Cards(find("links"), { pause: askToPause, tier: askForTier });

async function get(path, patience = PATIENCE) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(patience) });
  const body = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(body.error), { status: answer.status });
  return body;
}

async function post(path, body) {
  const answer = await fetch(path, { method: "POST", headers: { "content-type": "application/json", "x-hawser-csrf": localStorage.csrf ?? "" }, body: JSON.stringify(body) });
  const said = await answer.json();
  if (!answer.ok) throw Object.assign(new Error(said.error), { status: answer.status });
  return said;
}

// Step 1.

async function begin() {
  const token = tokenOf(location.hash);
  if (token) {
    history.replaceState(null, "", "/");
    try { localStorage.csrf = (await post("/api/login", { token })).csrf; } catch (error) { return showLogin(error.message); }
  }
  try { await get("/api/session"); } catch (error) { return showLogin(error.status === 401 ? "" : error.message); }
  find("login").hidden = true;
  find("view").hidden = false;
  await remember();
  listen();
}

const tokenOf = (words) => words.match(/#login=([\w.-]+)/)?.[1] ?? (/^[\w-]+\.[\w-]+$/.test(words.trim()) ? words.trim() : "");

function showLogin(error) {
  find("view").hidden = true;
  find("login").hidden = false;
  text(find("login-error"), error);
  live("");
}

find("login-form").addEventListener("submit", (submitted) => {
  submitted.preventDefault();
  const token = tokenOf(find("token").value);
  if (!token) return text(find("login-error"), "This is no login link.");
  find("token").value = "";
  history.replaceState(null, "", `#login=${token}`);
  begin();
});
// A link that is typed into the address of this page loads nothing.
addEventListener("hashchange", () => { if (tokenOf(location.hash)) begin(); });

// Step 2.

function live(is, words = "") {
  find("live").dataset.is = is;
  text(find("live"), words);
}

async function remember() {
  const hour = await get("/api/history?span=hour");
  state.skew = hour.end_unix_ms - Date.now();
  state.hour.load(hour);
  state.events = (await get("/api/events")).events;
  events(state.events, find("all-events").checked);
}

let source;
let heard = 0;
function listen() {
  source?.close();
  source = new EventSource("/api/stream");
  heard = Date.now();
  source.onmessage = ({ data }) => { heard = Date.now(); seen(JSON.parse(data)).catch((error) => say(error.message)); };
  source.onerror = lost;
}

function lost() {
  live("lost", "not reachable, trying again");
  source.close();
  source = null;
  setTimeout(async () => {
    // The portal may have been started again, with other sessions: then there is none.
    try { await get("/api/session", SHORT); await remember(); listen(); } catch (error) { if (error.status === 401) showLogin("The portal was started again: it needs a new link."); else listen(); }
  }, 1000);
}
// A way that falls silent closes no stream; a page that is not shown may be asleep.
setInterval(() => { if (source && !document.hidden && Date.now() - heard > SILENT) lost(); }, 1000);

async function seen(status) {
  state.status = status;
  live("live", "live");
  head(status);
  const all = paths(status);
  state.hour.add((Date.now() + state.skew) / 1000, all.map(({ name, path }) => [name, { rx: path.live.rx_mbps * 1e6, tx: path.live.tx_mbps * 1e6, rtt: path.rtt_ms, queue: path.live.queue_ms, loss: path.loss_pct }]));
  cards.show(status, state.hour);
  access(status.web);
  draw();
  await follow(status.events_latest);
}

/**
 * Events, oldest first, with those that came since: as the portal itself counts them, one that happened again takes the
 * place of the last of its peer and path, where that is of its kind.
 */
function told(old, fresh) {
  const all = [...old];
  for (const one of fresh) {
    const last = all.findLastIndex((other) => other.peer === one.peer && other.path === one.path);
    if (one.count > 1 && last >= 0 && all[last].kind === one.kind) all.splice(last, 1);
    all.push(one);
  }
  return all;
}

let following = false;
/** Fetches the events that are new, one fetch at a time: the next status asks for what came meanwhile. */
async function follow(newest) {
  const latest = state.events.at(-1)?.seq ?? 0;
  if (following || newest === latest) return;
  following = true;
  try {
    const { events: fresh, latest: now } = await get(`/api/events?since=${newest < latest ? 0 : latest}`);
    const old = now < latest ? [] : state.events.filter((one) => !fresh.some((other) => other.seq === one.seq));
    state.events = told(old, fresh).slice(-512);
  } finally { following = false; }
  events(state.events, find("all-events").checked);
}

function draw() {
  if (!state.status) return;
  const shown = paths(state.status).map(({ name, label, index }) => ({ name, label, index }));
  const record = state.span > 3600 ? state.day : state.hour;
  const marks = state.events.map(({ time_unix_ms, kind }) => ({ time: time_unix_ms / 1000, kind }));
  text(find("how"), UNITS[state.metric]);
  chart.show(record, shown, state.metric, state.span, marks);
  const legend = shown.map(({ label }) => label).join("\n");
  if (find("legend").dataset.shows !== legend) {
    find("legend").dataset.shows = legend;
    find("legend").replaceChildren(...shown.map(({ label, index }) => {
      const swatch = make("span", { class: "swatch" });
      swatch.style.setProperty("--of-link", `var(--link-${index % 6 + 1})`);
      return make("li", {}, swatch, label);
    }));
  }
}

function choices(id, all, chosen, choose) {
  const buttons = Object.entries(all).map(([value, words]) => {
    const button = make("button", { type: "button", "aria-pressed": String(value === String(chosen)) }, words);
    button.addEventListener("click", () => {
      buttons.forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      choose(value);
    });
    return button;
  });
  find(id).append(...buttons);
}

choices("metrics", METRICS, state.metric, (metric) => { state.metric = metric; draw(); });
choices("spans", SPANS, state.span, async (span) => {
  state.span = Number(span);
  if (state.span > 3600) state.day.load(await get("/api/history?span=day"));
  draw();
});
let asking = false;
setInterval(() => {
  if (asking || find("view").hidden || document.hidden || !source) return;
  asking = true;
  get("/api/flows", SHORT).then((told) => flows(told.flows), () => flows([])).finally(() => { asking = false; });
}, 2000);
setInterval(async () => { if (state.span > 3600) state.day.load(await get("/api/history?span=day")); }, 60000);
find("all-events").addEventListener("change", () => events(state.events, find("all-events").checked));
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

// Step 3.

let quiet;
function say(words) {
  clearTimeout(quiet);
  text(find("said"), words);
  quiet = setTimeout(() => text(find("said"), ""), 6000);
}

find("ask-no").addEventListener("click", () => find("ask").close("no"));

/** Asks, and resolves to whether the answer is yes. */
function ask(title, words, yes, tier) {
  text(find("ask-title"), title);
  text(find("ask-text"), words);
  text(find("ask-yes"), yes);
  find("ask-tier").hidden = tier === undefined;
  find("tier").disabled = tier === undefined;
  if (tier !== undefined) find("tier").value = tier;
  const dialog = find("ask");
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true }));
}

async function order(deed, done) {
  try { const said = await post("/api/do", deed); say(done); return said.result; } catch (error) { say(error.message); throw error; }
}

async function askToPause(link, does) {
  const pauses = does === "pause";
  const words = pauses ? "It carries no more packets until it is resumed, or the portal starts again. The other links carry all of them." : "It carries packets again.";
  if (await ask(`${pauses ? "Pause" : "Resume"} ${link}?`, words, pauses ? "Pause" : "Resume")) await order({ do: does, link }, `${link} is ${pauses ? "paused" : "resumed"}.`).catch(() => {});
}

async function askForTier(link, tier) {
  if (await ask(`Set the tier of ${link}?`, "It counts until the portal starts again.", "Set tier", tier)) {
    const metric = Number(find("tier").value);
    await order({ do: "tier", link, metric }, `${link} has tier ${metric}.`).catch(() => {});
  }
}

find("measure").addEventListener("click", async () => {
  const peers = (state.status?.peers ?? []).filter((peer) => peer.paths.some((path) => path.state === "active")).map((peer) => peer.name);
  if (!peers.length) return say("No path works: there is nothing to measure.");
  const much = state.status.links.some((link) => link.data_cap) ? "50 MB, as a link has a cap" : "200 MB";
  if (!await ask("Measure speed?", `It loads all links for ten seconds${peers.length > 1 ? " for each peer" : ""}, and uses up to ${much}.`, "Measure")) return;
  const button = find("measure");
  button.disabled = true;
  text(button, "Measuring…");
  try {
    const reports = [];
    for (const peer of peers) reports.push(await order({ do: "measure", peer }, `${peer} is measured.`));
    speeds(reports);
  } catch { /* it was said */ }
  button.disabled = false;
  text(button, "Measure speed");
});

find("examine").addEventListener("click", async () => {
  if (!await ask("Look for faults?", "The doctor asks links, routes, peers and firewalls. It changes nothing, and takes up to a minute.", "Look")) return;
  const button = find("examine");
  button.disabled = true;
  text(button, "Looking…");
  try { findings(await order({ do: "doctor" }, "The doctor has looked.")); } catch { /* it was said */ }
  button.disabled = false;
  text(button, "Look for faults");
});

begin();
