// The page begins: who we are, the stream of what goes on, and what is drawn of it.

import { effect, html, render } from "./html.js";
import { Page } from "./page.js";
import { read } from "./api.js";
import { listen } from "./keys.js";
import { follow } from "./live.js";
import { me, refused, usedToken } from "./session.js";
import { say } from "./parts/notices.js";
import { link } from "./state.js";

const place = document.getElementById("page");
place.replaceChildren(); // what stood there until now
render(html`<${Page} />`, place);
listen();
// the stream says it first of all; where there is none, it is asked for
effect(() => {
  const isLost = link.value.state === "lost";
  if (!isLost || me.peek() || refused.peek()) return;
  read("me").then(
    ({ data }) => (me.value = data),
    () => {},
  );
});
const WHICH_TOKEN = {
  kept: (who) => `You are still signed in as ${who}: the link's token was not used. Sign out, then open the link, to use it.`,
  replaced: (who) => `You are signed in as ${who}, by the link's token: the one before it was refused.`,
};
effect(() => {
  const used = me.value && usedToken();
  if (used) say(WHICH_TOKEN[used](me.value.who));
});
follow();
