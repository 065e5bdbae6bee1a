/** The relay's control connection: who is let in, who takes over, who is sent away. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { RelayAgent } from "../harness/relay-agent.ts";
import { startTestRelay, type TestRelay } from "../harness/test-relay.ts";

let relay: TestRelay;
beforeAll(async () => {
  relay = await startTestRelay();
});
afterAll(async () => {
  await relay[Symbol.asyncDispose]();
});

test("an agent with a ticket is welcomed with where its peers and its datagrams go", async () => {
  await using agent = new RelayAgent(relay.url, await relay.networkTicket());
  const welcome = await agent.welcome("network");
  expect(welcome.publicEndpoint).toBe(`127.0.0.1:${relay.ports[0]}`);
  expect(welcome.udpPort).toBe(relay.port);
  expect(Buffer.from(welcome.key, "base64")).toHaveLength(32);
});
