// What of a queue wants somebody to look at it, in words, the gravest first.

import { age, several } from "../formats.js";
import { href } from "../routes.js";

/** [{text, tone, weight, to?}] of a QueueSummary. */
export function troubles(queue) {
  const said = [];
  if (queue.condition) said.push({ text: queue.condition, tone: "bad", weight: 4 });
  if (queue.dead > 0) {
    const to = href(["queues", queue.name, "dead"]);
    said.push({ text: several(queue.dead, "dead letter"), tone: "bad", weight: 3, to });
  }
  if (queue.nobodyTakes)
    said.push({ text: `nobody takes: oldest waits ${age(queue.oldestAgeMs)}`, tone: "warn", weight: 2 });
  if (queue.paused)
    said.push({
      text: queue.ready ? `paused, ${several(queue.ready, "message")} wait` : "paused",
      tone: "warn",
      weight: 1,
    });
  return said;
}
