/**
 * On import, makes `fetch` keep idle connections for less time than any server of the tests does. A request on a
 * connection that its server has just closed would fail, and not every request may be repeated.
 */
import { Agent, setGlobalDispatcher } from "undici";

const KEEP_ALIVE_MS = 1_000;

setGlobalDispatcher(
  new Agent({ keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS }),
);
