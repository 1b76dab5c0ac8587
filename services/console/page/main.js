// Start the page: draw it, follow the event stream, and find out who is signed in.

import { effect, html, render } from "./html.js";
import { Page } from "./page.js";
import { read } from "./api.js";
import { listen } from "./keys.js";
import { follow } from "./live.js";
import { me, refused, takeTokenNotice } from "./session.js";
import { notify } from "./components/notices.js";
import { link } from "./state.js";

const place = document.getElementById("page");
place.replaceChildren(); // "Penstock is loading…"
render(html`<${Page} />`, place);
listen();
// the stream's first event says who is signed in; without a stream, ask
effect(() => {
  const isLost = link.value.state === "lost";
  if (!isLost || me.peek() || refused.peek()) return;
  read("me").then(
    ({ data }) => (me.value = data),
    () => {},
  );
});
const TOKEN_NOTICES = {
  kept: (user) => `You are still signed in as ${user}: the link's token was not used. To use it, sign out and open the link again.`,
  replaced: (user) => `You are signed in as ${user} with the link's token, because the previous token was rejected.`,
};
effect(() => {
  const notice = me.value && takeTokenNotice();
  if (notice) notify(TOKEN_NOTICES[notice](me.value.who));
});
follow();
