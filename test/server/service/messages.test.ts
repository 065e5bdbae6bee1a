/**
 * Every message that a caller of the API reads is a sentence of this service's own: the errors in the source, and the
 * responses of every route to invalid requests. `MESSAGES_FILE=/tmp/messages.txt` writes all of them to a file.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ErrorBody } from "../../../protocol/errors.ts";
import { collectMessages } from "../../harness/formats/source-messages.ts";
import { startApi, type Caller, type Reply, type TestApi } from "../../harness/server/api.ts";
import {
  generateExamples,
  generateInvalidBodies,
  HOSTILE_STRINGS,
  type Schema,
} from "../../harness/server/invalid-requests.ts";
import { buildPath, readRoutes, type Route } from "../../harness/server/routes.ts";

interface DescribedRoute extends Route {
  parameters?: { name: string; in: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
}

/** Longer requests only repeat the messages of short ones. */
const REQUEST_MAX_CHARS = 2_000;
/** Adjacent bodies differ in one value only: every fourth one is enough for every kind of error. */
const BODIES_STEP = 4;
const CONCURRENT_REQUESTS = 20;

/** Messages of zod, Hono and the JSON parser. */
const LIBRARY_PHRASE =
  /Invalid input|\bexpected\b|, received|\bNaN\b|Too (small|big)|Invalid option|Unrecognized key|Malformed|Unexpected token|undefined|\[object/i;
const UNCLEAR_PHRASE =
  /whoever|somebody|nobody|anybody|everybody|\btold\b|\bhear[ds]?\b|\bkept\b|\bis over\b|\bfor good\b|no longer good|\bno such\b|\bis there\b|\banew\b|once more|by then|\bfault\b|e-mail|second factor/i;

/** A message is one sentence or several. */
function findSentenceProblem(text: string): string | null {
  if (!/^[A-Z…][^\n]*\.$/.test(text)) return "is not a sentence";
  return findPhraseProblem(text);
}

/** A fragment continues the name of a field or of a close code. */
function findFragmentProblem(text: string): string | null {
  if (!/^[a-z…][^\n]*[^.]$/.test(text)) return "is not a fragment in lower case without a period";
  return findPhraseProblem(text);
}

function findPhraseProblem(text: string): string | null {
  if (LIBRARY_PHRASE.test(text)) return "is a library's message";
  return UNCLEAR_PHRASE.test(text) ? "is not clear" : null;
}

/** The messages by their kind, for the file. */
const messagesByKind = {
  error: new Set<string>(),
  field: new Set<string>(),
  refusal: new Set<string>(),
};

afterAll(() => {
  const path = process.env["MESSAGES_FILE"];
  if (path === undefined) return;
  const sections = Object.entries(messagesByKind).map(
    ([kind, messages]) => `# ${kind}\n\n${[...messages].sort().join("\n")}\n`,
  );
  writeFileSync(path, sections.join("\n"));
});

describe("in the source", () => {
  const list = execFileSync("git", ["ls-files", "workers/*.ts"], { encoding: "utf8" });
  const files = list.trim().split("\n");

  test.each([
    ["errors are sentences", "ApiError", messagesByKind.error, findSentenceProblem],
    [
      "errors of fields continue the field's name",
      "invalidField",
      messagesByKind.field,
      findFragmentProblem,
    ],
    [
      "refusals continue the close code",
      "ConnectionRefusedError",
      messagesByKind.refusal,
      findFragmentProblem,
    ],
  ])("%s", (_, callee, kind, findProblem) => {
    const messages = collectMessages(files, callee);
    expect(messages.length).toBeGreaterThan(5);
    for (const { subject, text } of messages) kind.add(`${subject ?? "…"}: ${text}`);
    const problems = messages.flatMap(({ place, text }) => {
      const problem = findProblem(text);
      return problem === null ? [] : [`${place} ${problem}: ${text}`];
    });
    expect(problems).toEqual([]);
  });
});

describe("in responses to invalid requests", () => {
  let api: TestApi;
  let routes: DescribedRoute[];
  beforeAll(async () => {
    api = await startApi();
    routes = (await readRoutes(api)) as DescribedRoute[];
  });
  afterAll(() => api.stop());

  type Request = { method: string; address: string; body?: string };

  async function listProblems(by: Caller, requests: Request[]): Promise<Set<string>> {
    const problems = new Set<string>();
    for (let at = 0; at < requests.length; at += CONCURRENT_REQUESTS) {
      const batch = requests.slice(at, at + CONCURRENT_REQUESTS).map(async (request) => {
        const init = { headers: { "content-type": "application/json" }, body: request.body };
        const reply = await by.send<Partial<ErrorBody> | null>(
          request.method,
          request.address,
          request.body === undefined ? {} : init,
        );
        for (const problem of findReplyProblems(reply)) {
          problems.add(`${request.method} ${request.address.split("?")[0]} ${problem}`);
        }
      });
      await Promise.all(batch);
    }
    return problems;
  }

  function findReplyProblems({ status, body }: Reply<Partial<ErrorBody> | null>): string[] {
    if (status < 400 || body?.message === undefined) return [];
    const { error, message, fields = [] } = body;
    messagesByKind.error.add(`${error}: ${message}`);
    for (const field of fields) messagesByKind.field.add(`${field.path}: ${field.message}`);
    return [
      { text: message, problem: findSentenceProblem(message) },
      ...fields.map((field) => ({
        text: field.message,
        problem: findFragmentProblem(field.message),
      })),
    ].flatMap(({ text, problem }) => (problem === null ? [] : [`${problem}: ${text}`]));
  }

  test("to bodies", { timeout: 120_000 }, async () => {
    const problems: string[] = [];
    for (const route of routes) {
      const schema = route.requestBody?.content["application/json"]?.schema;
      if (!schema) continue;
      // A person for each route: some bodies are valid, and what they create must not disturb the next route.
      const person = await api.owner();
      const isOwn = route.path.startsWith("/orgs/");
      const address = buildPath(route, isOwn ? { "{id}": person.orgId } : undefined);
      const bodies = ["{", ...generateInvalidBodies(schema)].filter(
        (body, at) => body.length < REQUEST_MAX_CHARS && at % BODIES_STEP === 0,
      );
      const requests = bodies.map((body) => ({ method: route.method, address, body }));
      problems.push(...(await listProblems(person, requests)));
    }
    expect(problems).toEqual([]);
  });

  test("to parameters", { timeout: 120_000 }, async () => {
    const owner = await api.owner();
    const values = ["example", ...HOSTILE_STRINGS].filter((text) => text.length < 100);
    const requests = routes
      .filter(({ path }) => path !== "/auth/logout")
      .flatMap((route) => {
        const address = buildPath(route);
        const query = (route.parameters ?? []).filter((parameter) => parameter.in === "query");
        const valid = query.map(({ name, schema }) => [name, String(generateExamples(schema)[0])]);
        const queries = query.flatMap(({ name }) =>
          values.map((text) => ({ ...Object.fromEntries(valid), [name]: text.toWellFormed() })),
        );
        return [{}, ...queries].map((one) => ({
          method: route.method,
          address: `${address}?${new URLSearchParams(one).toString()}`,
        }));
      });
    const problems = await listProblems(owner, requests);
    for (const problem of await listProblems(api.anonymous, requests.slice(0, 200))) {
      problems.add(problem);
    }
    expect([...problems]).toEqual([]);
  });
});
