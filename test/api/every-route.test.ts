/** One battery over all routes, taken from the document that describes them: none is forgotten. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Tunnel } from "../../protocol/resources/tunnels.ts";
import {
  callerOf,
  mintToken,
  startApi,
  type Caller,
  type Person,
  type TestApi,
} from "../harness/api.ts";

interface Operation {
  security?: unknown[];
  requestBody?: unknown;
  responses: Record<string, unknown>;
}
interface Route extends Operation {
  method: string;
  path: string;
}

let api: TestApi;
let owner: Person;
let routes: Route[];

beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  const { body } = await api.stranger.get<{ paths: Record<string, Record<string, Operation>> }>(
    "/openapi.json",
  );
  routes = Object.entries(body.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  );
});
afterAll(() => api.stop());

/** /agent/connect takes its own credential and answers on its own transport. */
const guarded = () => routes.filter(({ security, path }) => security && path !== "/agent/connect");
const nameOf = ({ method, path }: Route) => `${method} ${path}`;

async function send({ method, path }: Route, by: Caller, body?: unknown): Promise<number> {
  const values: Record<string, string> = {
    "{id}": crypto.randomUUID(),
    "{nonce}": "0".repeat(32),
  };
  const address = path.replace(/\{\w+\}/g, (name) => values[name]!);
  const init =
    body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await by.send(method, address, init)).status;
}

test("the document knows the routes that this battery is about", () => {
  expect(routes.map(nameOf)).toEqual(
    expect.arrayContaining(["GET /tunnels", "DELETE /tokens/{nonce}", "POST /auth/cli/authorize"]),
  );
  expect(guarded().length).toBeGreaterThanOrEqual(9);
});

test("whatever has a guard refuses a caller without a token, and one with a bad one", async () => {
  for (const route of guarded()) {
    expect([nameOf(route), await send(route, api.stranger)]).toEqual([nameOf(route), 401]);
    for (const bearer of ["Bearer x", "Bearer ", "Basic eDp5", owner.accessToken]) {
      const caller = callerOf(api.server, { authorization: bearer });
      expect([nameOf(route), await send(route, caller)]).toEqual([nameOf(route), 401]);
    }
  }
});

test("a viewer may read, and change nothing", async () => {
  const viewer = await api.colleague(owner, "viewer");
  const OWN = new Set(["POST /auth/logout"]);
  for (const route of guarded()) {
    if (OWN.has(nameOf(route))) continue;
    // What a viewer must not see either is not made for reading alone.
    const expected = route.method === "GET" && route.path !== "/auth/cli/request" ? 200 : 403;
    expect([nameOf(route), await send(route, viewer)]).toEqual([nameOf(route), expected]);
  }
});

test("whatever takes a body refuses one that is broken, of the wrong type or too large", async () => {
  for (const { method, path, ...route } of routes.filter(({ requestBody }) => requestBody)) {
    const by = route.security ? owner : api.stranger;
    const json = { "content-type": "application/json" };
    const sendRaw = (headers: Record<string, string>, body: string) =>
      by.send<{ error: string }>(method, path, { headers, body });
    const outcomes = [
      await sendRaw(json, "{"),
      await sendRaw(json, "[]"),
      await sendRaw(json, "null"),
      await sendRaw({ "content-type": "text/plain" }, '{"code":1}'),
      await sendRaw(json, JSON.stringify({ padding: "x".repeat(1024 * 1024) })),
    ].map(({ status, body }) => `${status} ${body.error}`);
    expect([path, ...outcomes]).toEqual([
      path,
      "400 invalid_request",
      "400 invalid_request",
      "400 invalid_request",
      "415 unsupported_media_type",
      "413 payload_too_large",
    ]);
  }
});

describe("what belongs to another organization is missing", () => {
  test("a tunnel, a token", async () => {
    const stranger = await api.owner();
    const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
    const { nonce } = await mintToken(owner);
    expect((await stranger.delete(`/tunnels/${tunnel.id}`)).status).toBe(404);
    expect((await stranger.delete(`/tokens/${nonce}`)).status).toBe(404);
    expect((await stranger.get<unknown[]>("/tunnels")).body).toEqual([]);
    expect((await stranger.get<unknown[]>("/tokens")).body).toEqual([]);
    expect((await stranger.get<unknown[]>(`/tunnels?after=${tunnel.id}`)).body).toEqual([]);
  });
});

test("every guarded route documents its refusals", () => {
  for (const route of guarded()) {
    expect([nameOf(route), Object.keys(route.responses)]).toEqual([
      nameOf(route),
      expect.arrayContaining(["401"]),
    ]);
  }
});
