/** The messages that the agent of a TCP tunnel or a network accepts from its relay. */
import { once } from "node:events";
import { expect, test, vi } from "vitest";
import type { WebSocket } from "ws";
import { RelayControlConnection } from "../../../../agent/relay-client/control-connection.ts";
import {
  buildRelayAccess,
  sendWelcome,
  startScriptedRelay,
} from "../../../harness/relay/scripted-relay.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

async function connect(onConnection: (socket: WebSocket) => void) {
  const relay = await startScriptedRelay(onConnection);
  const getAccess = () => Promise.resolve(buildRelayAccess(relay.port));
  const control = new RelayControlConnection({ authorities: undefined, getAccess });
  control.start();
  return { relay, control };
}

test("a message of a type that only a newer relay knows is ignored", async () => {
  const codes: number[] = [];
  const { relay, control } = await connect((socket) => {
    socket.on("close", (code) => codes.push(code));
    socket.send('{"type":"drain","inMs":1000}');
    sendWelcome(socket);
    socket.send('{"type":"drain","inMs":1000}');
    socket.send('{"type":"open","count":1,"more":true}');
  });
  expect(await once(control, "message")).toEqual([{ type: "open", count: 1 }]);
  control.close();
  await vi.waitUntil(() => codes.length > 0, WAIT_OPTIONS);
  expect(codes).toEqual([1000]);
  await relay.stop();
});

test.each(["text", "{}", '{"type":"open","count":0}'])(
  "a message that no relay sends ends the connection: %s",
  async (text) => {
    const { relay, control } = await connect((socket) => {
      sendWelcome(socket);
      socket.send(text);
    });
    expect(await once(control, "rejected")).toMatchObject([{ reason: "protocol_error" }]);
    await relay.stop();
  },
);
