/** The store that all inspectors of the page share. */
import { CaptureStore } from "./capture-store.ts";
import { CaptureWatch } from "./capture-watch.ts";
import { listCaptures } from "./list-captures.ts";

let current: { membership: string; store: CaptureStore } | undefined;

/** @param membership the user and the organization: another one never sees these requests. */
export function getCaptureStore(membership: string): CaptureStore {
  if (current?.membership !== membership) current = { membership, store: createStore() };
  return current.store;
}

function createStore(): CaptureStore {
  return new CaptureStore({
    list: listCaptures,
    watch(events) {
      const watch = new CaptureWatch(events);
      watch.start();
      return () => watch.close();
    },
  });
}
