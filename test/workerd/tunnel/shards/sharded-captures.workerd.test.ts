import { expect, test } from "vitest";
import {
  lastCapture,
  listCaptures,
  setCaptureSettings,
  getCapture,
} from "../../../harness/workerd/live-captures.ts";
import { ShardedTunnel } from "../../../harness/workerd/sharded-tunnel.ts";

test("the captures of all objects are one list, newest first, and are paged", async () => {
  const tunnel = await ShardedTunnel.open();
  for (let shard = 0; shard < 4; shard++) await tunnel.visit(shard, `/first/${shard}`);
  for (let shard = 3; shard >= 0; shard--) await tunnel.visit(shard, `/second/${shard}`);
  const all = await listCaptures(tunnel.first);
  expect(all).toHaveLength(8);
  expect(all.map(({ id }) => id)).toEqual(
    all
      .map(({ id }) => id)
      .sort()
      .reverse(),
  );

  const page = await listCaptures(tunnel.first, { limit: 3 });
  const rest = await listCaptures(tunnel.first, { after: page.at(-1)!.id });
  expect([...page, ...rest].map(({ id }) => id)).toEqual(all.map(({ id }) => id));
});

test("a capture of any object is read by its id", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.visit(2, "/here");
  const capture = await lastCapture(tunnel.first);
  expect(capture).toMatchObject({ path: "/here", tunnel_id: tunnel.first.id });
  const unknown = capture.id.replace(/^......../, "00000000");
  expect(await getCapture(tunnel.first.stub, unknown)).toBeNull();
});

test("captures of all objects are read together, in the order of their ids", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.visitEach("/each");
  const ids = (await listCaptures(tunnel.first)).map(({ id }) => id);
  const unknown = ids[0]!.replace(/^......../, "00000000");
  const captures = [...(await tunnel.first.stub.getCaptures([...ids, unknown, ids[0]!]))];
  expect(captures.map((capture) => capture?.id)).toEqual([...ids, undefined, ids[0]!]);
});

test("captures are deleted at every object", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.visitEach();
  expect(await listCaptures(tunnel.first)).toHaveLength(4);
  await tunnel.first.stub.clearCaptures(Date.now());
  expect(await listCaptures(tunnel.first)).toEqual([]);
});

test("the settings of captures apply at every object", async () => {
  const tunnel = await ShardedTunnel.open();
  await setCaptureSettings(tunnel.first, { capture: false });
  await tunnel.visitEach();
  expect(await listCaptures(tunnel.first)).toEqual([]);
});

test("a breakdown counts the captures of all objects", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.visitEach("/busy");
  await tunnel.visit(1, "/quiet");
  const counted = await tunnel.first.stub.breakDownCaptures(0, 100);
  expect(counted).toMatchObject({ requests: 5, isComplete: true, statuses: { "2xx": 5 } });
  expect(counted.paths.map(({ path, requests }) => [path, requests])).toEqual([
    ["/busy", 4],
    ["/quiet", 1],
  ]);
  expect(counted.latency.reduce((sum, count) => sum + count, 0)).toBe(5);
});

test("a dry run of a policy evaluates the requests of all objects", async () => {
  const tunnel = await ShardedTunnel.open();
  await tunnel.visitEach("/admin");
  await tunnel.visitEach("/");
  const policy = { actions: [{ kind: "deny" as const, path_prefix: "/admin" }] };
  const dryRun = await tunnel.first.stub.dryRunPolicy({ policy, limit: 6 });
  expect(dryRun).toMatchObject({ evaluated: 6, allowed: 4, refused: 2 });
});

test("a request is replayed at the object that captured it", async () => {
  const tunnel = await ShardedTunnel.open();
  await setCaptureSettings(tunnel.first, { allowReplay: true });
  await tunnel.visit(3, "/again");
  const captured = await lastCapture(tunnel.first);
  const replaying = tunnel.first.stub.replay(captured.id);
  const { stream, target } = await tunnel.agents[3]!.nextRequest();
  expect(target).toBe("/again");
  tunnel.agents[3]!.respond(stream, 200, [], "replayed");
  const outcome = await replaying;
  const id = "id" in outcome ? outcome.id : "";
  expect(await getCapture(tunnel.first.stub, id)).toMatchObject({ replay_of: captured.id });
});
