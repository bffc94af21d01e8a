// The page's elements, made and followed. Text goes in as text: nothing that a portal or a peer says is ever read as HTML.
//
// 1. The verdict and the totals. 2. A card a link. 3. Events. 4. Flows, the doctor's findings, who was refused.

import { Spark, key, linkColor } from "./charts.js";
import * as words from "./words.js";

export const find = (id) => document.getElementById(id);

/** Sets text only where it differs, so that nothing is read aloud again. */
export function text(element, value) {
  if (element.textContent !== value) element.textContent = value;
}

/** An element with text or children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function figure(element, bps) {
  const [number, unit] = words.rate(bps);
  if (element.dataset.shows === number + unit) return;
  element.dataset.shows = number + unit;
  element.replaceChildren(number, make("small", {}, unit));
}

/** Step 1. */
export function head(status) {
  const { is, title, detail } = words.verdict(status);
  find("verdict").closest("section").dataset.is = is;
  text(find("verdict"), title);
  text(find("detail"), detail);
  document.title = is === "well" ? "Hawser" : `${title} – Hawser`;
  text(find("about"), `${status.version}, up ${words.duration(status.uptime_s)}`);
  const all = status.peers.flatMap((peer) => peer.paths);
  const sum = (field) => all.reduce((total, path) => total + path.live[field] * 1e6, 0);
  figure(find("total-rx"), sum("rx_mbps"));
  figure(find("total-tx"), sum("tx_mbps"));
  // What limits what is sent to each peer, and why, where the portal says so.
  text(find("limit"), status.peers.map(({ limit }) => limit?.text ?? "").join(" ").trim());
}

/** All paths in the order of the status, each with its colour: that of its link. */
export function paths(status) {
  const many = status.peers.length > 1;
  const names = [...new Set(status.peers.flatMap((peer) => peer.paths.map((path) => path.name)))];
  return status.peers.flatMap((peer) => peer.paths.map((path) => {
    const again = path.live.place > 0 ? ` ${path.live.place + 1}` : "";
    const label = `${path.name}${again}${many ? ` (${peer.name})` : ""}`;
    return { peer, path, label, name: key(peer.name, path.name, path.live.place), index: names.indexOf(path.name) + path.live.place };
  }));
}

/** Step 2: the cards, each made once. */
export class Cards {
  constructor(element, deeds) { this.element = element; this.deeds = deeds; this.cards = new Map(); }

  show(status, record) {
    const links = new Map(status.links.map((link) => [link.name, link]));
    const seen = new Set();
    for (const one of paths(status)) {
      seen.add(one.name);
      if (!this.cards.has(one.name)) this.cards.set(one.name, this.make(one));
      this.follow(this.cards.get(one.name), one, links.get(one.path.name), record);
    }
    for (const [name, card] of this.cards) if (!seen.has(name)) { card.root.remove(); this.cards.delete(name); }
  }

  make({ path, label, index }) {
    const parts = { root: make("article", { class: "card link" }) };
    const part = (name, tag, attributes = {}) => (parts[name] = make(tag, attributes));
    const field = (name, title) => make("div", {}, make("dt", {}, title), part(name, "dd"));
    parts.root.style.setProperty("--of-link", `var(--${linkColor(index)})`);
    const title = make("h3", {}, label);
    parts.root.append(
      make("div", { class: "top" }, make("div", {}, title, part("way", "p", { class: "way" })), part("pill", "span", { class: "pill" })),
      part("why", "p", { class: "why" }),
      make("dl", { class: "rates" }, field("rx", "Received"), field("tx", "Sent")),
      part("spark", "div", { class: "spark", role: "img", "aria-label": `What ${label} carried over the last two minutes` }),
      make("dl", { class: "facts" }, field("rtt", "Round trip"), field("queue", "Queue"), field("loss", "Loss"), field("share", "Share"),
        field("capacity", "Can carry"), field("tier", "Tier"), field("repaired", "Retransmitted"), field("copied", "Reinjected")),
      part("meter", "div", { class: "meter" }),
      part("deeds", "div", { class: "deeds" }),
    );
    parts.chart = new Spark(parts.spark, index);
    parts.pause = make("button", {}, "Pause");
    parts.retier = make("button", { "aria-label": `Set tier of ${label}` }, "Set tier");
    parts.pause.addEventListener("click", () => this.deeds.pause(path.name, parts.pause.dataset.does));
    parts.retier.addEventListener("click", () => this.deeds.tier(path.name, Number(parts.tier.textContent)));
    parts.deeds.append(parts.pause, parts.retier);
    parts.used = make("progress", { max: "100", "aria-label": `Data used by ${label} this month` });
    parts.usedText = make("span");
    parts.meter.append(parts.usedText, parts.used);
    this.element.append(parts.root);
    return parts;
  }

  follow(parts, { path, label, name }, link, record) {
    const { live } = path;
    const { is, word, why } = words.condition(path, link);
    parts.pill.dataset.is = is;
    text(parts.pill, word);
    text(parts.why, why);
    const way = [path.interface, path.scion?.endpoint ?? path.endpoint].filter(Boolean).join(" → ");
    text(parts.way, [way, path.transport].filter(Boolean).join(", "));
    figure(parts.rx, live.rx_mbps * 1e6);
    figure(parts.tx, live.tx_mbps * 1e6);
    text(parts.rtt, words.millis(path.rtt_ms));
    text(parts.queue, words.millis(live.queue_ms));
    text(parts.loss, words.percent(path.loss_pct));
    text(parts.share, words.percent(live.share_pct));
    text(parts.capacity, path.rate_mbps > 0 ? words.rateText(path.rate_mbps * 1e6) : "–");
    text(parts.tier, String(path.metric));
    text(parts.repaired, words.bytes(live.retransmitted_bytes));
    text(parts.copied, words.bytes(live.reinjected_bytes));
    parts.chart.show(record, name);
    parts.deeds.hidden = !link;
    const does = link?.paused ? "resume" : "pause";
    if (parts.pause.dataset.does !== does) {
      parts.pause.dataset.does = does;
      text(parts.pause, does === "pause" ? "Pause" : "Resume");
      parts.pause.setAttribute("aria-label", `${does === "pause" ? "Pause" : "Resume"} ${label}`);
    }
    const cap = link?.data_cap;
    parts.meter.hidden = !cap;
    if (cap) {
      parts.used.value = Math.min(100, cap.used_bytes / cap.cap_bytes * 100);
      parts.used.classList.toggle("full", cap.reached);
      text(parts.usedText, `${words.bytes(cap.used_bytes)} of ${words.bytes(cap.cap_bytes)} this month`);
    }
  }
}

/** Step 3: the newest first. */
export function events(list, all) {
  const clock = (ms) => {
    const time = new Date(ms);
    const today = time.toDateString() === new Date().toDateString();
    return time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false }) + (today ? "" : ` ${time.toLocaleDateString([], { day: "numeric", month: "short" })}`);
  };
  const rows = [...list].reverse().map((one) => ({ one, said: words.event(one) })).filter(({ said }) => all || !said.routine).slice(0, 200);
  find("events").replaceChildren(...rows.map(({ one, said }) => {
    const row = make("li", { "data-is": said.is }, make("time", { datetime: new Date(one.time_unix_ms).toISOString() }, clock(one.time_unix_ms)), make("b", {}, said.text));
    if (said.cause) row.append(make("span", { class: "quiet" }, said.cause));
    return row;
  }));
}

/** Step 4. */
export function findings(list) {
  const shown = list.map((found) => make("div", { class: "finding" },
    make("div", {}, make("span", { class: "pill", "data-is": found.severity === "fault" ? "cut" : "degraded" }, found.severity)),
    make("p", {}, found.text), ...(found.cure ? [make("p", { class: "quiet" }, `What mends it: ${found.cure}`)] : [])));
  // What limits is told of a portal without faults, too.
  const none = list.every((found) => found.severity === "info") ? [make("p", { class: "finding" }, "No fault found.")] : [];
  find("findings").replaceChildren(...none, ...shown);
}

/** What links carried to each peer, both ways. */
export function speeds(reports) {
  const rate = (mbps) => words.rateText(mbps * 1e6);
  const trip = ({ rtt_idle_ms: idle, rtt_loaded_ms: loaded }) => idle == null || loaded == null ? "" : `, round trip ${words.millis(idle)}, ${words.millis(loaded)} under load`;
  find("speeds").replaceChildren(...reports.flatMap(({ peer, directions }) => directions.map((one) => make("div", { class: "finding" },
    make("p", {}, make("b", {}, `${reports.length > 1 ? `${peer}, ` : ""}${one.direction}: ${rate(one.rate_mbps)}`)),
    ...one.links.map((link) => make("p", {}, `${link.link}: ${rate(link.rate_mbps)}${trip(link)}`)),
    make("p", { class: "quiet" }, `What limits: ${one.limit}`)))));
}

/** Who looks, and what was refused. */
export function access(web) {
  if (!web) return;
  const refused = Object.entries(web.refused).map(([why, count]) => `${why.replace("_", " ")} ${count}`).join(", ");
  text(find("access"), `Served on ${web.listen} to ${web.streams} ${web.streams === 1 ? "page" : "pages"}. Refused: ${refused || "nothing"}.`);
}

/** The largest flows, where the portal counts them. */
export function flows(list) {
  find("flows").hidden = !list.length;
  const end = (address, port) => (address.includes(":") ? `[${address}]` : address) + (port == null ? "" : `:${port}`);
  const cell = (value, of) => make("td", of ? { class: of } : {}, value);
  find("flows").querySelector("tbody").replaceChildren(...list.slice(0, 12).map((flow) => make("tr", {},
    cell(`${flow.protocol} ${end(flow.local_address, flow.local_port)} – ${end(flow.remote_address, flow.remote_port)}`),
    cell(flow.rule == null ? "none" : String(flow.rule)), cell([...new Set(flow.paths.map(({ name }) => name))].join(", ")),
    cell(words.rateText(flow.rx_bytes_per_s * 8), "number"), cell(words.rateText(flow.tx_bytes_per_s * 8), "number"))));
}
