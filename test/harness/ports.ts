/**
 * Ports for servers that start listening after the test chose the number. Systems use those above 32767 for outgoing
 * connections, so one of them that is free now may be in use when the server starts.
 */
import { once } from "node:events";
import { createServer } from "node:net";

const FIRST = 10_000;
const LAST = 32_767;
const WORKERS_MAX = 16;

/** Each of the processes that run tests at the same time has a part of them to itself. */
const size = Math.floor((LAST - FIRST) / WORKERS_MAX);
const first = FIRST + (Number(process.env.VITEST_POOL_ID ?? 0) % WORKERS_MAX) * size;
let drawn = Math.floor(Math.random() * size);
/** Drawing one port or a row of them takes turns: two rows drawn at once would share ports. */
let turn: Promise<unknown> = Promise.resolve();

/** @returns a port at which nobody listens, and which this process gives to nobody else. */
export function reservePort(): Promise<number> {
  return reservePorts(1);
}

/** @returns the first of `count` ports in a row, as `ownPort` does one. */
export function reservePorts(count: number): Promise<number> {
  const drawing = turn.then(() => drawPorts(count));
  turn = drawing.catch(() => undefined);
  return drawing;
}

async function drawPorts(count: number): Promise<number> {
  let row = 0;
  for (let tries = 0; tries < size; tries += 1) {
    drawn += 1;
    const port = first + (drawn % size);
    row = (await isFree(port)) ? (drawn % size === 0 ? 1 : row + 1) : 0;
    if (row === count) return port - count + 1;
  }
  throw new Error(`no ${count} ports in a row are free from ${first} to ${first + size}`);
}

async function isFree(port: number): Promise<boolean> {
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
