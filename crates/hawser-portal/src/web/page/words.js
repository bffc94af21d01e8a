// Figures and states in words. Pure functions.
//
// 1. Figures with units. 2. What a path, an event, a refusal is called. 3. The verdict: how the whole portal does.

const MBIT = 1e6;

/** A rate in bits a second, as a number and its unit. */
export function rate(bps) {
  if (bps == null) return ["–", ""];
  if (bps >= 1e9) return [(bps / 1e9).toFixed(2), "Gbit/s"];
  if (bps >= 99.95e6) return [Math.round(bps / MBIT).toString(), "Mbit/s"];
  if (bps >= 0.95e6) return [(bps / MBIT).toFixed(1), "Mbit/s"];
  return [Math.round(bps / 1e3).toString(), "kbit/s"];
}

/** The same as one text. */
export const rateText = (bps) => rate(bps).join(" ").trim();

/** Milliseconds. */
export const millis = (ms) => (ms == null ? "–" : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`);

/** A part of a hundred. */
export const percent = (part) => (part == null ? "–" : `${part > 0 && part < 10 ? part.toFixed(1) : Math.round(part)} %`);

/** Bytes, as data caps count them. */
export function bytes(count) {
  if (count >= 1e12) return `${(count / 1e12).toFixed(2)} TB`;
  if (count >= 1e9) return `${(count / 1e9).toFixed(2)} GB`;
  if (count >= 1e6) return `${(count / 1e6).toFixed(1)} MB`;
  return `${Math.round(count / 1e3)} kB`;
}

/** A time that passed. */
export function duration(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

/** What a path is at the moment: a word, how bad, and why. */
export function condition(path, link) {
  const live = path.live;
  if (link?.data_cap?.reached) return { is: "down", word: "cap reached", why: "it has carried what it may this month" };
  if (link?.paused) return { is: "down", word: "paused", why: "somebody paused it" };
  const since = live.condition_s >= 1 ? ` for ${duration(live.condition_s)}` : "";
  switch (live.condition) {
    case "well": return { is: "well", word: "well", why: "" };
    case "degraded": return { is: "degraded", word: "degraded", why: `loses or delays more than it used to${since}` };
    case "fading": return { is: "fading", word: "fading", why: `carries less than half of what it did${since}` };
    case "cut": return { is: "cut", word: "cut", why: `${path.reason ?? "nothing comes back"}${since}` };
    case "down": return { is: "down", word: "down", why: `${path.reason ?? "it is closed"}${since}` };
    default: return { is: "unknown", word: path.state, why: path.reason ?? "nothing came back yet" };
  }
}

/** Why a peer that answers has no session with this portal, and what mends it. */
export function refusal(word) {
  switch (word) {
    case "unknown_key": return ["does not know this portal's public key", "On its side: sudo hawser peer list; on this one: hawser pubkey of the private key."];
    case "preshared_key": return ["has another preshared key", "Give both sides the same preshared_key_file, or none."];
    default: return [`refuses this portal: ${word}`, ""];
  }
}

const EVENTS = {
  portal_started: ["portal started", ""], link_up: ["is up", "well"], link_down: ["is down", "bad"], cut: ["is cut", "bad"],
  comeback: ["is back", "well"], degraded: ["is degraded", "warn"], recovered: ["has recovered", "well"], fade: ["is fading", "warn"],
  fade_over: ["fades no more", "well"], roaming: ["moved", ""], session: ["has a session", "well"], rekey: ["has new keys", ""],
  session_ended: ["has no session any more", "bad"], refused: ["refuses this portal", "bad"], cap_reached: ["has reached its data cap", "warn"],
  cap_lifted: ["may carry packets again", "well"], rules_changed: ["rules changed", ""], configuration_changed: ["configuration changed", ""],
  paused: ["is paused", "warn"], resumed: ["is resumed", "well"], tier_set: ["has another tier", ""],
  owner_changed: ["is owned by another member of its hub", ""], etcd_away: ["etcd does not answer", "warn"],
  etcd_reached: ["etcd answers", "well"],
};
const ROUTINE = new Set(["rekey"]);

/** An event in words: what happened, how bad, why, and whether it is of no interest to most. */
export function event(one) {
  const [words, is] = EVENTS[one.kind] ?? [one.kind, ""];
  const whose = one.path || one.peer;
  const cause = one.kind === "refused" ? refusal(one.cause)[0] : one.cause;
  const count = one.count > 1 ? ` (${one.count} times)` : "";
  return { text: whose ? `${whose} ${words}` : words.replace(/^./, (letter) => letter.toUpperCase()), is, cause: cause + count, routine: ROUTINE.has(one.kind) };
}

/** How the whole portal does: well, warn or bad, a title, and the rest of the sentence. */
export function verdict(status) {
  const links = new Map(status.links.map((link) => [link.name, link]));
  const paths = status.peers.flatMap((peer) => peer.paths.map((path) => ({ peer, path, ...condition(path, links.get(path.name)) })));
  const refused = status.peers.find((peer) => peer.refused);
  if (refused) {
    const [why, cure] = refusal(refused.refused);
    return { is: "bad", title: `${refused.name} refuses this portal`, detail: `It answers, and ${why}. ${cure}` };
  }
  const lonely = status.peers.find((peer) => peer.handshake_age_s == null);
  if (lonely) return { is: "bad", title: `No session with ${lonely.name}`, detail: "Nothing comes back from it yet." };
  const works = paths.filter(({ is }) => ["well", "degraded", "fading"].includes(is));
  const names = (list) => [...new Set(list.map(({ path }) => path.name))].join(" and ");
  if (!works.length) return { is: "bad", title: "No link works", detail: paths.map(({ path, why }) => `${path.name}: ${why}`).join("; ") };
  const carries = `${names(works)} ${new Set(works.map(({ path }) => path.name)).size > 1 ? "carry" : "carries"} everything.`;
  for (const [which, is, word] of [["cut", "bad", "cut"], ["down", "warn", ""], ["fading", "warn", "fading"], ["degraded", "warn", "degraded"], ["unknown", "warn", ""]]) {
    const such = paths.filter((one) => one.is === which);
    if (!such.length) continue;
    const one = new Set(such.map(({ path }) => path.name)).size === 1;
    const what = word || [...new Set(such.map((each) => each.word))].join(" or ").replace("cap reached", "at its data cap");
    const rest = ["cut", "down", "unknown"].includes(which) ? carries : "";
    return { is, title: `${names(such)} ${one ? "is" : "are"} ${what}`, detail: `${sentence(such[0].why)} ${rest}` };
  }
  const count = new Set(works.map(({ path }) => path.name)).size;
  return { is: "well", title: "All is well", detail: count === 1 ? "One link carries everything." : `${count} links work as one.` };
}

const sentence = (words) => (words ? `${words[0].toUpperCase()}${words.slice(1)}.` : "");
