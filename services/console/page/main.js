// The page begins: who we are, the stream of what goes on, and what is drawn of it.

import { html, render } from "./html.js";
import { Page } from "./page.js";
import { read } from "./api.js";
import { listen } from "./keys.js";
import { follow } from "./live.js";
import { me } from "./session.js";

const place = document.getElementById("page");
place.replaceChildren(); // what stood there until now
render(html`<${Page} />`, place);
listen();
// if the console is away, the stream says who we are when it is back
read("me").then(
  ({ data }) => (me.value = data),
  () => {},
);
follow();
