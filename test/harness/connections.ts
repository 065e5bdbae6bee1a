/**
 * How `fetch` keeps connections in tests, for whoever imports this: for less time than any server here
 * does. One that its server has just given up fails a request that nobody may repeat.
 */
import { Agent, setGlobalDispatcher } from "undici";

const KEPT_MS = 1_000;

setGlobalDispatcher(new Agent({ keepAliveTimeout: KEPT_MS, keepAliveMaxTimeout: KEPT_MS }));
