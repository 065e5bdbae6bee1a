/** Deliveries from a vendor to a local server, by the command that people run; and what survives what. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { DeliveryPage, Receiver, ReceiverState } from "../../../protocol/schemas/webhooks.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import { runAgent, type RunningAgent } from "../../harness/tunnel/agent.ts";
import { mintToken, startApi, waitUntil, type Person, type TestApi } from "../../harness/server/api.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { startHookServer, type HookServer } from "../../harness/fakes/hook-server.ts";
import { canOpenTerminals, typeCommand } from "../../harness/terminal.ts";
import { deliver, createReceiver } from "../../harness/fakes/vendor.ts";

const PATIENCE_MS = 60_000;
/** Of the tests that wait for several things, one after the other. */
const LONG_TEST_MS = 240_000;

let api: TestApi;
let owner: Person;
let token: Buffer;
beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
});
afterAll(() => api.stop());

const forwarding = (receiver: string, hooks: HookServer, ...more: string[]) =>
  runAgent(
    [
      ...["webhooks", receiver, "--forward", `http://localhost:${hooks.port}/hook?of=shop`],
      ...["--server", api.server.url, "--token-file", "TOKEN", "--json", ...more],
    ],
    { token },
  );

const bodiesOf = ({ received }: HookServer) => received.map(({ body }) => body.toString());
const acknowledgedOf = async ({ id }: Receiver) =>
  (await owner.get<ReceiverState>(`/webhook-receivers/${id}`)).body.acknowledged;
const deliveriesOf = ({ stdout }: RunningAgent) =>
  stdout
    .split("\n")
    .filter((line) => line.includes('"delivery"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const accepted = async (receiver: Receiver, id: string) => {
  const { status } = await deliver(api.server, receiver, { id, body: id });
  if (status !== 200) throw new Error(`${id}: ${status}`);
};

describe("underpass webhooks", () => {
  test("brings each delivery with its own header lines and bytes, and tells of it", async () => {
    await using hooks = await startHookServer();
    const receiver = await createReceiver(owner, "code_host", "bytes");
    await using agent = await forwarding("bytes", hooks);
    expect(await agent.event("ready")).toEqual({
      event: "ready",
      receiverId: receiver.id,
      url: receiver.url,
      local: `http://localhost:${hooks.port}/hook?of=shop`,
    });
    const body = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 13) % 256));
    const headers = { "content-type": "application/x-vendor", "x-github-event": "push" };
    await deliver(api.server, receiver, { body, id: "g-1", headers });
    const { durationMs, receivedAt, ...told } = await agent.event("delivery");
    expect(told).toEqual({
      event: "delivery",
      id: "g-1",
      outcome: "delivered",
      attempt: 1,
      status: 200,
    });
    expect([typeof durationMs, typeof receivedAt]).toEqual(["number", "string"]);
    const [hooked] = hooks.received;
    expect([hooked!.method, hooked!.url]).toEqual(["POST", "/hook?of=shop"]);
    expect(hooked!.body.equals(body)).toBe(true);
    expect(hooked!.headers).toMatchObject({
      ...headers,
      host: `localhost:${hooks.port}`,
      "content-length": String(body.length),
      "x-github-delivery": "g-1",
      "x-hub-signature-256": expect.stringMatching(/^sha256=[0-9a-f]{64}$/),
    });
    await waitUntil(async () => (await acknowledgedOf(receiver)) === "1", PATIENCE_MS);
    agent.child.kill("SIGINT");
    expect(await agent.exit).toBe(0);
  });

  test(
    "brings what came while it was closed, in order, and nothing twice",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "closed");
      for (const id of ["c-1", "c-2", "c-3"]) await accepted(receiver, id);
      {
        await using agent = await forwarding(receiver.id, hooks);
        await waitUntil(() => Promise.resolve(hooks.received.length === 3), PATIENCE_MS);
        agent.child.kill("SIGTERM");
        expect(await agent.exit).toBe(0);
      }
      expect(await acknowledgedOf(receiver)).toBe("3");
      for (const id of ["c-4", "c-5"]) await accepted(receiver, id);
      await using agent = await forwarding(receiver.id, hooks);
      await waitUntil(() => Promise.resolve(hooks.received.length >= 5), PATIENCE_MS);
      await accepted(receiver, "c-6");
      await waitUntil(() => Promise.resolve(hooks.received.length >= 6), PATIENCE_MS);
      expect(bodiesOf(hooks)).toEqual(["c-1", "c-2", "c-3", "c-4", "c-5", "c-6"]);
      expect(agent.stderr).toBe("");
    },
    LONG_TEST_MS,
  );

  test(
    "that dies in the middle goes on where it was: nothing is left out, nothing changes places",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "dies");
      const ids = Array.from({ length: 60 }, (_, n) => `d-${n}`);
      for (const id of ids) await accepted(receiver, id);
      for (const deaths of [20, 40]) {
        await using agent = await forwarding("dies", hooks);
        await waitUntil(() => Promise.resolve(hooks.received.length >= deaths), PATIENCE_MS);
        agent.child.kill("SIGKILL");
        await agent.exit;
      }
      await using agent = await forwarding("dies", hooks);
      await waitUntil(() => Promise.resolve(bodiesOf(hooks).includes("d-59")), PATIENCE_MS);
      agent.child.kill("SIGINT");
      await agent.exit;
      const bodies = bodiesOf(hooks);
      expect([...new Set(bodies)]).toEqual(ids);
      // Whoever died could not say what it had just done: two deliveries each time, at the most.
      expect(bodies.length).toBeLessThanOrEqual(ids.length + 4);
    },
    LONG_TEST_MS,
  );

  test(
    "waits for a local server that does not listen, and keeps the order",
    async () => {
      await using hooks = await startHookServer();
      await hooks.close();
      const receiver = await createReceiver(owner, undefined, "waits");
      await using agent = await forwarding("waits", hooks);
      await agent.event("ready");
      for (const id of ["w-1", "w-2"]) await accepted(receiver, id);
      await waitUntil(() => Promise.resolve(deliveriesOf(agent).length >= 3), PATIENCE_MS);
      expect(deliveriesOf(agent)[0]).toMatchObject({
        id: "w-1",
        outcome: "retrying",
        status: null,
        problem: "nothing listens there",
      });
      await hooks.listen();
      await waitUntil(() => Promise.resolve(hooks.received.length === 2), PATIENCE_MS);
      expect(bodiesOf(hooks)).toEqual(["w-1", "w-2"]);
    },
    LONG_TEST_MS,
  );

  test(
    "tries five times where it is refused, says that it puts a delivery aside, and goes on",
    async () => {
      await using hooks = await startHookServer();
      hooks.respond = ({ body }) => (body.toString() === "poison" ? 500 : 204);
      const receiver = await createReceiver(owner, undefined, "refused");
      await accepted(receiver, "poison");
      await accepted(receiver, "fine");
      await using agent = await forwarding("refused", hooks);
      await waitUntil(() => Promise.resolve(bodiesOf(hooks).includes("fine")), PATIENCE_MS);
      await waitUntil(() => Promise.resolve(deliveriesOf(agent).length === 6), PATIENCE_MS);
      expect(bodiesOf(hooks)).toEqual([...Array<string>(5).fill("poison"), "fine"]);
      expect(deliveriesOf(agent).map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
        ["retrying", 1],
        ["retrying", 2],
        ["retrying", 3],
        ["retrying", 4],
        ["put_aside", 5],
        ["delivered", 1],
      ]);
      await waitUntil(async () => (await acknowledgedOf(receiver)) === "2", PATIENCE_MS);
    },
    LONG_TEST_MS,
  );

  test(
    "starts earlier with --since, and takes back nothing that was acknowledged",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "since");
      for (const id of ["s-1", "s-2"]) await accepted(receiver, id);
      await owner.post(`/webhook-receivers/${receiver.id}/ack`, { cursor: "2" });
      {
        await using agent = await forwarding("since", hooks, "--since", "all");
        await waitUntil(() => Promise.resolve(hooks.received.length === 2), PATIENCE_MS);
        agent.child.kill("SIGINT");
        await agent.exit;
      }
      expect(bodiesOf(hooks)).toEqual(["s-1", "s-2"]);
      expect(await acknowledgedOf(receiver)).toBe("2");
      await using agent = await forwarding("since", hooks, "--since", "1h");
      await waitUntil(() => Promise.resolve(hooks.received.length === 4), PATIENCE_MS);
      expect(agent.stderr).toBe("");
    },
    LONG_TEST_MS,
  );

  test.skipIf(!canOpenTerminals())(
    "shows a person where deliveries go, each of them, and what became of it",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "screen");
      const home = await createTemporaryDir();
      await writeFile(join(home, "token"), token);
      const command = join(ROOT, "dist/agent/underpass.js");
      const options = `--forward ${hooks.port}/hook --server ${api.server.url} --token-file token`;
      await using typed = typeCommand(`${process.execPath} ${command} webhooks screen ${options}`, {
        cwd: home,
        env: { HOME: home },
        atTerminal: true,
      });
      await typed.waitForOutput(/State +online/, PATIENCE_MS);
      await typed.waitForOutput(new RegExp(`hooks/${receiver.id} -> http://localhost:${hooks.port}/hook`));
      await accepted(receiver, "evt_shown");
      await typed.waitForOutput(/Delivered +1\s+200 evt_shown \d+ ms/, PATIENCE_MS);
      expect(await typed.interrupt()).toBe(0);
      await rm(home, { recursive: true });
    },
    LONG_TEST_MS,
  );

  test(
    "ends with 1 where it is refused for good, and says why",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "ends");
      const outcomeOf = async (agent: RunningAgent) => [
        await agent.exit,
        (await agent.event("rejected")).reason,
      ];
      await using unknown = await forwarding("nobody's", hooks);
      expect(await outcomeOf(unknown)).toEqual([1, "not_found"]);
      const stranger = await mintToken(await api.owner());
      const strangersToken = Buffer.from(stranger.wireBytes, "base64");
      await using elses = await runAgent(
        ["webhooks", receiver.id, "--forward", "1", "--json"].concat([
          "--server",
          api.server.url,
          "--token-file",
          "TOKEN",
        ]),
        { token: strangersToken },
      );
      expect(await outcomeOf(elses)).toEqual([1, "not_found"]);
      await using deleted = await forwarding("ends", hooks);
      await deleted.event("ready");
      await owner.delete(`/webhook-receivers/${receiver.id}`);
      expect(await outcomeOf(deleted)).toEqual([1, "not_found"]);
    },
    LONG_TEST_MS,
  );

  test(
    "ends with 2 when it is called wrongly",
    async () => {
      await using hooks = await startHookServer();
      await createReceiver(owner, "payments", "twins");
      await createReceiver(owner, "chat_app", "twins");
      for (const [args, complaint] of [
        [["webhooks"], /say which receiver/],
        [["webhooks", "shop"], /say where to/],
        [["webhooks", "shop", "--forward", "ftp://x"], /ftp:\/\/x is no port/],
        [["webhooks", "shop", "--forward", "1", "--since", "once"], /--since takes/],
        [["webhooks", "twins", "--forward", String(hooks.port)], /2 receivers are called twins/],
      ] as const) {
        const where = ["--server", api.server.url, "--token-file", "TOKEN"];
        await using agent = await runAgent([...args, ...where], { token });
        expect([args, await agent.exit]).toEqual([args, 2]);
        expect(agent.stderr).toMatch(complaint);
      }
    },
    LONG_TEST_MS,
  );
});

describe("a server that dies", () => {
  test(
    "loses no delivery that it acknowledged, and keeps each once",
    async () => {
      const receiver = await createReceiver(owner, "payments", "dies hard");
      const read = async () => {
        const path = `/webhook-receivers/${receiver.id}/events?limit=1000`;
        const { status, body } = await owner.get<DeliveryPage>(path);
        return status === 200 && body.events.map(({ id }) => id);
      };
      const acknowledged = new Set<string>();
      let isOver = false;
      // As a vendor does: what was not acknowledged is delivered again.
      const vendor = async (name: string): Promise<void> => {
        for (let n = 0; !isOver; n += 1) {
          const body = JSON.stringify({ id: `${name}-${n}` });
          await waitUntil(async () => {
            const answer = await deliver(api.server, receiver, { body }).catch(() => null);
            return answer?.status === 200;
          }, PATIENCE_MS);
          acknowledged.add(`${name}-${n}`);
        }
      };
      const vendors = ["a", "b", "c", "d"].map(vendor);
      for (let death = 1; death <= 3; death += 1) {
        const goal = acknowledged.size + 40;
        await waitUntil(() => Promise.resolve(acknowledged.size >= goal), PATIENCE_MS);
        const pid = await api.server.getPid("workerd");
        process.kill(pid, "SIGKILL");
        await waitUntil(async () => (await api.server.getPid("workerd")) !== pid, PATIENCE_MS);
      }
      isOver = true;
      await Promise.all(vendors);
      const kept = await waitUntil(read, PATIENCE_MS);
      expect(new Set(kept).size).toBe(kept.length);
      expect(new Set(kept)).toEqual(acknowledged);
      expect(acknowledged.size).toBeGreaterThan(100);
    },
    LONG_TEST_MS,
  );

  test(
    "is waited for by the agent, which then goes on",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "restarts");
      await using agent = await forwarding("restarts", hooks);
      await agent.event("ready");
      await accepted(receiver, "before");
      await waitUntil(() => Promise.resolve(hooks.received.length === 1), PATIENCE_MS);
      process.kill(await api.server.getPid("workerd"), "SIGKILL");
      await agent.event("reconnected");
      await waitUntil(
        () =>
          accepted(receiver, "after").then(
            () => true,
            () => false,
          ),
        PATIENCE_MS,
      );
      await waitUntil(() => Promise.resolve(bodiesOf(hooks).includes("after")), PATIENCE_MS);
      expect(new Set(bodiesOf(hooks))).toEqual(new Set(["before", "after"]));
    },
    LONG_TEST_MS,
  );
});

test("a server that stops answers a reader who waits, and stops", async () => {
  await using other = await startApi({ shared: false });
  const person = await other.owner();
  const receiver = await createReceiver(person);
  const waiting = person.get<DeliveryPage>(`/webhook-receivers/${receiver.id}/events?wait=30`);
  // The reader is in: what was asked after it was answered before it.
  await person.get(`/webhook-receivers/${receiver.id}`);
  const stopped = other.server.stop();
  const { status, body } = await waiting;
  expect([200, 503]).toContain(status);
  if (status === 200) expect(body.events).toEqual([]);
  expect(await stopped).toBe(0);
});
