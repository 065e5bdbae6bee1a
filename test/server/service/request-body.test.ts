/** Bodies that are too large, too slow or not authorized: the caller receives the reason of the refusal. */
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DISCARDED_BODY_MAX_BYTES } from "../../../workers/api/request-body.ts";
import { startApi, type Person, type TestApi } from "../../harness/server/api.ts";
import { dial, MessageReader, type Answer } from "../../harness/tunnel/raw-http.ts";

const MIB = 1024 * 1024;
const TIMES = 10;

let api: TestApi;
let owner: Person;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
});
afterAll(() => api.stop());

const bearer = () => ({ authorization: `Bearer ${owner.accessToken}` });

const post = (lines: Record<string, string>, ...parts: Buffer[]) =>
  ask("POST", "/projects", lines, ...parts);

async function ask(
  method: string,
  path: string,
  lines: Record<string, string>,
  ...parts: Buffer[]
): Promise<Answer> {
  const socket = await dial(api.server.port);
  const reader = new MessageReader(socket);
  const head = { host: "127.0.0.1", "content-type": "application/json", ...lines };
  const text = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${path} HTTP/1.1\r\n${text.join("")}\r\n`);
  for (const part of parts) socket.write(part);
  try {
    return await reader.answer(method);
  } finally {
    socket.destroy();
  }
}

const sendWhole = (bytes: number, lines: Record<string, string>) =>
  post({ ...lines, "content-length": String(bytes) }, Buffer.alloc(bytes, "x"));

function sendInChunks(bytes: number, lines: Record<string, string>): Promise<Answer> {
  const size = MIB / 2;
  const chunk = Buffer.concat([
    Buffer.from(`${size.toString(16)}\r\n`),
    Buffer.alloc(size, "x"),
    Buffer.from("\r\n"),
  ]);
  const chunks = Array.from({ length: bytes / size }, () => chunk);
  return post({ ...lines, "transfer-encoding": "chunked" }, ...chunks, Buffer.from("0\r\n\r\n"));
}

/** The body in chunks of one byte. */
const toSmallChunks = (body: Buffer): Buffer =>
  Buffer.from([...body.toString("latin1")].map((byte) => `1\r\n${byte}\r\n`).join(""), "latin1");

/** The peak memory of the server's process. */
async function readPeakBytes(): Promise<number> {
  const pid = await api.server.getPid("workerd");
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)![1]) * 1024;
}

const readError = ({ status, body }: Answer) => [
  status,
  (JSON.parse(body.toString()) as { error: string }).error,
];

test("a large body with many values, or in many levels, is refused before it is parsed", async () => {
  const names = Array.from({ length: 70_000 }, (_, i) => `"${i}":1`);
  const bodies = ["[".repeat(500_000), `{${names.join(",")}}`, `{"name":"${"x".repeat(900_000)}"}`];
  const messages = bodies.map(async (text) => {
    const answer = await post(
      { ...bearer(), "content-length": `${text.length}` },
      Buffer.from(text),
    );
    const { message } = JSON.parse(answer.body.toString()) as { message: string };
    return [answer.status, message.includes("levels")];
  });
  expect(await Promise.all(messages)).toEqual([
    [400, true],
    [400, true],
    [400, false],
  ]);
});

test.each([
  ["with a length", sendWhole],
  ["in chunks", sendInChunks],
])("a body of 6 MiB %s is refused with a response, each time", async (_, send) => {
  for (let time = 0; time < TIMES; time += 1) {
    expect(readError(await send(6 * MIB, bearer()))).toEqual([413, "payload_too_large"]);
  }
});

test.each([
  ["with a length", sendWhole],
  ["in chunks", sendInChunks],
])(
  "a body %s of an unauthenticated caller is refused with a response, each time",
  async (_, send) => {
    for (let time = 0; time < TIMES; time += 1) {
      expect(readError(await send(MIB, {}))).toEqual([401, "unauthorized"]);
    }
  },
);

test("a chunked body is read like any other", async () => {
  const body = Buffer.from(JSON.stringify({ slug: "in-chunks", name: "In chunks" }));
  const parts = [body.subarray(0, 9), body.subarray(9)].map((part) =>
    Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]),
  );
  const lines = { ...bearer(), "transfer-encoding": "chunked" };
  expect((await post(lines, ...parts, Buffer.from("0\r\n\r\n"))).status).toBe(201);
});

test("an endless body is read up to a limit, and the server keeps running", async () => {
  const bytes = 4 * DISCARDED_BODY_MAX_BYTES;
  const outcome = await sendWhole(bytes, bearer()).then(readError, () => "cut off");
  expect([[413, "payload_too_large"], "cut off"]).toContainEqual(outcome);
  expect((await api.anonymous.get("/health")).status).toBe(200);
});

test.runIf(process.platform === "linux")(
  "a body in chunks of one byte needs little memory",
  async () => {
    const peakBefore = await readPeakBytes();
    const chunks = toSmallChunks(Buffer.alloc(MIB / 16, "x"));
    const lines = { "transfer-encoding": "chunked" };
    expect(readError(await post(lines, chunks, Buffer.from("0\r\n\r\n")))).toEqual([
      401,
      "unauthorized",
    ]);
    expect((await readPeakBytes()) - peakBefore).toBeLessThan(100 * MIB);
  },
);

test("a body of a GET is read and ignored", async () => {
  const chunks = Buffer.concat([toSmallChunks(Buffer.from("{}")), Buffer.from("0\r\n\r\n")]);
  const lines = { ...bearer(), "transfer-encoding": "chunked" };
  expect((await ask("GET", "/projects", lines, chunks)).status).toBe(200);
});

test("a body that is not UTF-8 is refused, and not stored with other characters", async () => {
  const create = async (encoding: BufferEncoding) => {
    const body = Buffer.from('{"slug":"cafe","name":"Café"}', encoding);
    const answer = await post({ ...bearer(), "content-length": `${body.length}` }, body);
    const { name, message } = JSON.parse(answer.body.toString()) as Record<string, string>;
    return [answer.status, name ?? message];
  };
  expect(await create("latin1")).toEqual([400, "The request body is not valid UTF-8."]);
  expect(await create("utf8")).toEqual([201, "Café"]);
});

test.each([
  ["POST", "/auth/verify-email-otp", "invalid_code"],
  ["PUT", "/orgs/{id}/budget", "invalid_budget"],
])(
  "%s %s has one code for every invalid body, also for one that can't be read",
  async (method, path, code) => {
    for (const body of ["", "{bad", "{}", "[]", "null", Uint8Array.of(0xff)]) {
      const init = { headers: { "content-type": "application/json" }, body };
      const reply = await owner.send(method, path.replace("{id}", owner.orgId), init);
      const header = reply.headers.get("underpass-error");
      expect([body, reply.status, reply.body, header]).toEqual([
        body,
        400,
        expect.objectContaining({ error: code, fields: expect.any(Array) }),
        code,
      ]);
    }
  },
);
