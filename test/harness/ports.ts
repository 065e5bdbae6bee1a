/**
 * Ports for servers that start listening after the test has chosen the number. Systems use ports above 32767 for
 * outgoing connections, so one of those that is free now may be in use when the server starts.
 */
import { once } from "node:events";
import { createServer } from "node:net";

/** `fetch` refuses port 10080. */
const FIRST = 10_081;
const LAST = 32_767;
const WORKERS_MAX = 16;

/** Each of the processes that run tests at the same time uses a range of its own. */
const size = Math.floor((LAST - FIRST) / WORKERS_MAX);
const first = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS_MAX) * size;
let offset = Math.floor(Math.random() * size);
/** The end of the last search. Searches run one after the other, because two at once could return the same ports. */
let lastSearch: Promise<unknown> = Promise.resolve();

/** @returns a free port that no other test of this run gets. */
export function reservePort(): Promise<number> {
  return reservePorts(1);
}

/** @returns the first of `count` consecutive free ports. */
export function reservePorts(count: number): Promise<number> {
  const search = lastSearch.then(() => findPorts(count));
  lastSearch = search.catch(() => undefined);
  return search;
}

async function findPorts(count: number): Promise<number> {
  let consecutive = 0;
  for (let tries = 0; tries < size; tries += 1) {
    offset += 1;
    const port = first + (offset % size);
    consecutive = (await isFree(port)) ? (offset % size === 0 ? 1 : consecutive + 1) : 0;
    if (consecutive === count) return port - count + 1;
  }
  throw new Error(`no ${count} consecutive ports are free from ${first} to ${first + size}`);
}

export async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  try {
    await once(probe.listen(port, "127.0.0.1"), "listening");
  } catch {
    return false;
  }
  probe.close();
  await once(probe, "close");
  return true;
}
