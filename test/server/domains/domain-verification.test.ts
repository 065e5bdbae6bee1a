/** A claim is proved by a TXT record alone: what a resolver and the DNS behind it can answer, and what comes of it. */
import type { ServerResponse } from "node:http";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { TXT_LOOKUP_BURST } from "../../../workers/limits.ts";
import type { CustomDomain } from "../../../protocol/schemas/domains/domains.ts";
import { startApi, waitUntil, type Person, type TestApi } from "../../harness/server/api.ts";
import {
  message,
  encodeQuestion,
  send,
  startResolver,
  encodeTxt,
  TYPE,
  type Question,
  type Resolver,
} from "../../harness/fakes/resolver.ts";

let resolver: Resolver;
let api: TestApi;
let owner: Person;
beforeAll(async () => {
  resolver = await startResolver();
  api = await startApi({ env: { DNS_OVER_HTTPS_URL: resolver.url } });
  owner = await api.owner();
});
afterAll(async () => {
  await api.stop();
  await resolver[Symbol.asyncDispose]();
});
afterEach(() => (resolver.override = undefined));

interface Failure {
  error: string;
  message: string;
}

let names = 0;
async function claim() {
  const domain = `proof-${(names += 1)}.example`;
  const { body } = await owner.post<CustomDomain>("/domains", { domain });
  const name = `_svc-challenge.${domain}`;
  return {
    ...body,
    name,
    publish: (...texts: string[]) => (resolver.records[name] = texts),
    verify: () => owner.post<CustomDomain & Failure>(`/domains/${body.id}/verify`),
  };
}

describe("a claim is verified by", () => {
  test("a record at _svc-challenge, below the domain", async () => {
    const { verify, publish, name, verificationToken } = await claim();
    publish(verificationToken);
    expect(await verify()).toMatchObject({ status: 200, body: { verified: true } });
    expect(resolver.questions.at(-1)).toMatchObject({ id: 0, name, type: TYPE.TXT });
  });

  test("a record that was published after the first attempt", async () => {
    const { verify, publish, verificationToken } = await claim();
    expect((await verify()).status).toBe(400);
    publish(verificationToken);
    expect((await verify()).status).toBe(200);
  });

  test("one of several records", async () => {
    const { verify, publish, verificationToken } = await claim();
    publish("v=spf1 -all", verificationToken, "");
    expect((await verify()).status).toBe(200);
  });

  test("a record in several pieces", async () => {
    const { verify, name, verificationToken } = await claim();
    const pieces = [verificationToken.slice(0, 20), verificationToken.slice(20)];
    resolver.override = (asked, response) =>
      send(response, message(asked, { records: [encodeTxt(name, pieces)] }));
    expect((await verify()).status).toBe(200);
  });

  test("a record behind CNAME records", async () => {
    const { verify, publish, verificationToken } = await claim();
    publish("CNAME proofs.example");
    resolver.records["proofs.example"] = ["CNAME proofs.elsewhere.example"];
    resolver.records["proofs.elsewhere.example"] = [verificationToken];
    expect((await verify()).status).toBe(200);
  });
});

describe("a claim is not verified by", () => {
  test("a name that does not exist: the message says what to publish, and where", async () => {
    const { verify, name, verificationToken } = await claim();
    const { status, body } = await verify();
    expect([status, body.error]).toEqual([400, "verification_failed"]);
    expect(body.message).toContain(name);
    expect(body.message).toContain(verificationToken);
    expect(body.message).toContain("There is no TXT record");
  });

  test.each<[string, (token: string) => string]>([
    ["the token with something behind it", (token) => `${token}x`],
    ["the token with something before it", (token) => `x${token}`],
    ["a part of the token", (token) => token.slice(0, -1)],
    ["the token in other capitals", (token) => token.toLowerCase()],
    ["the token in quotes", (token) => `"${token}"`],
    ["the token of somebody else", () => "A".repeat(43)],
    ["300 characters", () => "x".repeat(300)],
    ["nothing", () => ""],
  ])("%s", async (_, wrong) => {
    const { verify, publish, verificationToken } = await claim();
    publish(wrong(verificationToken));
    const { status, body } = await verify();
    expect([status, body.error]).toEqual([400, "verification_failed"]);
    expect(body.message).toContain("No TXT record at");
  });

  test("the token at the domain itself, or at a name that looks alike", async () => {
    const { verify, domain, verificationToken } = await claim();
    for (const name of [domain, `_svc-challenge-x.${domain}`, `svc-challenge.${domain}`]) {
      resolver.records[name] = [verificationToken];
    }
    expect((await verify()).status).toBe(400);
  });

  test("a record of another name in the answer", async () => {
    const { verify, verificationToken } = await claim();
    resolver.override = (asked, response) => {
      const records = [encodeTxt("_svc-challenge.evil.example", [verificationToken])];
      send(response, message(asked, { records }));
    };
    expect((await verify()).status).toBe(400);
  });
});

describe("the response is unavailable, and the claim unchanged, when the resolver", () => {
  /** With the right record in it, so that nothing but the fault stands in the way. */
  type Answer = (asked: Question, response: ServerResponse, right: Buffer) => unknown;

  test.each<[string, Answer]>([
    ["fails", (asked, response) => send(response, message(asked, { rcode: 2 }))],
    [
      "fails and answers nevertheless",
      (asked, response, right) => send(response, message(asked, { rcode: 2, records: [right] })),
    ],
    [
      "answers another question",
      (asked, response, right) => {
        const question = encodeQuestion("_svc-challenge.evil.example");
        send(response, message(asked, { question, records: [right] }));
      },
    ],
    [
      "answers with another id",
      (asked, response, right) => send(response, message(asked, { id: 1, records: [right] })),
    ],
    [
      "cuts its answer",
      (asked, response, right) =>
        send(response, message(asked, { truncated: true, records: [right] })),
    ],
    [
      "answers with half a message",
      (asked, response, right) => {
        const whole = message(asked, { records: [right] });
        send(response, whole.subarray(0, whole.length - 5));
      },
    ],
    [
      "answers with more than a message can have",
      (asked, response, right) => {
        const whole = message(asked, { records: [right] });
        send(response, Buffer.concat([whole, Buffer.alloc(65_536)]));
      },
    ],
    [
      "answers with something else",
      (asked, response, right) =>
        response
          .writeHead(200, { "content-type": "application/dns-json" })
          .end(message(asked, { records: [right] })),
    ],
    [
      "answers with an error",
      (asked, response, right) =>
        response
          .writeHead(500, { "content-type": "application/dns-message" })
          .end(message(asked, { records: [right] })),
    ],
    [
      "sends elsewhere",
      (_, response) => response.writeHead(307, { location: resolver.url + "/x" }).end(),
    ],
    ["hangs up", (_, response) => response.destroy()],
    ["never answers", () => undefined],
    [
      "never ends its answer",
      (_, response) =>
        response.writeHead(200, { "content-type": "application/dns-message" }).write("x"),
    ],
  ])("%s", async (_, instead) => {
    const { id, verify, name, verificationToken } = await claim();
    const before = resolver.questions.length;
    resolver.override = (asked, response) => {
      instead(asked, response, encodeTxt(name, [verificationToken]));
    };
    const { status, body } = await verify();
    expect([status, body.error]).toEqual([503, "unavailable"]);
    expect(body.message).toContain(name);
    expect(resolver.questions).toHaveLength(before + 1);
    const rows = await api.sql("select verified_at from domains where id = $1", [id]);
    expect(rows).toEqual([{ verified_at: null }]);
    await waitUntil(() => Promise.resolve(api.server.output.includes(`"name":"${name}"`)));
  });
});

test("an organization with too many look-ups is rate limited, and no other", async () => {
  const [eager, other] = [await api.owner(), await api.owner()];
  const claimed = async (by: Person, domain: string) =>
    (await by.post<CustomDomain>("/domains", { domain })).body.id;
  const id = await claimed(eager, "eager.example");
  const before = resolver.questions.length;
  const tries = Array.from({ length: TXT_LOOKUP_BURST + 50 }, () =>
    eager.post<Failure>(`/domains/${id}/verify`),
  );
  const replies = await Promise.all(tries);
  const limited = replies.filter(({ status }) => status === 429);
  expect(limited[0]?.body.error).toBe("rate_limited");
  expect(Number(limited[0]?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(resolver.questions.length - before).toBe(replies.length - limited.length);
  const otherId = await claimed(other, "other.example");
  expect((await other.post(`/domains/${otherId}/verify`)).status).toBe(400);
});

test("the resolver does not listen", async () => {
  await using lonely = await startApi({ env: { DNS_OVER_HTTPS_URL: "http://127.0.0.1:1/" } });
  const person = await lonely.owner();
  const { body } = await person.post<CustomDomain>("/domains", { domain: "alone.example" });
  const reply = await person.post<Failure>(`/domains/${body.id}/verify`);
  expect(reply).toMatchObject({ status: 503, body: { error: "unavailable" } });
});
