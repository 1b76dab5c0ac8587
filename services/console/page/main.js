// The page begins: who we are, the stream of what goes on, and what is drawn of it.

import { effect, html, render } from "./html.js";
import { Page } from "./page.js";
import { read } from "./api.js";
import { listen } from "./keys.js";
import { follow } from "./live.js";
import { me, refused } from "./session.js";
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
follow();
