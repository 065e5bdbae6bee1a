/** Deliveries from a vendor to a local server through `underpass webhooks`, also after crashes of either side. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runCommandLine } from "../../../agent/cli/run-command-line.ts";
import { UsageError } from "../../../agent/options.ts";
import type { DeliveryPage, Receiver, ReceiverState } from "../../../protocol/schemas/webhooks.ts";
import { ROOT } from "../../../self-host/build/build.ts";
import { runAgent, type RunningAgent } from "../../harness/tunnel/agent.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { fastClock, speedUp } from "../../harness/preloads/fast-clock.ts";
import { startHookServer, type HookServer } from "../../harness/fakes/hook-server.ts";
import { canOpenTerminals, typeCommand } from "../../harness/terminal.ts";
import { deliver, createReceiver } from "../../harness/fakes/vendor.ts";

const PATIENCE_MS = 60_000;
/** For tests with several waits. */
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

const startForwarding = (receiver: string, hooks: HookServer, ...more: string[]) =>
  runAgent(
    [
      ...["webhooks", receiver, "--forward", `http://localhost:${hooks.port}/hook?of=shop`],
      ...["--server", api.server.url, "--token-file", "TOKEN", "--json", ...more],
    ],
    { token, env: fastClock(20) },
  );

const getBodies = ({ received }: HookServer) => received.map(({ body }) => body.toString());
const getAcknowledged = async ({ id }: Receiver) =>
  (await owner.get<ReceiverState>(`/webhook-receivers/${id}`)).body.acknowledged;
const getDeliveries = ({ stdout }: RunningAgent) =>
  stdout
    .split("\n")
    .filter((line) => line.includes('"delivery"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
const deliverAccepted = async (receiver: Receiver, id: string) => {
  const { status } = await deliver(api.server, receiver, { id, body: id });
  if (status !== 200) throw new Error(`${id}: ${status}`);
};

describe("underpass webhooks", () => {
  test("forwards each delivery with its headers and bytes, and reports it", async () => {
    await using hooks = await startHookServer();
    const receiver = await createReceiver(owner, "code_host", "bytes");
    await using agent = await startForwarding("bytes", hooks);
    expect(await agent.event("ready")).toEqual({
      event: "ready",
      receiverId: receiver.id,
      url: receiver.url,
      local: `http://localhost:${hooks.port}/hook?of=shop`,
    });
    const body = Buffer.from(Array.from({ length: 100_000 }, (_, at) => (at * 13) % 256));
    const headers = { "content-type": "application/x-vendor", "x-github-event": "push" };
    await deliver(api.server, receiver, { body, id: "g-1", headers });
    const { durationMs, receivedAt, ...reported } = await agent.event("delivery");
    expect(reported).toEqual({
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
    await waitUntil(async () => (await getAcknowledged(receiver)) === "1", PATIENCE_MS);
    agent.child.kill("SIGINT");
    expect(await agent.exit).toBe(0);
  });

  test(
    "forwards deliveries that arrived while it was stopped, in order and once",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "closed");
      for (const id of ["c-1", "c-2", "c-3"]) await deliverAccepted(receiver, id);
      {
        await using agent = await startForwarding(receiver.id, hooks);
        await waitUntil(() => Promise.resolve(hooks.received.length === 3), PATIENCE_MS);
        agent.child.kill("SIGTERM");
        expect(await agent.exit).toBe(0);
      }
      expect(await getAcknowledged(receiver)).toBe("3");
      for (const id of ["c-4", "c-5"]) await deliverAccepted(receiver, id);
      await using agent = await startForwarding(receiver.id, hooks);
      await waitUntil(() => Promise.resolve(hooks.received.length >= 5), PATIENCE_MS);
      await deliverAccepted(receiver, "c-6");
      await waitUntil(() => Promise.resolve(hooks.received.length >= 6), PATIENCE_MS);
      expect(getBodies(hooks)).toEqual(["c-1", "c-2", "c-3", "c-4", "c-5", "c-6"]);
      expect(agent.stderr).toBe("");
    },
    LONG_TEST_MS,
  );

  test(
    "continues after a crash without skipping or reordering deliveries",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "dies");
      const ids = Array.from({ length: 60 }, (_, n) => `d-${n}`);
      for (const id of ids) await deliverAccepted(receiver, id);
      for (const count of [20, 40]) {
        await using agent = await startForwarding("dies", hooks);
        await waitUntil(() => Promise.resolve(hooks.received.length >= count), PATIENCE_MS);
        agent.child.kill("SIGKILL");
        await agent.exit;
      }
      await using agent = await startForwarding("dies", hooks);
      await waitUntil(() => Promise.resolve(getBodies(hooks).includes("d-59")), PATIENCE_MS);
      agent.child.kill("SIGINT");
      await agent.exit;
      const bodies = getBodies(hooks);
      expect([...new Set(bodies)]).toEqual(ids);
      // Each crash repeats at most the two deliveries that were not acknowledged yet.
      expect(bodies.length).toBeLessThanOrEqual(ids.length + 4);
    },
    LONG_TEST_MS,
  );

  test(
    "waits for a local server that does not listen, and preserves the order",
    async () => {
      await using hooks = await startHookServer();
      await hooks.close();
      const receiver = await createReceiver(owner, undefined, "waits");
      await using agent = await startForwarding("waits", hooks);
      await agent.event("ready");
      speedUp(agent.child);
      for (const id of ["w-1", "w-2"]) await deliverAccepted(receiver, id);
      await waitUntil(() => Promise.resolve(getDeliveries(agent).length >= 3), PATIENCE_MS);
      expect(getDeliveries(agent)[0]).toMatchObject({
        id: "w-1",
        outcome: "retrying",
        status: null,
        problem: `nothing listens at http://localhost:${hooks.port}; start the local server, or name another port`,
      });
      await hooks.listen();
      await waitUntil(() => Promise.resolve(hooks.received.length === 2), PATIENCE_MS);
      expect(getBodies(hooks)).toEqual(["w-1", "w-2"]);
    },
    LONG_TEST_MS,
  );

  test(
    "tries a refused delivery five times, reports that it gave up, and continues",
    async () => {
      await using hooks = await startHookServer();
      hooks.respond = ({ body }) => (body.toString() === "poison" ? 500 : 204);
      const receiver = await createReceiver(owner, undefined, "refused");
      await deliverAccepted(receiver, "poison");
      await deliverAccepted(receiver, "fine");
      await using agent = await startForwarding("refused", hooks);
      await agent.event("ready");
      speedUp(agent.child);
      await waitUntil(() => Promise.resolve(getBodies(hooks).includes("fine")), PATIENCE_MS);
      await waitUntil(() => Promise.resolve(getDeliveries(agent).length === 6), PATIENCE_MS);
      expect(getBodies(hooks)).toEqual([...Array<string>(5).fill("poison"), "fine"]);
      expect(getDeliveries(agent).map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
        ["retrying", 1],
        ["retrying", 2],
        ["retrying", 3],
        ["retrying", 4],
        ["put_aside", 5],
        ["delivered", 1],
      ]);
      await waitUntil(async () => (await getAcknowledged(receiver)) === "2", PATIENCE_MS);
    },
    LONG_TEST_MS,
  );

  test(
    "starts earlier with --since, and does not undo acknowledgements",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "since");
      for (const id of ["s-1", "s-2"]) await deliverAccepted(receiver, id);
      await owner.post(`/webhook-receivers/${receiver.id}/ack`, { cursor: "2" });
      {
        await using agent = await startForwarding("since", hooks, "--since", "all");
        await waitUntil(() => Promise.resolve(hooks.received.length === 2), PATIENCE_MS);
        agent.child.kill("SIGINT");
        await agent.exit;
      }
      expect(getBodies(hooks)).toEqual(["s-1", "s-2"]);
      expect(await getAcknowledged(receiver)).toBe("2");
      await using agent = await startForwarding("since", hooks, "--since", "1h");
      await waitUntil(() => Promise.resolve(hooks.received.length === 4), PATIENCE_MS);
      expect(agent.stderr).toBe("");
    },
    LONG_TEST_MS,
  );

  test.skipIf(!canOpenTerminals())(
    "shows in a terminal where deliveries go, and the outcome of each",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "screen");
      const home = await createTemporaryDir();
      await writeFile(join(home, "token"), token);
      const command = join(ROOT, "agent/bin/launch.js");
      const options = `--forward ${hooks.port}/hook --server ${api.server.url} --token-file token`;
      await using typed = typeCommand(`${process.execPath} ${command} webhooks screen ${options}`, {
        cwd: home,
        env: { HOME: home },
        atTerminal: true,
      });
      await typed.waitForOutput(/State +online/, PATIENCE_MS);
      await typed.waitForOutput(
        new RegExp(`hooks/${receiver.id} -> http://localhost:${hooks.port}/hook`),
      );
      await deliverAccepted(receiver, "evt_shown");
      await typed.waitForOutput(/Delivered +1\s+200 evt_shown \d+ ms/, PATIENCE_MS);
      expect(await typed.interrupt()).toBe(0);
      await rm(home, { recursive: true });
    },
    LONG_TEST_MS,
  );

  test(
    "exits with 1 when it is refused permanently, with the reason",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "ends");
      const waitForRejection = async (agent: RunningAgent) => [
        await agent.exit,
        (await agent.event("rejected")).reason,
      ];
      await using unknown = await startForwarding("nobody's", hooks);
      expect(await waitForRejection(unknown)).toEqual([1, "not_found"]);
      const otherOrgToken = await mintToken(await api.owner());
      const otherOrgTokenBytes = Buffer.from(otherOrgToken.wireBytes, "base64");
      await using foreign = await runAgent(
        ["webhooks", receiver.id, "--forward", "1", "--json"].concat([
          "--server",
          api.server.url,
          "--token-file",
          "TOKEN",
        ]),
        { token: otherOrgTokenBytes },
      );
      expect(await waitForRejection(foreign)).toEqual([1, "not_found"]);
      await using deleted = await startForwarding("ends", hooks);
      await deleted.event("ready");
      await owner.delete(`/webhook-receivers/${receiver.id}`);
      expect(await waitForRejection(deleted)).toEqual([1, "not_found"]);
    },
    LONG_TEST_MS,
  );

  test(
    "exits with 2 for invalid arguments",
    async () => {
      await using hooks = await startHookServer();
      await createReceiver(owner, "payments", "twins");
      await createReceiver(owner, "chat_app", "twins");
      await using agent = await startForwarding("twins", hooks);
      expect(await agent.exit).toBe(2);
      expect(agent.stderr).toContain("2 receivers are called twins");
      for (const [args, complaint] of [
        [[], "the receiver is missing"],
        [["shop"], "--forward is missing"],
        [["shop", "--forward", "ftp://x"], /--forward must be a port.* not ftp:\/\/x/],
        [["shop", "--forward", "1", "--since", "once"], "--since"],
      ] as const) {
        const failed = await runCommandLine(["webhooks", ...args]).catch((error: unknown) => error);
        expect(failed).toBeInstanceOf(UsageError);
        expect(String(failed)).toMatch(complaint);
      }
    },
    LONG_TEST_MS,
  );
});

describe("a server that crashes", () => {
  test(
    "loses no delivery that it accepted, and stores each once",
    async () => {
      const receiver = await createReceiver(owner, "payments", "dies hard");
      const read = async () => {
        const path = `/webhook-receivers/${receiver.id}/events?limit=1000`;
        const { status, body } = await owner.get<DeliveryPage>(path);
        return status === 200 && body.events.map(({ id }) => id);
      };
      const acknowledged = new Set<string>();
      let isDone = false;
      // Like a vendor: a delivery without a 200 is sent again.
      const vendor = async (name: string): Promise<void> => {
        for (let n = 0; !isDone; n += 1) {
          const body = JSON.stringify({ id: `${name}-${n}` });
          await waitUntil(async () => {
            const answer = await deliver(api.server, receiver, { body }).catch(() => null);
            return answer?.status === 200;
          }, PATIENCE_MS);
          acknowledged.add(`${name}-${n}`);
        }
      };
      const vendors = ["a", "b", "c", "d"].map(vendor);
      for (let crash = 1; crash <= 3; crash += 1) {
        const goal = acknowledged.size + 40;
        await waitUntil(() => Promise.resolve(acknowledged.size >= goal), PATIENCE_MS);
        const pid = await api.server.getPid("workerd");
        process.kill(pid, "SIGKILL");
        await waitUntil(async () => (await api.server.getPid("workerd")) !== pid, PATIENCE_MS);
      }
      isDone = true;
      await Promise.all(vendors);
      const stored = await waitUntil(read, PATIENCE_MS);
      expect(new Set(stored).size).toBe(stored.length);
      expect(new Set(stored)).toEqual(acknowledged);
      expect(acknowledged.size).toBeGreaterThan(100);
    },
    LONG_TEST_MS,
  );

  test(
    "is waited for by the agent, which then continues",
    async () => {
      await using hooks = await startHookServer();
      const receiver = await createReceiver(owner, undefined, "restarts");
      await using agent = await startForwarding("restarts", hooks);
      await agent.event("ready");
      await deliverAccepted(receiver, "before");
      await waitUntil(() => Promise.resolve(hooks.received.length === 1), PATIENCE_MS);
      process.kill(await api.server.getPid("workerd"), "SIGKILL");
      await agent.event("disconnected");
      speedUp(agent.child);
      await agent.event("reconnected");
      await waitUntil(
        () =>
          deliverAccepted(receiver, "after").then(
            () => true,
            () => false,
          ),
        PATIENCE_MS,
      );
      await waitUntil(() => Promise.resolve(getBodies(hooks).includes("after")), PATIENCE_MS);
      expect(new Set(getBodies(hooks))).toEqual(new Set(["before", "after"]));
    },
    LONG_TEST_MS,
  );
});
