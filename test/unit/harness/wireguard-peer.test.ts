import { expect, test } from "vitest";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { createPeer, type WireGuardPeer } from "../../harness/wireguard/peer.ts";
import { ReplayWindow } from "../../harness/wireguard/session.ts";

const at = ({ port }: WireGuardPeer) => ({ address: "127.0.0.1", port });

test("two peers complete a handshake and exchange data in both directions", async () => {
  await using server = await createPeer({ echo: true });
  await using client = await createPeer();
  await client.handshake(at(server), server.publicKey);
  client.send("hello");
  await client.waitForPayload("hello");
  expect(server.texts(client.publicKey)).toEqual(["hello"]);
});

test("a wrong preshared key completes no handshake", async () => {
  await using server = await createPeer({ presharedKey: Buffer.alloc(32, 7).toString("base64") });
  await using client = await createPeer();
  client.initiate(at(server), server.publicKey);
  await expect.poll(() => client.rejected.forged, WAIT_OPTIONS).toBe(1);
});

test("a handshake for another key is not answered", async () => {
  await using server = await createPeer();
  await using other = await createPeer();
  await using client = await createPeer();
  client.initiate(at(server), other.publicKey);
  await expect.poll(() => server.rejected.forged, WAIT_OPTIONS).toBe(1);
});

test("the server answers to the client's newest address", async () => {
  await using server = await createPeer();
  await using client = await createPeer();
  await client.handshake(at(server), server.publicKey);
  client.send("from the first port");
  await server.waitForPayload("from the first port");
  await client.rebind();
  client.send("from the second port");
  await server.waitForPayload("from the second port");
  server.send("answer", client.publicKey);
  await client.waitForPayload("answer");
  expect(server.handshakes(client.publicKey)).toBe(1);
});

test("a rekey changes the session, and the old one is still read", async () => {
  await using server = await createPeer();
  await using client = await createPeer();
  await client.handshake(at(server), server.publicKey);
  const late = client.encryptPayload("late");
  await client.handshake(at(server), server.publicKey);
  client.send("new");
  client.sendRaw(late, at(server));
  await server.waitForPayload("new");
  await server.waitForPayload("late");
  expect(server.handshakes(client.publicKey)).toBe(2);
});

test("an initiation that is repeated before it is answered creates one session", async () => {
  await using server = await createPeer();
  await using client = await createPeer();
  client.initiate(at(server), server.publicKey);
  await client.handshake(at(server), server.publicKey);
  client.send("hello");
  await server.waitForPayload("hello");
  expect([client.handshakes(), server.handshakes(client.publicKey)]).toEqual([1, 1]);
});

test("a message that is sent twice is accepted once, and a forged one never", async () => {
  await using server = await createPeer();
  await using client = await createPeer();
  await client.handshake(at(server), server.publicKey);
  const message = client.encryptPayload("once");
  const forged = Uint8Array.from(message);
  forged[forged.length - 1]! ^= 1;
  for (const bytes of [forged, message, message]) client.sendRaw(bytes, at(server));
  await expect
    .poll(() => server.rejected, WAIT_OPTIONS)
    .toEqual({ forged: 1, replayed: 1, unknown: 0 });
  expect(server.texts()).toEqual(["once"]);
});

test("the replay window accepts late messages once, and none that are too old", () => {
  const window = new ReplayWindow();
  const accepted = [5, 3, 5, 3, 10_000, 9_999, 9_999, 4, 1_808, 1_809].map((counter) =>
    window.accept(counter),
  );
  expect(accepted).toEqual([true, true, false, false, true, true, false, false, false, true]);
});
