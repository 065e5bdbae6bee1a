/**
 * How `fetch` keeps connections in tests, for whoever imports this: for less time than any server here
 * does. One that its server has just given up fails a request that nobody may repeat.
 */
import { Agent, setGlobalDispatcher } from "undici";

const KEEP_ALIVE_MS = 1_000;

setGlobalDispatcher(new Agent({ keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS }));
