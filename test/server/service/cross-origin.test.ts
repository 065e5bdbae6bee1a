/** Requests that pages of other origins make a browser send: they can neither read a response nor change anything. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  createCaller,
  newEmail,
  PASSWORD,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

test("no route allows another origin to read its response, not even the page of a tunnel", async () => {
  const { body } = await api.anonymous.get<{ paths: Record<string, object> }>("/openapi.json");
  const routes = Object.entries(body.paths).flatMap(([path, methods]) =>
    ["OPTIONS", ...Object.keys(methods)].map((method) => ({ method: method.toUpperCase(), path })),
  );
  expect(routes.length).toBeGreaterThan(20);
  const origins = ["https://evil.test", "null", api.server.tunnelUrl("evil"), api.server.url];
  for (const { method, path } of routes) {
    for (const origin of origins) {
      const address = path.replace(/\{\w+\}/g, crypto.randomUUID());
      const { headers } = await api.anonymous.send(method, address, {
        headers: {
          origin,
          "access-control-request-method": "POST",
          "access-control-request-headers": "authorization, content-type",
        },
      });
      const revealing = [...headers].filter(
        ([name, value]) => name.startsWith("access-control") || value.includes(origin),
      );
      expect([method, path, origin, revealing]).toEqual([method, path, origin, []]);
    }
  }
});

test("a request that a page can send without a preflight is refused", async () => {
  const body = JSON.stringify({ email: owner.email, password: PASSWORD });
  for (const type of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain; charset=application/json",
  ]) {
    const { status, headers } = await api.anonymous.send("POST", "/auth/login", {
      headers: { "content-type": type },
      body,
    });
    expect([type, status, headers.getSetCookie()]).toEqual([type, 415, []]);
  }
});

test("the cookie is accepted only for renewing a session", async () => {
  const browser = createCaller(api.server, { cookie: owner.cookie });
  for (const [method, path] of [
    ["GET", "/auth/me"],
    ["GET", "/auth/sessions"],
    ["POST", "/auth/logout"],
    ["GET", "/tunnels"],
  ] as const) {
    expect([path, (await browser.send(method, path)).status]).toEqual([path, 401]);
  }
});

test("a method override header has no effect", async () => {
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  for (const name of ["x-http-method-override", "x-http-method", "x-method-override"]) {
    const headers = { [name]: "DELETE" };
    const path = `/tunnels/${tunnel.id}`;
    expect((await owner.send("POST", path, { headers })).status).toBe(405);
    expect((await owner.send("GET", `${path}?_method=DELETE`, { headers })).status).toBe(405);
  }
  const { body } = await owner.get<Tunnel[]>("/tunnels");
  expect(body.map(({ id }) => id)).toContain(tunnel.id);
});

test("responses about accounts are not cached", async () => {
  const replies = [
    await owner.get("/auth/me"),
    await owner.get("/auth/sessions"),
    await owner.get("/me/events"),
    await api.anonymous.post("/auth/login", { email: owner.email, password: PASSWORD }),
    await api.anonymous.post("/auth/forgot", { email: newEmail() }),
  ];
  for (const { headers } of replies) expect(headers.get("cache-control")).toBe("no-store");
});
