// Hooks that fetch what the event stream does not send: documents, lists and the results of actions.

import { useCallback, useEffect, useMemo, useRef, useState } from "./html.js";
import { read } from "./api.js";
import { link } from "./state.js";

const DEBOUNCE_MS = 300; // after the last key
const SCREENFUL = 40; // rows
const RETRY_MS = 1000; // while a response is incomplete; doubled each time
const MAX_RETRY_MS = 30_000;
const PAGE_LIMIT = 1000; // items of a page of the API
// pause before a list is refreshed: a minimum, a share per row, and a multiple of what the last refresh took
const REFRESH_MS = 800;
const REFRESH_PER_ROW_MS = 5;
const REFRESH_FACTOR = 10;

/**
 * Fetch a document: {data, etag, problem, isLoading, reload}.
 *
 * Data stay while they are fetched again, also if that fails, unless the response is 403 or 404. `etag` belongs to `data`; keep both
 * to change the document that the user saw. reload() returns them, too. A response with `complete: false` is fetched again soon.
 * path: null = nothing to fetch. everyMs: 0 = once; a hidden tab does not poll.
 */
export function useResource(path, query = {}, everyMs = 0) {
  const key = JSON.stringify([path, query]);
  const [state, setState] = useState({ key });
  const fetchOnce = async (signal) => {
    try {
      const { data, etag } = await read(path, query, signal);
      setState({ key, data, etag, problem: null });
      return { data, etag };
    } catch (problem) {
      const isOver = [403, 404].includes(problem.status);
      if (problem.name !== "AbortError") setState((before) => ({ ...(isOver ? { key } : ofKey(before, key)), problem }));
      return {};
    }
  };
  const [reload, reloadIfIdle] = usePolling(fetchOnce, key, path !== null, everyMs);
  const tries = useRef(0);
  useEffect(() => {
    if (state.data?.complete !== false) {
      tries.current = 0;
      return undefined;
    }
    const wait = Math.min(RETRY_MS * 2 ** tries.current, MAX_RETRY_MS);
    tries.current += 1;
    const timer = setInterval(reloadIfIdle, wait);
    return () => clearInterval(timer);
  }, [state, reloadIfIdle]);
  const now = ofKey(state, key);
  return { ...now, isLoading: path !== null && !now.data && !now.problem, reload };
}

const ofKey = (state, key) => (state.key === key ? state : { key });

/**
 * Call act(signal) at once, then each `everyMs` (0 = once), and after a reconnect; return [run, runIfIdle].
 *
 * run() aborts a call in progress. runIfIdle() skips its turn while one is in progress, as each interval does: a store slower
 * than the interval would otherwise never get a response. key: another key starts anew.
 */
export function usePolling(act, key, isWanted, everyMs = 0) {
  const running = useRef(null);
  const run = useCallback(async () => {
    running.current?.abort();
    const controller = (running.current = new AbortController());
    try {
      return await act(controller.signal);
    } finally {
      if (running.current === controller) running.current = null;
    }
  }, [key]);
  const runIfIdle = useCallback(() => document.hidden || running.current || run(), [run]);
  useEffect(() => {
    if (!isWanted) return undefined;
    run();
    const timer = everyMs && setInterval(runIfIdle, everyMs);
    return () => {
      clearInterval(timer);
      running.current?.abort();
    };
  }, [key, isWanted, everyMs]);
  useReconnected(run, isWanted);
  return [run, runIfIdle];
}

/** Call `act` when the connection to the console is back. */
function useReconnected(act, isWanted) {
  const { state } = link.value;
  const before = useRef(state);
  useEffect(() => {
    if (isWanted && before.current === "lost" && state === "live") act();
    before.current = state;
  }, [state]);
}

/**
 * Fetch a list page by page: {items, data, silent, problem, isLoading, isBusy, hasMore, more, reload, refresh}.
 *
 * data: the items, null while there is a problem. reload() starts again with the first page. refresh() fetches as many items as are
 * shown, which stay until the response is there, and returns whether it succeeded.
 */
export function usePages(path, query = {}) {
  const key = JSON.stringify([path, query]);
  const [state, setState] = useState({ key, items: null, next: null });
  const [isBusy, setBusy] = useState(false);
  const controller = useRef(null);
  const page = useCallback(
    async (cursor, before) => {
      controller.current?.abort();
      const { signal } = (controller.current = new AbortController());
      setBusy(true);
      try {
        const items = [...before];
        let next = cursor;
        do {
          // a filter may match few items per page: show them, and go on until they fill a screen
          const { data } = await read(path, { ...query, cursor: next }, signal);
          next = data.next;
          items.push(...data.items);
          if (items.length || !next)
            setState({ key, items: [...items], next, silent: data.silent ?? [], problem: null });
        } while (next && items.length < before.length + SCREENFUL);
      } catch (problem) {
        if (problem.name === "AbortError") return;
        setState((known) => ({ ...(known.key === key ? known : { key, items: null, next: null }), problem }));
      }
      setBusy(false);
    },
    [key],
  );
  const refresh = async (least) => {
    controller.current?.abort();
    const { signal } = (controller.current = new AbortController());
    const items = [];
    let next = null;
    let silent = [];
    try {
      do {
        const limit = Math.min(Math.max(least - items.length, query.limit ?? 1), PAGE_LIMIT);
        const { data } = await read(path, { ...query, limit, cursor: next }, signal);
        ({ next, silent = [] } = data);
        items.push(...data.items);
      } while (next && items.length < Math.max(least, SCREENFUL));
    } catch {
      return false; // the items shown stay
    }
    setState({ key, items, next, silent, problem: null });
    return true;
  };
  useEffect(() => {
    if (path !== null) page(null, []);
    return () => controller.current?.abort();
  }, [key]);
  useReconnected(() => state.problem && page(null, []), path !== null);
  const now = state.key === key ? state : { items: null, next: null };
  return {
    ...now,
    items: now.items ?? [],
    silent: now.silent ?? [],
    isBusy,
    isLoading: !now.items && !now.problem,
    data: now.problem ? null : now.items,
    hasMore: Boolean(now.next),
    more: () => page(now.next, now.items),
    reload: () => page(null, []),
    refresh: () => refresh(now.items?.length ?? 0),
  };
}

/** Refresh pages some time after `version` changes: later for long lists; not during a request, nor after a problem. */
export function useAutoRefresh(version, pages) {
  const { length } = pages.items;
  const newest = useRef(version);
  newest.current = version;
  const [fetched, setFetched] = useState(version);
  const [turn, setTurn] = useState(0);
  const tookMs = useRef(0); // a filter may have much to search
  const isStale = fetched !== version && !pages.isLoading && !pages.isBusy && !pages.problem;
  useEffect(() => {
    if (!isStale) return undefined;
    const wait = Math.max(REFRESH_MS + length * REFRESH_PER_ROW_MS, tookMs.current * REFRESH_FACTOR);
    const timer = setTimeout(async () => {
      if (!document.hidden) {
        const current = newest.current;
        const started = performance.now();
        if (await pages.refresh()) setFetched(current);
        tookMs.current = performance.now() - started;
      }
      setTurn((n) => n + 1);
    }, wait);
    return () => clearTimeout(timer);
  }, [isStale, turn]);
}

/** Return a value that follows `given` once typing pauses, so that not every key sends a request. */
export function useDebounced(given) {
  const key = JSON.stringify(given);
  const [settled, settle] = useState(key);
  useEffect(() => {
    const timer = setTimeout(settle, DEBOUNCE_MS, key);
    return () => clearTimeout(timer);
  }, [key]);
  return useMemo(() => JSON.parse(settled), [settled]);
}

/** Wrap an action of a button: {run, isBusy, problem, clear}. run(...) returns the action's result, or undefined if it failed. */
export function useAction(act) {
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
