/** What is sent to the API and is too much, or for nobody: whoever sends it reads why it was refused. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { UNREAD_BODY_MAX_BYTES } from "../../protocol/limits/edge.ts";
import { startApi, type Person, type TestApi } from "../harness/api.ts";
import { dial, MessageReader, type Answer } from "../harness/raw-http.ts";

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

async function post(lines: Record<string, string>, ...parts: Buffer[]): Promise<Answer> {
  const socket = await dial(api.server.port);
  const reader = new MessageReader(socket);
  const head = { host: "127.0.0.1", "content-type": "application/json", ...lines };
  const text = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /projects HTTP/1.1\r\n${text.join("")}\r\n`);
  for (const part of parts) socket.write(part);
  try {
    return await reader.answer("POST");
  } finally {
    socket.destroy();
  }
}

const whole = (bytes: number, lines: Record<string, string>) =>
  post({ ...lines, "content-length": String(bytes) }, Buffer.alloc(bytes, "x"));

function inChunks(bytes: number, lines: Record<string, string>): Promise<Answer> {
  const size = MIB / 2;
  const chunk = Buffer.concat([
    Buffer.from(`${size.toString(16)}\r\n`),
    Buffer.alloc(size, "x"),
    Buffer.from("\r\n"),
  ]);
  const chunks = Array.from({ length: bytes / size }, () => chunk);
  return post({ ...lines, "transfer-encoding": "chunked" }, ...chunks, Buffer.from("0\r\n\r\n"));
}

const told = ({ status, body }: Answer) => [
  status,
  (JSON.parse(body.toString()) as { error: string }).error,
];

test.each([
  ["by its length", whole],
  ["on the way, since it says no length", inChunks],
])("a body of 6 MiB that is refused %s is answered, each time", async (_, send) => {
  for (let time = 0; time < TIMES; time += 1) {
    expect(told(await send(6 * MIB, bearer()))).toEqual([413, "payload_too_large"]);
  }
});

test.each([
  ["with a length", whole],
  ["in chunks", inChunks],
])("so is a body %s of whoever may not send any", async (_, send) => {
  for (let time = 0; time < TIMES; time += 1) {
    expect(told(await send(MIB, {}))).toEqual([401, "unauthorized"]);
  }
});

test("a body in chunks is read as any other", async () => {
  const body = Buffer.from(JSON.stringify({ slug: "in-chunks", name: "In chunks" }));
  const parts = [body.subarray(0, 9), body.subarray(9)].map((part) =>
    Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")]),
  );
  const lines = { ...bearer(), "transfer-encoding": "chunked" };
  expect((await post(lines, ...parts, Buffer.from("0\r\n\r\n"))).status).toBe(201);
});

test("a body without end is read no further than a bound, and the server goes on", async () => {
  const bytes = 4 * UNREAD_BODY_MAX_BYTES;
  const sent = await whole(bytes, bearer()).then(told, () => "cut off");
  expect([[413, "payload_too_large"], "cut off"]).toContainEqual(sent);
  expect((await api.stranger.get("/health")).status).toBe(200);
});
