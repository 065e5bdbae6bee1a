import { once } from "node:events";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { REQUEST_ID_HEADER } from "../../../protocol/errors.ts";
import { waitUntil } from "../../harness/server/api.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  basicAuthorization,
  findErrorCode,
  startTunnelOwner,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { exchange, findHeader, type Answer } from "../../harness/tunnel/raw-http.ts";

let owner: TunnelOwner;
let origin: RawOrigin;
let shop: OwnedTunnel;

beforeAll(async () => {
  [owner, origin] = await Promise.all([startTunnelOwner(), startRawOrigin()]);
  shop = await owner.expose("shop", origin.port);
});
afterAll(async () => {
  await owner.stop();
  await origin.stop();
});
beforeEach(async () => {
  for (const setting of ["policy", "auth", "maintenance"]) await shop.remove(setting);
  origin.respond = () => OK;
  origin.requests.length = 0;
});

const HTML = { accept: "text/html" };
const PASSWORD = { username: "ann", password: "open sesame" };
const ANN = basicAuthorization("ann", "open sesame");
const DENY = { kind: "deny", path_prefix: "/admin" };
const line = ({ headers }: Answer, name: string) => findHeader(headers, name);
const withoutId = ({ headers }: Answer) => headers.filter(([name]) => name !== REQUEST_ID_HEADER);
const policy = (...actions: object[]) => shop.put("policy", { actions });
const readCodes = async (...visits: Promise<Answer>[]) =>
  (await Promise.all(visits)).map(findErrorCode);

describe("a refusal", () => {
  test("is a page for browsers and JSON for programs, with a code for both", async () => {
    await policy(DENY);
    const page = await shop.visit("/admin", HTML);
    expect([page.status, findErrorCode(page)]).toEqual([403, "forbidden"]);
    expect(page.body.toString()).toContain("<h1>Not allowed</h1>");
    expect(line(page, "content-security-policy")).toContain("default-src 'none'");
    const json = await shop.visit("/admin");
    expect(JSON.parse(json.body.toString())).toMatchObject({ error: "forbidden" });
    expect(line(json, "cache-control")).toBe("no-store");
    expect(origin.requests).toEqual([]);
  });

  test("never reaches the local server, in any spelling of the path", async () => {
    await policy(DENY);
    const spellings = [
      "//admin",
      "/%61dmin",
      "/./admin",
      "/x/../admin",
      "/x/%2e%2e/admin",
      "/%2fadmin",
    ];
    const more = [
      "/x/..;/admin",
      "/admin;x",
      "/x%2f..%2fadmin",
      "/\\admin",
      "/admin?x",
      "/admin/../admin",
      "/ADMIN",
      "/x/..%2f%41dMin",
    ];
    for (const path of [...spellings, ...more]) {
      expect([path, findErrorCode(await shop.visit(path))]).toEqual([path, "forbidden"]);
    }
    expect(origin.requests).toEqual([]);
    expect(await readCodes(shop.visit("/%2561dmin"))).toEqual(["passed"]);
  });
});

describe("a password", () => {
  beforeEach(async () => {
    expect((await shop.put("auth", PASSWORD)).status).toBe(200);
  });

  test("is requested with the tunnel's name, accepted, and not forwarded", async () => {
    const challenged = await shop.visit("/", HTML);
    expect([challenged.status, line(challenged, "www-authenticate")]).toEqual([
      401,
      'Basic realm="shop"',
    ]);
    expect(await readCodes(shop.visit("/", basicAuthorization("ann", "open barley")))).toEqual([
      "unauthorized",
    ]);
    expect(await readCodes(shop.visit("/", basicAuthorization("bob", "open sesame")))).toEqual([
      "unauthorized",
    ]);
    for (let n = 0; n < 3; n++) expect(findErrorCode(await shop.visit("/", ANN))).toBe("passed");
    expect(origin.requests).toHaveLength(3);
    for (const { headers } of origin.requests)
      expect(findHeader(headers, "authorization")).toBeUndefined();
    expect(await shop.getListed()).toMatchObject({ authEnabled: true });
  });

  test("is not read from any other header, nor from two Authorization headers", async () => {
    const { authorization } = ANN;
    const wrong = basicAuthorization("ann", "wrong").authorization;
    const otherHeaders: Record<string, string>[] = [
      { "proxy-authorization": authorization },
      { "proxy-authorization": authorization, authorization: wrong },
      { authorization: `${wrong}\r\nAuthorization: ${authorization}` },
      { authorization: `${authorization}\r\nAuthorization: ${wrong}` },
      { "x-forwarded-authorization": authorization },
      { cookie: `authorization=${authorization}` },
    ];
    for (const lines of otherHeaders) {
      expect([lines, findErrorCode(await shop.visit("/", lines))]).toEqual([lines, "unauthorized"]);
    }
    const absolute = `http://ann:open%20sesame@shop.localhost:${owner.api.server.port}/`;
    const answer = await shop.visit(absolute).catch(() => null);
    expect(answer?.status ?? 400).toBeGreaterThanOrEqual(400);
    expect(origin.requests).toEqual([]);
  });

  test("that was changed or removed is so for the next request", async () => {
    expect(findErrorCode(await shop.visit("/", ANN))).toBe("passed");
    await shop.put("auth", { user: "ann", password: "open barley" });
    expect(findErrorCode(await shop.visit("/", ANN))).toBe("unauthorized");
    expect(findErrorCode(await shop.visit("/", basicAuthorization("ann", "open barley")))).toBe(
      "passed",
    );
    await shop.remove("auth");
    expect(findErrorCode(await shop.visit("/", ANN))).toBe("passed");
    // Without the gate, the header is for the local server.
    expect(findHeader(origin.requests.at(-1)!.headers, "authorization")).toBe(ANN.authorization);
  });

  test("stays valid for its users while others guess from many addresses", async () => {
    expect(findErrorCode(await shop.visit("/", ANN))).toBe("passed");
    const guesses = Array.from({ length: 200 }, (_, n) =>
      shop.visit("/", basicAuthorization("ann", `guess ${n}`)),
    );
    const rights = Array.from({ length: 200 }, () => shop.visit("/", ANN));
    expect(await readCodes(...rights)).toEqual(Array(200).fill("passed"));
    const refused = await Promise.all(guesses);
    expect(new Set(refused.map(findErrorCode))).toEqual(new Set(["unauthorized", "rate_limited"]));
    const limited = refused.find(({ status }) => status === 429)!;
    expect(Number(line(limited, "retry-after"))).toBeGreaterThan(0);
    expect(origin.requests).toHaveLength(201);
  });
});

describe("the headers between the edge and the object", () => {
  const FORGED = ["{}", "true", "pass", "00000000-0000-4000-8000-000000000000", '* {"code":"ok"}'];

  // Fast gates run in the object alone, so no such header is sent for them.
  beforeEach(() => shop.put("auth", PASSWORD));

  test("are not accepted from visitors: a forged verdict admits nothing", async () => {
    await policy(DENY);
    for (const value of FORGED) {
      for (const name of ["underpass-judged", "Underpass-Judged", "underpass_judged"]) {
        const forged = { [name]: value, "underpass-gates": "null" };
        const answers = [shop.visit("/", forged), shop.visit("/admin", { ...forged, ...ANN })];
        expect([value, ...(await readCodes(...answers))]).toEqual([
          value,
          "unauthorized",
          "forbidden",
        ]);
      }
    }
    for (const setting of ["policy", "auth"]) await shop.remove(setting);
    expect(
      findErrorCode(await shop.visit("/admin", { "underpass-judged": '* {"code":"forbidden"}' })),
    ).toBe("passed");
  });

  test("are not accepted from local servers, and never reach agents or visitors", async () => {
    origin.respond = () =>
      "HTTP/1.1 200 OK\r\nUnderpass-Gates: null\r\nunderpass-error: forbidden\r\ncontent-length: 0\r\n\r\n";
    await policy(DENY);
    for (const path of ["/", "/admin", "/", "/admin"]) {
      const { headers } = await shop.visit(path, { "underpass-judged": "x", ...ANN });
      const serviceHeaders = headers
        .map(([name]) => name.toLowerCase())
        .filter((name) => name.startsWith("underpass-") && name !== REQUEST_ID_HEADER);
      expect(serviceHeaders).toEqual(path === "/" ? [] : ["underpass-error"]);
    }
    for (const { headers } of origin.requests) {
      expect(headers.filter(([name]) => name.includes("judged"))).toEqual([]);
    }
  });

  test("leave responses unchanged, also those with a policy update", async () => {
    const packed = gzipSync("hello").toString("latin1");
    const lines = "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Encoding: gzip\r\n";
    const whole = `HTTP/1.1 206 Partial Content\r\n${lines}content-length: ${packed.length}\r\n\r\n${packed}`;
    const bare = (status: string) => `HTTP/1.1 ${status}\r\netag: "x"\r\n\r\n`;
    const head = "HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n";
    for (const [text, method] of [
      [whole, "GET"],
      [bare("204 No Content"), "GET"],
      [bare("304 Not Modified"), "GET"],
      [head, "HEAD"],
    ] as const) {
      await shop.remove("auth");
      origin.respond = () => text;
      const before = await shop.visit("/", {}, method);
      await shop.put("auth", PASSWORD);
      for (const round of ["update", "cached"]) {
        const after = await shop.visit("/", ANN, method);
        expect([round, after.startLine, withoutId(after), after.body]).toEqual([
          round,
          before.startLine,
          withoutId(before),
          before.body,
        ]);
      }
    }
  });

  test("leave requests unchanged: bodies, unusual methods, unusual targets", async () => {
    const body = "x".repeat(100_000);
    const host = `Host: shop.localhost:${owner.api.server.port}\r\nAuthorization: ${ANN.authorization}`;
    for (let round = 0; round < 2; round++) {
      for (const method of ["POST", "GET", "PURGE"]) {
        const head = `${method} /a%2fb//c?d=%zz HTTP/1.1\r\n${host}\r\nContent-Length: ${body.length}\r\n\r\n`;
        expect((await exchange(owner.api.server.port, head + body)).status).toBe(200);
        const received = origin.requests.at(-1)!;
        expect([received.method, received.target, received.body.length]).toEqual([
          method,
          "/a%2fb//c?d=%zz",
          body.length,
        ]);
        expect(findHeader(received.headers, "x-forwarded-for")).toBe("127.0.0.1");
      }
    }
  });
});

describe("a policy", () => {
  test("sets headers for the local server, which replace the visitor's", async () => {
    await policy({ kind: "header_set", name: "X-Team", value: "bl\u00fce" });
    await shop.visit("/", { "x-team": "red" });
    const values = origin.requests[0]!.headers.filter(([name]) => name === "x-team");
    expect(values.map(([, value]) => Buffer.from(value, "latin1").toString())).toEqual([
      "bl\u00fce",
    ]);
    expect(await shop.getListed()).toMatchObject({ policyActions: 1 });
  });

  test("counts requests of each address, whatever address a visitor claims", async () => {
    await policy({ kind: "rate_limit", requests_per_minute: 5, per_client_ip: true });
    const visits = Array.from({ length: 20 }, (_, n) =>
      shop.visit("/", {
        "x-forwarded-for": `192.0.2.${n}`,
        "cf-connecting-ip": `192.0.2.${n}`,
        x_real_ip: "::1",
      }),
    );
    const answers = await Promise.all(visits);
    // The minute may have ended in between.
    const passed = answers.filter((answer) => findErrorCode(answer) === "passed").length;
    expect([5, 10]).toContain(passed);
    expect(origin.requests).toHaveLength(passed);
    const refused = answers.find(({ status }) => status === 429)!;
    expect(line(refused, "ratelimit-limit")).toBe("5");
    expect(line(refused, "ratelimit-reset")).toBe(line(refused, "retry-after"));
  });

  test("that changes under load applies to every request that starts after the response", async () => {
    // With a password the edge authorizes too, by the gates that it caches.
    await shop.put("auth", PASSWORD);
    let isDenied = false;
    /** Between the call and its response, both policies are possible. */
    let isChanging = false;
    let isStopped = false;
    const wrong: string[] = [];
    let authorized = 0;
    const VISITORS = 16;
    async function hammer(): Promise<void> {
      while (!isStopped) {
        const [expected, wasChanging] = [isDenied ? "forbidden" : "passed", isChanging];
        const changes = changed;
        const code = findErrorCode(await shop.visit("/admin", ANN));
        if (wasChanging || isChanging || changes !== changed) continue;
        authorized += 1;
        if (code !== expected) wrong.push(`${code} instead of ${expected}`);
      }
    }
    let changed = 0;
    const visitors = Array.from({ length: VISITORS }, hammer);
    for (let flips = 0; flips < 12; flips++) {
      isChanging = true;
      const { status } = await (isDenied ? policy() : policy(DENY));
      expect(status).toBe(200);
      isDenied = !isDenied;
      changed += 1;
      isChanging = false;
      const authorizedBefore = authorized;
      await waitUntil(() => Promise.resolve(authorized > authorizedBefore + VISITORS));
    }
    isStopped = true;
    await Promise.all(visitors);
    expect(wrong).toEqual([]);
    expect(authorized).toBeGreaterThan(12 * VISITORS);
  });
});

describe("maintenance", () => {
  test("is a page with the owner's message as plain text, and JSON for programs", async () => {
    await shop.put("maintenance", { message: '<script>alert("x")</script> `back` at & noon' });
    const page = await shop.visit("/", HTML);
    expect([page.status, findErrorCode(page)]).toEqual([503, "maintenance"]);
    expect(Number(line(page, "retry-after"))).toBeGreaterThan(0);
    expect(page.body.toString()).not.toContain("<script");
    expect(page.body.toString()).toContain(
      "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; `back` at &amp; noon",
    );
    const json = await shop.visit("/");
    expect(JSON.parse(json.body.toString())).toMatchObject({
      error: "maintenance",
      message: '<script>alert("x")</script> `back` at & noon',
    });
    expect(line(json, "content-type")).toBe("application/json");
    await shop.remove("maintenance");
    expect(findErrorCode(await shop.visit("/"))).toBe("passed");
  });

  test("is listed at once, and no longer after the last agent has disconnected", async () => {
    const desk = await owner.expose("desk", origin.port);
    await desk.put("maintenance");
    expect(await desk.getListed()).toMatchObject({ maintenance: true });
    expect(findErrorCode(await desk.visit("/"))).toBe("maintenance");
    await desk.agent.close();
    await waitUntil(async () => findErrorCode(await desk.visit("/")) === "agent_offline");
    await waitUntil(async () => !(await desk.getListed()).maintenance);
  });
});

describe("a WebSocket", () => {
  test("passes the same gates as any request", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await once(server, "listening");
    const room = await owner.expose("room", (server.address() as { port: number }).port);
    const { port } = owner.api.server;
    async function open(path: string, headers: Record<string, string> = {}): Promise<number> {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`, {
        headers: { host: `room.localhost:${port}`, ...headers },
      });
      return new Promise((resolve) => {
        socket.on("open", () => (socket.close(), resolve(101)));
        socket.on(
          "unexpected-response",
          (_, answer) => (socket.terminate(), resolve(answer.statusCode!)),
        );
        socket.on("error", () => undefined);
      });
    }
    await room.put("auth", PASSWORD);
    await room.put("policy", { actions: [DENY, { kind: "rate_limit", requests_per_minute: 2 }] });
    for (const known of [false, true]) {
      expect([known, await open("/", basicAuthorization("ann", "wrong one"))]).toEqual([
        known,
        401,
      ]);
      expect([known, await open("/%61dmin", ANN)]).toEqual([known, 403]);
    }
    await room.put("policy", { actions: [DENY] });
    expect(await open("/", ANN)).toBe(101);
    await room.put("maintenance");
    expect(await open("/", ANN)).toBe(503);
    server.close();
  });
});
