import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STATUS_BY_CODE } from "../../../protocol/errors.ts";
import { LIST_MAX_ROWS } from "../../../protocol/limits.ts";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { SERVICE_VERSION } from "../../../protocol/version.ts";
import { AUDIT_ACTIONS } from "../../../protocol/audit/audit-actions.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import {
  mintToken,
  startApi,
  waitForBlockedStatement,
  waitUntil,
  type TestApi,
} from "../../harness/server/api.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.stop());

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("every response", () => {
  test.each([
    ["GET", "/health", 200],
    ["GET", "/tunnels", 401],
    ["GET", "/nowhere", 404],
    ["PUT", "/health", 405],
  ])("%s %s has its own request id and is not cached", async (method, path, status) => {
    const replies = [
      await api.anonymous.send(method, path),
      await api.anonymous.send(method, path),
    ];
    const ids = replies.map(({ headers }) => headers.get("underpass-request-id"));
    expect(replies.map((reply) => reply.status)).toEqual([status, status]);
    expect(ids[0]).toMatch(UUID);
    expect(ids[0]).not.toBe(ids[1]);
    expect(replies[0]!.headers.get("cache-control")).toBe("no-store");
  });

  test("allows no other origin", async () => {
    const { headers } = await api.anonymous.send("GET", "/health", {
      headers: { origin: "https://evil.test" },
    });
    expect([...headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

describe("an error", () => {
  test("has one shape, and its code in a header too", async () => {
    const { body, headers } = await api.anonymous.get("/nowhere");
    expect(body).toEqual({ error: "not_found", message: expect.any(String) });
    expect(headers.get("underpass-error")).toBe("not_found");
  });

  test.each([
    "/tunnels/",
    "/tunnels//start",
    "/orgs//members/",
    "/hooks/",
    "//tunnels",
    "/health/",
  ])("for %s, in which a part is empty, says that there is no such route", async (path) => {
    for (const method of ["GET", "POST", "DELETE"]) {
      expect(await api.anonymous.send(method, path)).toMatchObject({
        status: 404,
        body: { error: "not_found" },
      });
    }
  });

  test.each([
    ["DELETE", "/domains/allowed", "GET, HEAD"],
    ["DELETE", "/tokens/master", "POST"],
    ["POST", "/inspector/ws", "GET, HEAD"],
  ])("for %s %s is not that of the route with a parameter there", async (method, path, allow) => {
    const { status, headers } = await api.anonymous.send(method, path);
    expect([status, headers.get("allow")]).toEqual([405, allow]);
  });

  test("for an unsupported method lists the supported ones", async () => {
    for (const [method, path, allow] of [
      ["PUT", "/tunnels", "GET, HEAD, POST"],
      ["POST", `/tunnels/${crypto.randomUUID()}`, "DELETE"],
      ["DELETE", "/.well-known/jwks.json", "GET, HEAD"],
    ] as const) {
      const { status, body, headers } = await api.anonymous.send(method, path);
      expect([status, headers.get("allow")]).toEqual([405, allow]);
      expect(body).toMatchObject({ error: "method_not_allowed" });
    }
  });

  test("names a query parameter that is given more than once", async () => {
    const owner = await api.owner();
    const { status, body } = await owner.get("/tunnels?limit=1&limit=2");
    const message = "must be given once";
    expect([status, body]).toEqual([
      400,
      {
        error: "invalid_request",
        message: `The query parameter limit ${message}.`,
        fields: [{ path: "limit", message }],
      },
    ]);
  });

  test("of an invalid request always has fields: the whole body has an empty path", async () => {
    const headers = { "content-type": "application/json" };
    const post = async (body: string | Uint8Array) => {
      const reply = await api.anonymous.send("POST", "/auth/login", { headers, body });
      return (reply.body as ErrorBody).fields;
    };
    expect(await post("{")).toEqual([{ path: "", message: "is not valid JSON" }]);
    expect(await post("")).toEqual([{ path: "", message: "is required" }]);
    expect(await post(Uint8Array.of(0xff))).toEqual([{ path: "", message: "is not valid UTF-8" }]);
    // Nothing that the request contains is invalid.
    const owner = await api.owner();
    expect((await owner.delete<ErrorBody>("/projects/default")).body.fields).toEqual([]);
  });

  test.each(["0x10", "1e2", "%205", "5.0", ""])(
    "refuses ?limit=%s: a number in a query has digits only",
    async (limit) => {
      const owner = await api.owner();
      const { status, body } = await owner.get<ErrorBody>(`/tunnels?limit=${limit}`);
      const message = "must be a whole number";
      expect([status, body.fields]).toEqual([400, [{ path: "limit", message }]]);
    },
  );

  test.each([
    [0, "must be at least 1"],
    [-1, "must be at least 1"],
    [LIST_MAX_ROWS + 1, `must be at most ${LIST_MAX_ROWS}`],
  ])("refuses ?limit=%i with the range of the number", async (limit, message) => {
    const owner = await api.owner();
    const { status, body } = await owner.get<ErrorBody>(`/tunnels?limit=${limit}`);
    expect([status, body.fields]).toEqual([400, [{ path: "limit", message }]]);
  });

  test("without a token names the authentication scheme", async () => {
    const { headers } = await api.anonymous.get("/tunnels");
    expect(headers.get("www-authenticate")).toBe("Bearer");
  });

  test("has a status for each code", () => {
    for (const status of Object.values(STATUS_BY_CODE)) {
      expect(status).toBeGreaterThanOrEqual(400);
    }
  });

  test("inside the server is logged in full, and not revealed to the caller", async () => {
    const owner = await api.owner();
    await api.sql("alter table tunnels rename to tunnels_gone");
    try {
      const { status, body, headers } = await owner.get("/tunnels");
      expect(status).toBe(500);
      expect(body).toEqual({
        error: "internal",
        message: "The server failed to process this request. Try again later.",
      });
      const id = headers.get("underpass-request-id")!;
      const failure = await waitUntil(() =>
        Promise.resolve(
          api.server.output
            .split("\n")
            .find((line) => line.includes("request_failed") && line.includes(id)),
        ),
      );
      expect(failure).toContain("tunnels");
      // Positions in the source files, not in the bundle.
      expect(failure).toMatch(/at async workers\/api\/tunnels\/tunnels\.ts:\d+:\d+/);
    } finally {
      await api.sql("alter table tunnels_gone rename to tunnels");
    }
  });

  test("of a database that ends the connection is 503, and says when to try again", async () => {
    const owner = await api.owner();
    await api.sql("begin");
    await api.sql("select 1 from organizations where id = $1 for update", [owner.orgId]);
    const changed = owner.patch(`/orgs/${owner.orgId}`, { name: "other" });
    await waitForBlockedStatement(api);
    await api.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'",
    );
    const { status, body, headers } = await changed;
    await api.sql("rollback");
    expect({ status, body }).toMatchObject({ status: 503, body: { error: "unavailable" } });
    expect(headers.get("retry-after")).toBe("2");
  });

  test("of a database that is down tells the agent to try again, and is logged without a stack trace", async () => {
    const { wireBytes } = await mintToken(await api.owner());
    await api.sql("begin");
    await api.sql("lock table tokens");
    const connected = api.connectAgent(wireBytes, { port: 3000, subdomain: "http-no-database" });
    await waitForBlockedStatement(api);
    await api.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where wait_event_type = 'Lock'",
    );
    const { code, reason } = await connected;
    await api.sql("rollback");
    expect({ code, reason }).toEqual({
      code: CLOSE.going_away,
      reason: "going_away: the server's database does not answer",
    });
    const isLogged = (line: string) =>
      line.includes("agent_failed") && line.includes("administrator command");
    const line = await waitUntil(() =>
      Promise.resolve(api.server.output.split("\n").find(isLogged)),
    );
    expect(line).toContain('"cause":"the database is unavailable: terminating connection due to');
    expect(line).not.toContain("    at ");
  });
});

describe("health", () => {
  test("is reported without a query of the database", async () => {
    const { status, body } = await api.anonymous.get("/health");
    expect([status, body]).toEqual([200, { status: "ok", version: SERVICE_VERSION }]);
  });

  test("is not readiness, which names the parts that do not work", async () => {
    expect((await api.anonymous.get("/ready")).status).toBe(200);
    await api.sql("alter table installation rename to installation_gone");
    try {
      const { status, body, headers } = await api.anonymous.get("/ready");
      expect(status).toBe(503);
      expect(body).toEqual({
        error: "not_ready",
        message: "The service is not ready. These parts do not work: database.",
        missing: ["database"],
      });
      expect(headers.get("underpass-error")).toBe("not_ready");
    } finally {
      await api.sql("alter table installation_gone rename to installation");
    }
    expect((await api.anonymous.get("/ready")).status).toBe(200);
  });

  test("is not readiness, which a full disk ends, and a shortage does not", async () => {
    await api.reportDisk("full");
    expect(await api.anonymous.get("/ready")).toMatchObject({
      status: 503,
      body: { missing: ["disk"] },
    });
    await api.reportDisk("low");
    expect(await api.anonymous.get("/ready")).toMatchObject({ status: 200, body: { disk: "low" } });
  });

  test("names a database that does not answer, instead of waiting for it", async () => {
    await api.sql("begin");
    try {
      await api.sql("lock table installation");
      const { status, body } = await api.anonymous.get("/ready");
      expect({ status, body }).toMatchObject({ status: 503, body: { missing: ["database"] } });
      const line = '"part":"database","cause":"the database is unavailable: no answer within 3 s"';
      await expect.poll(() => api.server.output, WAIT_OPTIONS).toContain(line);
    } finally {
      await api.sql("rollback");
    }
  });
});

test("the log has a line for each request, without secrets", async () => {
  const owner = await api.owner();
  const { headers } = await owner.get("/tunnels");
  const id = headers.get("underpass-request-id")!;
  const line = await waitUntil(() =>
    Promise.resolve(api.server.output.split("\n").find((text) => text.includes(id))),
  );
  for (const part of ["/tunnels", owner.orgId, owner.userId, "200"]) expect(line).toContain(part);

  await api.anonymous.get("/health");
  expect(api.server.output).not.toContain('"/health"');
  for (const secret of [owner.password, owner.accessToken, owner.cookie.split("=")[1]!]) {
    expect(api.server.output).not.toContain(secret);
  }
});

test("the documentation describes every audit action as the API's list does", () => {
  const documented = readFileSync("docs/api.md", "utf8").replaceAll(/ +\|/g, " |");
  for (const [action, { resource, description }] of Object.entries(AUDIT_ACTIONS)) {
    expect(documented).toContain(`| \`${action}\` | \`${resource}\` | ${description} |`);
  }
});
