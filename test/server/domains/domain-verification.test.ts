/** Only a TXT record verifies a claim: the result of every answer that a resolver can give. */
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
  api = await startApi();
  resolver = await startResolver(api.fakePorts.resolver);
  owner = await api.owner();
});
afterAll(async () => {
  await resolver[Symbol.asyncDispose]();
  await api.stop();
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
    resolver.override = (question, response) =>
      send(response, message(question, { records: [encodeTxt(name, pieces)] }));
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
    ["the token with a suffix", (token) => `${token}x`],
    ["the token with a prefix", (token) => `x${token}`],
    ["a part of the token", (token) => token.slice(0, -1)],
    ["the token in lower case", (token) => token.toLowerCase()],
    ["the token in quotes", (token) => `"${token}"`],
    ["the token of another claim", () => "A".repeat(43)],
    ["300 characters", () => "x".repeat(300)],
    ["an empty text", () => ""],
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
    resolver.override = (question, response) => {
      const records = [encodeTxt("_svc-challenge.evil.example", [verificationToken])];
      send(response, message(question, { records }));
    };
    expect((await verify()).status).toBe(400);
  });
});

// A resolver that does not answer in time: test/unit/workers/integrations/dns-lookup.test.ts.
describe("the response is unavailable, and the claim unchanged, when the resolver", () => {
  /** Each answer contains the correct record, so that its defect alone prevents the verification. */
  type Answer = (question: Question, response: ServerResponse, record: Buffer) => unknown;

  test.each<[string, Answer]>([
    ["fails", (question, response) => send(response, message(question, { rcode: 2 }))],
    [
      "fails, although its answer has the record",
      (question, response, record) =>
        send(response, message(question, { rcode: 2, records: [record] })),
    ],
    [
      "answers another question",
      (question, response, record) => {
        const otherQuestion = encodeQuestion("_svc-challenge.evil.example");
        send(response, message(question, { question: otherQuestion, records: [record] }));
      },
    ],
    [
      "answers with another id",
      (question, response, record) =>
        send(response, message(question, { id: 1, records: [record] })),
    ],
    [
      "truncates its answer",
      (question, response, record) =>
        send(response, message(question, { truncated: true, records: [record] })),
    ],
    [
      "answers with half a message",
      (question, response, record) => {
        const whole = message(question, { records: [record] });
        send(response, whole.subarray(0, whole.length - 5));
      },
    ],
    [
      "answers with more bytes than a DNS message can have",
      (question, response, record) => {
        const whole = message(question, { records: [record] });
        send(response, Buffer.concat([whole, Buffer.alloc(65_536)]));
      },
    ],
    [
      "answers with another content type",
      (question, response, record) =>
        response
          .writeHead(200, { "content-type": "application/dns-json" })
          .end(message(question, { records: [record] })),
    ],
    [
      "answers with an HTTP error",
      (question, response, record) =>
        response
          .writeHead(500, { "content-type": "application/dns-message" })
          .end(message(question, { records: [record] })),
    ],
    [
      "redirects",
      (_, response) => response.writeHead(307, { location: resolver.url + "/x" }).end(),
    ],
    ["closes the connection", (_, response) => response.destroy()],
  ])("%s", async (_, answer) => {
    const { id, verify, name, verificationToken } = await claim();
    const before = resolver.questions.length;
    resolver.override = (question, response) => {
      answer(question, response, encodeTxt(name, [verificationToken]));
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

test("an organization can have at most a thousand verified domains", async () => {
  const person = await api.owner();
  await api.sql(
    `insert into domains (org_id, domain, verification_token, verified_at, next_proof_check_at)
     select $1, 'verified-' || n || '.example', 't', now(), now() + interval '1 day' from generate_series(1, 1000) n`,
    [person.orgId],
  );
  const { body } = await person.post<CustomDomain>("/domains", { domain: "one-more.example" });
  resolver.records["_svc-challenge.one-more.example"] = [body.verificationToken];
  const verify = () => person.post<Failure>(`/domains/${body.id}/verify`);
  expect(await verify()).toMatchObject({
    status: 409,
    body: {
      error: "conflict",
      message: "An organization can have at most 1000 verified domains at a time.",
    },
  });
  await api.sql("delete from domains where domain = 'verified-1.example'");
  expect((await verify()).status).toBe(200);
});

test("an organization with too many look-ups is rate limited, and no other", async () => {
  const [eager, other] = [await api.owner(), await api.owner()];
  const createClaim = async (by: Person, domain: string) =>
    (await by.post<CustomDomain>("/domains", { domain })).body.id;
  const id = await createClaim(eager, "eager.example");
  const before = resolver.questions.length;
  const attempts = Array.from({ length: TXT_LOOKUP_BURST + 50 }, () =>
    eager.post<Failure>(`/domains/${id}/verify`),
  );
  const replies = await Promise.all(attempts);
  const limited = replies.filter(({ status }) => status === 429);
  expect(limited[0]?.body.error).toBe("rate_limited");
  expect(Number(limited[0]?.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(resolver.questions.length - before).toBe(replies.length - limited.length);
  const otherId = await createClaim(other, "other.example");
  expect((await other.post(`/domains/${otherId}/verify`)).status).toBe(400);
});

test("a verification is unavailable while the resolver is unreachable", async () => {
  const { verify } = await claim();
  await resolver.stop();
  try {
    expect(await verify()).toMatchObject({ status: 503, body: { error: "unavailable" } });
  } finally {
    await resolver.start();
  }
});
