// Issues of a queue that need attention, as text.

import { age, several } from "../formats.js";
import { href } from "../routes.js";

/** Return [{text, title?, tone, weight, to?}] of a QueueSummary, the gravest first. */
export function issuesOf(queue) {
  const issues = [];
  if (queue.condition) issues.push({ text: queue.unreadable ? "Unreadable document" : queue.condition, title: queue.condition, tone: "bad", weight: 4 });
  if (queue.dead > 0) {
    const to = href(["queues", queue.name, "dead"]);
    issues.push({ text: several(queue.dead, "dead letter"), tone: "bad", weight: 3, to });
  }
  if (queue.nobodyTakes)
    issues.push({ text: `No consumers: oldest message ${age(queue.oldestAgeMs)}`, tone: "warn", weight: 2 });
  if (queue.paused)
    issues.push({
      text: queue.ready ? `Paused with ${several(queue.ready, "ready message")}` : "Paused",
      tone: "warn",
      weight: 1,
    });
  return issues;
}
