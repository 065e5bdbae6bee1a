/** Requests that pages of other origins make a browser send: they can neither read a response nor change anything. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  createCaller,
  newAddress,
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

const refresh = (cookie: string) => createCaller(api.server, { cookie }).post("/auth/refresh");

describe("a refresh cookie that another host of the site may have set", () => {
  test("is refused beside the own one, in any order, and neither session is touched", async () => {
    const [victim, attacker] = [await api.owner(), await api.owner()];
    for (const cookies of [
      [victim, attacker],
      [attacker, victim],
      [victim, victim],
    ]) {
      const reply = await refresh(cookies.map(({ cookie }) => cookie).join("; "));
      expect([reply.status, reply.headers.getSetCookie()]).toEqual([401, []]);
    }
    for (const { cookie } of [victim, attacker]) expect((await refresh(cookie)).status).toBe(200);
  });

  test("is refused when it is not the session of the expected user, and stays valid", async () => {
    const [victim, attacker] = [await api.owner(), await api.owner()];
    const renewAs = (userId: string) =>
      createCaller(api.server, { cookie: attacker.cookie }).post(`/auth/refresh?user_id=${userId}`);
    const reply = await renewAs(victim.userId);
    expect([reply.status, reply.headers.getSetCookie()]).toEqual([401, []]);
    expect((await renewAs("nobody")).status).toBe(400);
    expect((await renewAs(attacker.userId)).status).toBe(200);
  });

  test("is refused on https without the cookie that binds it to this host", async () => {
    await using secure = await startApi({ kind: "public" });
    const [victim, attacker] = [await secure.owner(), await secure.owner()];
    const logIn = async ({ email }: Person) => {
      const { headers } = await createCaller(secure.server, {
        "x-forwarded-for": newAddress(),
      }).post("/auth/login", { email, password: PASSWORD });
      const [cookie, binding] = headers.getSetCookie();
      expect(binding).toMatch(
        /^__Host-qnt_binding=[0-9a-f]{64}; Max-Age=2592000; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
      );
      return { cookie: cookie!.split(";")[0]!, binding: binding!.split(";")[0]! };
    };
    const [own, tossed] = [await logIn(victim), await logIn(attacker)];
    const renew = (cookie: string, headers: object = { origin: secure.server.url }) =>
      createCaller(secure.server, {
        ...headers,
        cookie,
        "x-forwarded-for": newAddress(),
      }).post("/auth/refresh");
    for (const cookies of [
      [tossed.cookie],
      [tossed.cookie, own.binding],
      [tossed.cookie, own.binding, tossed.binding],
      [own.cookie, tossed.cookie, own.binding],
    ]) {
      const reply = await renew(cookies.join("; "));
      expect([reply.status, reply.headers.getSetCookie()]).toEqual([401, []]);
    }
    expect((await renew(tossed.cookie, { "sec-fetch-site": "same-origin" })).status).toBe(401);
    const renewed = await renew(`${own.cookie}; ${own.binding}`);
    expect(renewed.status).toBe(200);
    expect(renewed.headers.getSetCookie()[1]).toContain(own.binding);
    // A program sends the cookie that it has stored itself, and none that a page has set.
    expect((await renew(tossed.cookie, {})).status).toBe(200);
  });
});
