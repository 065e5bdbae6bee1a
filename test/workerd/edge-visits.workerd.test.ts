/** Visits of hosts without a tunnel, and of a tunnel whose object fails, as one does that can't write to its disk. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ROUTE_MISS_CACHED_MS } from "../../durable-objects/limits.ts";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import { HOUR_MS } from "../../shared/time.ts";
import { visit } from "../../workers/edge/visit.ts";
import type { Env } from "../../workers/env.ts";

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "info").mockReturnValue();
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

/** @param calls the results of the calls to the tunnel's object, in order. */
function createEnv(...calls: (Response | Error)[]) {
  const fetch = vi.fn(async () => {
    const next = calls.shift() ?? new Error("one call too many");
    if (next instanceof Error) throw next;
    return Promise.resolve(next);
  });
  const route = { tunnelId: crypto.randomUUID() };
  const env = {
    TUNNEL: { idFromName: (name: string) => name, get: () => ({ fetch }) },
    DIRECTORY: { getByName: () => ({ findRoute: () => Promise.resolve(route) }) },
  };
  return { env: env as unknown as Env, fetch };
}

/** The first visit of a host looks up its route, later ones have it in memory. */
async function send(env: Env, method: string, host: string): Promise<[number, string | null]> {
  const request = new Request(`http://${host}/`, { method });
  const { status, headers } = await visit(request, env, host);
  return [status, headers.get(ERROR_HEADER)];
}

const broken = new Error("database or disk is full: SQLITE_FULL");
const newHost = () => `${crypto.randomUUID().slice(0, 8)}.localhost`;

test.each(["first", "later"])(
  "a GET whose calls fail twice is 503, at a %s visit",
  async (which) => {
    const host = newHost();
    const before = which === "later" ? [new Response("hello")] : [];
    const { env, fetch } = createEnv(...before, broken, broken);
    if (which === "later") expect(await send(env, "GET", host)).toEqual([200, null]);
    expect(await send(env, "GET", host)).toEqual([503, "unavailable"]);
    expect(fetch).toHaveBeenCalledTimes(before.length + 2);
  },
);

test("a 503 says when to try again", async () => {
  const host = newHost();
  const { env } = createEnv(broken, broken);
  const { status, headers } = await visit(new Request(`http://${host}/`), env, host);
  expect([status, headers.get("retry-after")]).toEqual([503, "2"]);
});

test("a GET whose first call fails is sent again", async () => {
  const { env } = createEnv(broken, new Response("hello"));
  expect(await send(env, "GET", newHost())).toEqual([200, null]);
});

test("a POST whose call fails is never sent again", async () => {
  const { env, fetch } = createEnv(broken, new Response("hello"));
  expect(await send(env, "POST", newHost())).toEqual([502, "agent_offline"]);
  expect(fetch).toHaveBeenCalledTimes(1);
});

describe("of unknown hosts", () => {
  const newHosts = (count: number) => Array.from({ length: count }, newHost);
  const REMEMBERED = 1_000;

  /** @returns the names that the directory, which knows none, was asked for. */
  function createEmptyDirectory(serviceDomain = "localhost") {
    const lookedUp: string[] = [];
    const findRoute = (name: string) => {
      lookedUp.push(name);
      return Promise.resolve(null);
    };
    const env = { SERVICE_DOMAIN: serviceDomain, DIRECTORY: { getByName: () => ({ findRoute }) } };
    return { env: env as unknown as Env, lookedUp };
  }

  const toLabel = (host: string) => host.split(".")[0]!;
  const NOT_FOUND = [404, "tunnel_not_found"];

  test("the newest thousand are not looked up again for a while", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { env, lookedUp } = createEmptyDirectory();
    const hosts = newHosts(REMEMBERED + 1);
    for (const host of hosts) expect(await send(env, "GET", host)).toEqual(NOT_FOUND);
    expect(lookedUp).toEqual(hosts.map(toLabel));
    for (const host of hosts.slice(1)) expect(await send(env, "GET", host)).toEqual(NOT_FOUND);
    expect(lookedUp).toHaveLength(hosts.length);
    expect(await send(env, "GET", hosts[0]!)).toEqual(NOT_FOUND);
    expect(lookedUp.slice(hosts.length)).toEqual([toLabel(hosts[0]!)]);
  });

  test("one is looked up again after the clock was set back", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const { env, lookedUp } = createEmptyDirectory();
    const [host] = newHosts(1);
    await send(env, "GET", host!);
    vi.setSystemTime(Date.now() - HOUR_MS);
    await send(env, "GET", host!);
    expect(lookedUp).toHaveLength(2);
  });

  test("the newest thousand are not parsed again", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const hosts = newHosts(REMEMBERED + 1);
    const { env } = createEmptyDirectory();
    for (const host of hosts) await send(env, "GET", host);
    vi.setSystemTime(Date.now() + ROUTE_MISS_CACHED_MS);
    // Hosts that are parsed now are not below the service's domain.
    const other = createEmptyDirectory("other.example");
    for (const host of hosts.slice(1)) await send(other.env, "GET", host);
    expect(other.lookedUp).toEqual(hosts.slice(1).map(toLabel));
    await send(other.env, "GET", hosts[0]!);
    expect(other.lookedUp.at(-1)).toBe(hosts[0]);
  });
});
