/** Captured requests in the API. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CaptureIdGenerator } from "../../../protocol/captures/id.ts";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import { waitUntil, type Person } from "../../harness/server/api.ts";
import { HttpArchive } from "../../harness/formats/http-archive.ts";
import { startTunnelOwner, type TunnelOwner } from "../../harness/tunnel/owned-tunnel.ts";
import {
  listCaptures,
  waitForCaptures,
  getCapture,
  startVisitedTunnel,
  matchesQuery,
  type Query,
  type VisitedTunnel,
} from "../../harness/tunnel/visited-tunnel.ts";

const run = promisify(execFile);

let owned: TunnelOwner;
let owner: Person;
let shop: VisitedTunnel;
beforeAll(async () => {
  owned = await startTunnelOwner();
  owner = owned.owner;
  shop = await startVisitedTunnel(owned, "inspected");
});
afterAll(() => owned.stop());

const times = <Item>(count: number, make: (at: number) => Item) =>
  Array.from({ length: count }, (_, at) => make(at));

const hasEnded = ({ state }: CaptureSummary) => state !== "open";

/** Reads all pages. */
async function readAllPages(query: Query, limit: number): Promise<CaptureSummary[]> {
  const all: CaptureSummary[] = [];
  for (;;) {
    const last = all.at(-1);
    const { body } = await listCaptures(owner, {
      ...query,
      limit,
      ...(last && { after: last.id }),
    });
    all.push(...body);
    if (body.length < limit) return all;
  }
}

test("a request is listed with its outcome, and can be read with everything that was sent", async () => {
  const { id: tunnel_id, origin } = shop;
  origin.respond = () =>
    "HTTP/1.1 201 Created\r\ncontent-length: 5\r\nx-answer: yes\r\nset-cookie: a=b\r\n\r\nthere";
  const before = new Date().toISOString();
  await shop.send(
    "POST /orders/7?a=%20b&",
    "content-type: text/plain\r\nauthorization: Bearer secret\r\nx-asked: yes\r\ncontent-length: 4\r\n\r\nhere",
  );
  const [summary] = await waitForCaptures(owner, { tunnel_id, path: "/orders/7" }, 1);
  expect(summary).toEqual({
    id: expect.any(String),
    tunnel_id,
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    method: "POST",
    path: "/orders/7",
    query: "a=%20b&",
    status: 201,
    latency_ms: expect.any(Number),
    duration_ms: expect.any(Number),
    request_size: 4,
    response_size: 5,
    client_ip: "127.0.0.1",
    kind: "http",
    state: "complete",
    error: null,
    replay_of: null,
  });
  expect(summary!.timestamp >= before).toBe(true);
  expect(await getCapture(owner, summary!.id)).toMatchObject({
    ...summary,
    query: "a=%20b&",
    request_headers: {
      "content-type": "text/plain",
      "x-asked": "yes",
      authorization: "[redacted]",
    },
    response_headers: { "x-answer": "yes", "set-cookie": "[redacted]" },
    request_body: Buffer.from("here").toString("base64"),
    response_body: Buffer.from("there").toString("base64"),
    truncated: { request: false, response: false, request_head: false, response_head: false },
  });
  expect(await getCapture(owner, summary!.id.toUpperCase())).toMatchObject({ id: summary!.id });
});

describe("the list", () => {
  const METHODS = ["GET", "POST", "PUT", "DELETE"];
  const STATUSES = [200, 204, 301, 404, 418, 500, 503];

  test("matches any combination of filters", { timeout: 240_000 }, async () => {
    const tunnels = [
      await startVisitedTunnel(owned, "one"),
      await startVisitedTunnel(owned, "two"),
    ];
    for (const { origin } of tunnels) {
      origin.respond = ({ target }) => {
        const status = /\d{3}$/.exec(target)![0];
        return `HTTP/1.1 ${status} X\r\ncontent-length: 0\r\n\r\n`;
      };
    }
    const visit = fc
      .tuple(
        fc.constantFrom(...METHODS),
        fc.constantFrom("a", "A", "b%20c", "100%", "under_score"),
        fc.nat(2),
        fc.constantFrom(...STATUSES),
      )
      .map(([method, folder, name, status]) => `${method} /${folder}/${name}?s=${status}`);
    const visits = fc
      .sample(visit, { seed: 5, numRuns: 80 })
      .map((target, at) => tunnels[at % 2]!.send(target));
    await Promise.all(visits);
    for (const { id } of tunnels)
      await waitUntil(async () =>
        (await listCaptures(owner, { tunnel_id: id })).body.every(hasEnded),
      );
    const ids = tunnels.map(({ id }) => id);
    const lists = ids.map((tunnel_id) => listCaptures(owner, { tunnel_id, limit: 500 }));
    const all = (await Promise.all(lists))
      .flatMap(({ body }) => body)
      .sort((a, b) => (a.id < b.id ? 1 : -1));
    expect(all).toHaveLength(80);
    const since = all.map(({ timestamp }) => timestamp).sort()[0]!;

    const filters = fc.record(
      {
        limit: fc.integer({ min: 1, max: 100 }),
        tunnel_id: fc.constantFrom(...ids),
        method: fc.constantFrom(...METHODS, "get", "PATCH"),
        status: fc.constantFrom("2xx", "4XX", "5xx", "1xx", 404, 418, 599),
        path: fc.constantFrom("a", "/A", "%", "_", "/2", "b%20", "?", "s="),
        since: fc.constantFrom(...all.map(({ timestamp }) => timestamp)),
        after: fc.constantFrom(...all.map(({ id }) => id)),
      },
      { requiredKeys: ["limit"] },
    );
    await fc.assert(
      fc.asyncProperty(filters, async (filter) => {
        const query: Query = { since, ...filter };
        const expected = all.filter((one) => matchesQuery(one, query));
        const { body } = await listCaptures(owner, query);
        expect(body).toEqual(expected.slice(0, Number(query.limit)));
      }),
      { seed: 5, numRuns: 60 },
    );
  });

  test(
    "is read page by page without repeats or gaps while new requests arrive",
    { timeout: 240_000 },
    async () => {
      const tunnels = [
        await startVisitedTunnel(owned, "left"),
        await startVisitedTunnel(owned, "right"),
      ];
      // Concurrently, so that many have the same timestamp.
      await Promise.all(times(150, (at) => tunnels[at % 2]!.send(`GET /n/${at}`)));
      const { id: tunnel_id } = tunnels[0]!;
      await waitForCaptures(owner, { path: "/n/" }, 150);
      const all = (await listCaptures(owner, { path: "/n/", limit: 500 })).body;
      expect(new Set(all.map(({ path }) => path)).size).toBe(150);
      expect(all).toEqual(all.toSorted((a, b) => (a.id < b.id ? 1 : -1)));

      for (const limit of [1, 7, 75, 150, 500]) {
        const laterVisit = tunnels[1]!.send("GET /later");
        const query = limit === 1 ? { path: "/n/1" } : { path: "/n/" };
        const expected = all.filter(({ path }) => path.startsWith(query.path));
        expect([limit, await readAllPages(query, limit)]).toEqual([limit, expected]);
        const ofTunnel = expected.filter((one) => one.tunnel_id === tunnel_id);
        expect([limit, await readAllPages({ ...query, tunnel_id }, limit)]).toEqual([
          limit,
          ofTunnel,
        ]);
        await laterVisit;
      }
    },
  );

  test.each<Query>([
    { limit: 0 },
    { limit: 501 },
    { limit: "all" },
    { after: "the beginning" },
    { tunnel_id: "shop" },
    { method: "GET /" },
    { method: "" },
    { status: "6xx" },
    { status: "20" },
    { status: "2xx,3xx" },
    { path: "" },
    { path: "a\0b" },
    { path: "x".repeat(1_001) },
    { since: "yesterday" },
    { since: "1767225600" },
  ])("refuses %j", async (query) => {
    const { status, body } = await listCaptures(owner, query);
    expect([status, body]).toEqual([400, expect.objectContaining({ error: "invalid_request" })]);
  });

  test("is empty for a tunnel that never had a visitor or an agent", async () => {
    const { body: tunnel } = await owner.post<{ id: string }>("/tunnels", { localPort: 1 });
    expect(await listCaptures(owner, { tunnel_id: tunnel.id })).toMatchObject({
      status: 200,
      body: [],
    });
  });
});

describe("an export", () => {
  const exportArchive = async (path: string) => {
    const { status, body, headers } = await owner.get(path);
    expect([status, headers.get("content-disposition")]).toEqual([
      200,
      expect.stringMatching(/^attachment; filename="[\w-]+\.har"$/),
    ]);
    return HttpArchive.parse(body).log.entries;
  };

  test("has the requests that the query lists", async () => {
    const { id: tunnel_id, origin, send } = await startVisitedTunnel(owned, "exported");
    origin.respond = ({ target }) =>
      `HTTP/1.1 200 OK\r\ncontent-length: ${target.length}\r\n\r\n${target}`;
    for (const path of ["/1", "/2", "/3"]) await send(`GET ${path}`);
    const listed = await waitForCaptures(owner, { tunnel_id }, 3);
    const entries = await exportArchive(`/inspector/har?tunnel_id=${tunnel_id}&limit=2`);
    expect(
      entries.map(({ _id, request, response }) => [_id, request.url, response.content.text]),
    ).toEqual(
      listed
        .slice(0, 2)
        .map(({ id, path }) => [id, owned.api.server.tunnelUrl("exported") + path, path]),
    );
    const [one, ...others] = await exportArchive(`/inspector/${listed[2]!.id}/har`);
    expect([one?._id, others]).toEqual([listed[2]!.id, []]);
    expect(await exportArchive(`/inspector/har?tunnel_id=${tunnel_id}&method=PUT`)).toEqual([]);
  });

  test(
    "has every request even if it is large, without the bodies beyond its maximum size",
    { timeout: 120_000 },
    async () => {
      const { id: tunnel_id, origin, send } = await startVisitedTunnel(owned, "large");
      const body = "x".repeat(512 * 1024);
      origin.respond = () => `HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
      const COUNT = 75;
      for (let at = 0; at < COUNT; at++) await send(`GET /${at}`);
      await waitForCaptures(owner, { tunnel_id }, COUNT);
      const entries = await exportArchive(`/inspector/har?tunnel_id=${tunnel_id}`);
      expect(entries).toHaveLength(COUNT);
      const complete = entries.filter(({ response }) => response.content.text === body);
      expect(complete.length).toBeGreaterThanOrEqual(60);
      expect(complete.length).toBeLessThan(COUNT);
      for (const { response } of entries.slice(complete.length)) {
        expect(response.content).toMatchObject({
          size: body.length,
          comment: expect.stringMatching(/^omitted/),
        });
      }
    },
  );

  test("as a command sends the same request through the tunnel", async () => {
    const { id: tunnel_id, origin, send } = await startVisitedTunnel(owned, "command");
    const body = `it's "$(id)" @file\n`;
    const lines = [`content-length: ${body.length}`, "content-type: x/y", "x-quote: '\"$(id)"];
    await send("PUT /a/../b'c?d=[1-2]", `${lines.join("\r\n")}\r\n\r\n${body}`);
    const [summary] = await waitForCaptures(owner, { tunnel_id }, 1);
    const reply = await owner.get<string>(`/inspector/${summary!.id}/curl`);
    expect(reply.headers.get("content-type")).toMatch(/^text\/plain/);
    const { stdout } = await run("sh", ["-c", reply.body]);
    expect(stdout).toBe("ok");
    const [first, again] = origin.requests;
    const describeRequest = ({
      method,
      target,
      headers,
      body,
    }: (typeof origin.requests)[number]) => [
      method,
      target,
      headers.map(([name, value]) => [name.toLowerCase(), value]).sort(),
      body.toString(),
    ];
    expect(describeRequest(again!)).toEqual(describeRequest(first!));
  });

  test("as a command is refused if the body was cut", async () => {
    const { id: tunnel_id, send } = await startVisitedTunnel(owned, "cut");
    const body = "x".repeat(600 * 1024);
    await send("POST /", `content-length: ${body.length}\r\n\r\n${body}`);
    const [summary] = await waitForCaptures(owner, { tunnel_id }, 1);
    expect(await owner.get(`/inspector/${summary!.id}/curl`)).toMatchObject({
      status: 409,
      body: { error: "conflict" },
    });
  });
});

describe("captured requests", () => {
  const listCalls = (id: string, tunnelId: string) =>
    [
      ["GET", `/inspector/${id}`],
      ["GET", `/inspector/${id}/har`],
      ["GET", `/inspector/${id}/curl`],
      ["POST", `/inspector/${id}/replay`],
      ["GET", `/inspector?tunnel_id=${tunnelId}`],
      ["GET", `/inspector/har?tunnel_id=${tunnelId}`],
      ["DELETE", `/inspector?tunnel_id=${tunnelId}`],
    ] as const;

  test("of another organization are not found, and are not changed", async () => {
    await shop.send("GET /ours");
    const [{ id }] = (await waitForCaptures(owner, { path: "/ours" }, 1)) as [CaptureSummary];
    const otherOwner = await owned.api.owner();
    for (const [method, path] of listCalls(id, shop.id)) {
      expect([path, (await otherOwner.send(method, path)).status]).toEqual([path, 404]);
    }
    expect((await listCaptures(otherOwner)).body).toEqual([]);
    expect((await listCaptures(otherOwner, { after: id })).body).toEqual([]);
    expect(HttpArchive.parse((await otherOwner.get("/inspector/har")).body).log.entries).toEqual(
      [],
    );
    expect(await getCapture(owner, id)).toMatchObject({ path: "/ours" });
  });

  test("that do not exist are not found", async () => {
    for (const id of [new CaptureIdGenerator(shop.id, 0).next(Date.now()), crypto.randomUUID()]) {
      for (const [method, path] of listCalls(id, crypto.randomUUID())) {
        expect([path, (await owner.send(method, path)).status]).toEqual([path, 404]);
      }
    }
  });

  test("can be read by viewers, who can't clear or replay them", async () => {
    await shop.send("GET /viewed");
    const [{ id }] = (await waitForCaptures(owner, { path: "/viewed" }, 1)) as [CaptureSummary];
    const viewer = await owned.api.colleague(owner, "viewer");
    const statuses = [];
    for (const [method, path] of listCalls(id, shop.id)) {
      statuses.push((await viewer.send(method, path)).status);
    }
    expect(statuses).toEqual([200, 200, 200, 403, 200, 200, 403]);
  });

  test("are cleared permanently, of one tunnel only, and later ones are stored", async () => {
    const [one, other] = [
      await startVisitedTunnel(owned, "cleared"),
      await startVisitedTunnel(owned, "not-cleared"),
    ];
    await Promise.all(times(20, () => Promise.all([one.send("GET /"), other.send("GET /")])));
    const [{ id }] = (await waitForCaptures(owner, { tunnel_id: one.id }, 20)) as [CaptureSummary];
    const { status, body } = await owner.delete(`/inspector?tunnel_id=${one.id}`);
    expect([status, body]).toEqual([200, { ok: true }]);
    expect((await listCaptures(owner, { tunnel_id: one.id })).body).toEqual([]);
    expect((await owner.get(`/inspector/${id}`)).status).toBe(404);
    await waitForCaptures(owner, { tunnel_id: other.id }, 20);
    await one.send("GET /next");
    await waitForCaptures(owner, { tunnel_id: one.id }, 1);
    const { body: events } = await owner.get<AuditEvent[]>(
      "/events?action=tunnel_captures_cleared",
    );
    expect(events.map(({ resourceId }) => resourceId)).toEqual([one.id]);
    expect((await owner.delete("/inspector")).status).toBe(400);
  });

  test("are deleted with their tunnel", async () => {
    const deleted = await startVisitedTunnel(owned, "gone-captures");
    await deleted.send("GET /");
    const [{ id }] = (await waitForCaptures(owner, { tunnel_id: deleted.id }, 1)) as [
      CaptureSummary,
    ];
    await owner.delete(`/tunnels/${deleted.id}`);
    expect((await owner.get(`/inspector/${id}`)).status).toBe(404);
    expect((await listCaptures(owner, { tunnel_id: deleted.id })).status).toBe(404);
  });

  test("are not replayed on a server that does not allow it", async () => {
    await shop.send("GET /once");
    const [{ id }] = (await waitForCaptures(owner, { path: "/once" }, 1)) as [CaptureSummary];
    expect(await owner.post(`/inspector/${id}/replay`)).toMatchObject({
      status: 501,
      body: { error: "replay_disabled" },
    });
  });
});
