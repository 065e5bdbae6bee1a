/** The messages that disconnect the clients of revoked tokens. */
import { expect, test } from "vitest";
import {
  divideClients,
  NONCES_MAX,
  TUNNELS_MAX,
} from "../../../../workers/store/tokens/client-revocations.ts";

const name = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, at) => `${prefix}${at}`);

test("every tunnel is told of every token, in messages of a bounded size", () => {
  const tokenNonces = name("token", NONCES_MAX + 1);
  const tunnelIds = name("tunnel", 3 * TUNNELS_MAX + 1);
  const messages = divideClients({ tokenNonces, tunnelIds });
  for (const message of messages) {
    expect(message.tokenNonces.length).toBeLessThanOrEqual(NONCES_MAX);
    expect(message.tunnelIds.length).toBeLessThanOrEqual(TUNNELS_MAX);
  }
  for (const id of [tunnelIds[0]!, tunnelIds.at(-1)!]) {
    const told = messages.filter((message) => message.tunnelIds.includes(id));
    expect(told.flatMap((message) => message.tokenNonces)).toEqual(tokenNonces);
  }
  expect(new Set(messages.flatMap((message) => message.tunnelIds))).toEqual(new Set(tunnelIds));
});

test("an organization without TCP tunnels gets no message", () => {
  expect(divideClients({ tokenNonces: ["token"], tunnelIds: [] })).toEqual([]);
});
