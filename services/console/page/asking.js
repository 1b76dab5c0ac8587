// Documents that are not told by the stream: asked for when they are shown, and again every so often.

import { useCallback, useEffect, useMemo, useRef, useState } from "./html.js";
import { read } from "./api.js";
import { link } from "./state.js";

const PAUSE_MS = 300; // after the last key
const ENOUGH = 40; // rows: what a screen shows
const SOON_MS = 1000; // where the console is still reading what it was asked for,
const LATE_MS = 30_000; // and at most so much later where it does not come to an end
const MOST = 1000; // items of a page of the API
const FOLLOW_MS = 800; // what changes often is not asked for at each change,
const FOLLOW_EACH_MS = 5; // a list of a thousand every six seconds at most, and one that takes long after a pause of
const FOLLOW_PAUSES = 10; // times as long as it took last

/**
 * {data, etag, problem, isLoading, again}. What was known stays while it is asked again, also when that fails, unless the answer
 * is that it is gone or forbidden. `etag` goes with
 * `data`, and both are others after the next answer: whoever changes what he saw keeps the two of then. again() answers them, too.
 * What says that it is not complete is asked again soon.
 * path: null = nothing to ask. everyMs: 0 = once; nothing is asked while the tab is not seen.
 */
export function useAsked(path, query = {}, everyMs = 0) {
  const key = JSON.stringify([path, query]);
  const [told, setTold] = useState({ key });
  const ask = async (signal) => {
    try {
      const { data, etag } = await read(path, query, signal);
      setTold({ key, data, etag, problem: null });
      return { data, etag };
    } catch (problem) {
      const isOver = [403, 404].includes(problem.status); // what was known is no more, or not for us any more
      if (problem.name !== "AbortError") setTold((before) => ({ ...(isOver ? { key } : kept(before, key)), problem }));
      return {};
    }
  };
  const [again, askIdly] = useRepeated(ask, key, path !== null, everyMs);
  const tries = useRef(0);
  useEffect(() => {
    if (told.data?.complete !== false) {
      tries.current = 0;
      return undefined;
    }
    const wait = Math.min(SOON_MS * 2 ** tries.current, LATE_MS);
    tries.current += 1;
    const timer = setInterval(askIdly, wait);
    return () => clearInterval(timer);
  }, [told, askIdly]);
  const now = kept(told, key);
  return { ...now, isLoading: path !== null && !now.data && !now.problem, again };
}

const kept = (told, key) => (told.key === key ? told : { key });

/**
 * Does act(signal) at once, each `everyMs` (0 = never again), and when the console is there again: [again, idly]. again(): anew, and
 * what was under way is given up. idly(): only if nothing is under way, as each time of `everyMs`: beside a store that
 * takes longer than that no answer would ever come. Nothing is done while the tab is not seen.
 * key: of what is asked; another one begins anew.
 */
export function useRepeated(act, key, isWanted, everyMs = 0) {
  const running = useRef(null);
  const again = useCallback(async () => {
    running.current?.abort();
    const controller = (running.current = new AbortController());
    try {
      return await act(controller.signal);
    } finally {
      if (running.current === controller) running.current = null;
    }
  }, [key]);
  const idly = useCallback(() => document.hidden || running.current || again(), [again]);
  useEffect(() => {
    if (!isWanted) return undefined;
    again();
    const timer = everyMs && setInterval(idly, everyMs);
    return () => {
      clearInterval(timer);
      running.current?.abort();
    };
  }, [key, isWanted, everyMs]);
  useComingBack(again, isWanted);
  return [again, idly];
}

/** The console is there again: whatever could not be asked is asked now. */
function useComingBack(ask, isWanted) {
  const { state } = link.value;
  const before = useRef(state);
  useEffect(() => {
    if (isWanted && before.current === "lost" && state === "live") ask();
    before.current = state;
  }, [state]);
}

/**
 * Pages of a list, one after the other: {items, silent, problem, isLoading, isBusy, hasMore, more, again, refresh}. refresh():
 * asks anew for as many as are shown, which stay until the answer is there, and answers whether it came.
 */
export function usePages(path, query = {}) {
  const key = JSON.stringify([path, query]);
  const [told, setTold] = useState({ key, items: null, next: null });
  const [isBusy, setBusy] = useState(false);
  const asking = useRef(null);
  const page = useCallback(
    async (cursor, before) => {
      asking.current?.abort();
      const { signal } = (asking.current = new AbortController());
      setBusy(true);
      try {
        const items = [...before];
        let next = cursor;
        do {
          // a filter may let little through for a while: what is there is shown, and it is asked on until it fills a screen
          const { data } = await read(path, { ...query, cursor: next }, signal);
          next = data.next;
          items.push(...data.items);
          if (items.length || !next)
            setTold({ key, items: [...items], next, silent: data.silent ?? [], problem: null });
        } while (next && items.length < before.length + ENOUGH);
      } catch (problem) {
        if (problem.name === "AbortError") return;
        setTold((known) => ({ ...(known.key === key ? known : { key, items: null, next: null }), problem }));
      }
      setBusy(false);
    },
    [key],
  );
  const refresh = async (least) => {
    asking.current?.abort();
    const { signal } = (asking.current = new AbortController());
    const items = [];
    let next = null;
    let silent = [];
    try {
      do {
        const limit = Math.min(Math.max(least - items.length, query.limit ?? 1), MOST);
        const { data } = await read(path, { ...query, limit, cursor: next }, signal);
        ({ next, silent = [] } = data);
        items.push(...data.items);
      } while (next && items.length < Math.max(least, ENOUGH));
    } catch {
      return false; // what is known stays, and whoever wants to know better asks again
    }
    setTold({ key, items, next, silent, problem: null });
    return true;
  };
  useEffect(() => {
    if (path !== null) page(null, []);
    return () => asking.current?.abort();
  }, [key]);
  useComingBack(() => told.problem && page(null, []), path !== null);
  const now = told.key === key ? told : { items: null, next: null };
  return {
    ...now,
    items: now.items ?? [],
    silent: now.silent ?? [],
    isBusy,
    isLoading: !now.items && !now.problem,
    hasMore: Boolean(now.next),
    more: () => page(now.next, now.items),
    again: () => page(null, []),
    refresh: () => refresh(now.items?.length ?? 0),
  };
}

/**
 * Asks for pages anew a while after `sign` has become another one, the later the more of them there are; not while somebody
 * waits for an answer, nor where the last one was a problem.
 */
export function useFollowing(sign, pages) {
  const { length } = pages.items;
  const newest = useRef(sign);
  newest.current = sign;
  const [asked, setAsked] = useState(sign);
  const [turn, setTurn] = useState(0);
  const took = useRef(0); // ms: a filter may have much to look through
  const isStale = asked !== sign && !pages.isLoading && !pages.isBusy && !pages.problem;
  useEffect(() => {
    if (!isStale) return undefined;
    const wait = Math.max(FOLLOW_MS + length * FOLLOW_EACH_MS, took.current * FOLLOW_PAUSES);
    const timer = setTimeout(async () => {
      if (document.hidden) {
        setTurn((n) => n + 1);
        return;
      }
      const current = newest.current;
      const begun = performance.now();
      if (await pages.refresh()) setAsked(current);
      took.current = performance.now() - begun;
      setTurn((n) => n + 1);
    }, wait);
    return () => clearTimeout(timer);
  }, [isStale, turn]);
}

/** What is typed, once typing pauses: nothing is asked for each key. */
export function useSettled(given) {
  const key = JSON.stringify(given);
  const [settled, settle] = useState(key);
  useEffect(() => {
    const timer = setTimeout(settle, PAUSE_MS, key);
    return () => clearTimeout(timer);
  }, [key]);
  return useMemo(() => JSON.parse(settled), [settled]);
}

/** {run, isBusy, problem}: something that is done once, by a button. run(...) answers what came of it, or undefined. */
export function useDoing(act) {
  const [state, setState] = useState({ isBusy: false, problem: null });
  const run = async (...given) => {
    setState({ isBusy: true, problem: null });
    try {
      const done = await act(...given);
      setState({ isBusy: false, problem: null });
      return done ?? true;
    } catch (problem) {
      setState({ isBusy: false, problem });
      return undefined;
    }
  };
  return { ...state, run, clear: () => setState({ isBusy: false, problem: null }) };
}
