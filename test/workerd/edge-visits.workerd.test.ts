/** Visits of a tunnel whose object fails, as one does that can't write to its disk. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import { visit } from "../../workers/edge/visit.ts";
import type { Env } from "../../workers/env.ts";

beforeEach(() => {
  vi.spyOn(console, "warn").mockReturnValue();
  vi.spyOn(console, "info").mockReturnValue();
});
afterEach(() => {
  vi.restoreAllMocks();
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

test("a GET whose first call fails is sent again", async () => {
  const { env } = createEnv(broken, new Response("hello"));
  expect(await send(env, "GET", newHost())).toEqual([200, null]);
});

test("a POST whose call fails is never sent again", async () => {
  const { env, fetch } = createEnv(broken, new Response("hello"));
  expect(await send(env, "POST", newHost())).toEqual([502, "agent_offline"]);
  expect(fetch).toHaveBeenCalledTimes(1);
});
