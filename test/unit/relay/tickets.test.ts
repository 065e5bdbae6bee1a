/** How the relay verifies tickets, without an API. */
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { expect, test } from "vitest";
import { RELAY_TICKET_TYPE, toRelayAudience } from "../../../protocol/relay/ticket.ts";
import { TicketVerifier } from "../../../relay/tickets.ts";
import { HOUR_MS, SECOND_MS } from "../../../shared/time.ts";

let clockMs = Date.now();

async function createKey(kid: string) {
  const { privateKey, publicKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: "ES256", use: "sig" };
  const sign = () =>
    new SignJWT({
      kind: "tunnel",
      ...{ org: crypto.randomUUID(), port: 1, generation: 1, mbps: 1, nonce: "ab", cidrs: null },
    })
      .setProtectedHeader({ alg: "ES256", typ: RELAY_TICKET_TYPE, kid })
      .setSubject(crypto.randomUUID())
      .setAudience(toRelayAudience("main"))
      .setExpirationTime(Math.floor(clockMs / SECOND_MS) + 300)
      .sign(privateKey);
  return { jwks: { keys: [jwk] }, sign };
}

test("a key that is new after the relay's clock was set back is fetched", async () => {
  const [first, second] = await Promise.all([createKey("first"), createKey("second")]);
  let current = first;
  const fetchKeys = () => Promise.resolve(current.jwks);
  const verifier = new TicketVerifier({ relayId: "main", fetchKeys, now: () => clockMs });
  expect(await verifier.verify(await first.sign())).toMatchObject({ kind: "tunnel" });
  clockMs -= HOUR_MS;
  current = second;
  expect(await verifier.verify(await second.sign())).toMatchObject({ kind: "tunnel" });
});
