// The page begins: who we are, the stream of what goes on, and what is drawn of it.

import { effect, html, render } from "./html.js";
import { Page } from "./page.js";
import { read } from "./api.js";
import { listen } from "./keys.js";
import { follow } from "./live.js";
import { me } from "./session.js";
import { link } from "./state.js";

const place = document.getElementById("page");
place.replaceChildren(); // what stood there until now
render(html`<${Page} />`, place);
listen();
// at once, and when the console is there again if it was not
effect(() => {
  const isKnown = Boolean(me.peek()?.auth);
  if (isKnown || link.value.state === "lost") return;
  read("me").then(
    ({ data }) => (me.value = data),
    () => {},
  );
});
follow();
