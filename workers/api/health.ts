/** Liveness, readiness, and the public keys that access tokens are verified with. */
import { sql } from "drizzle-orm";
import { z } from "zod";
import { Health } from "../../protocol/schemas/health.ts";
import { SERVICE_VERSION } from "../../protocol/version.ts";
import type { Config } from "../config/config.ts";
import { failAfter } from "../database-outage.ts";
import { ApiError, describeError, errorResponse } from "../errors.ts";
import { getDiskShortage } from "../../durable-objects/low-disk.ts";
import { toUtf8 } from "../../shared/bytes.ts";
import { getAccessTokenKeys, getCapabilityTokenKeys, type SigningKeys } from "../identity/keys.ts";
import { encrypt, decrypt } from "../identity/encryption.ts";
import { LimitedLog } from "../../shared/log.ts";
import { relayObject } from "../objects.ts";
import { listRelayIds } from "../store/networks/relays.ts";
import { createRouter, jsonResponse, route, type ApiContext } from "./route.ts";

const Ready = Health.extend({
  relay: z
    .enum(["connected", "disconnected", "not_configured"])
    .describe("Whether at least one relay is connected. A service without relays is ready too."),
  disk: z
    .enum(["ok", "low", "critical"])
    .describe(
      "Of a self-hosted server. `low`: captures and webhook deliveries take up no more space. `critical`: none are stored.",
    ),
});
const Jwks = z.object({ keys: z.array(z.looseObject({ kid: z.string() })) });
/** `/ready` waits at most this long for the objects of relays. */
const RELAY_ANSWER_MAX_MS = 1_000;
/** The machine of a database that takes longer hangs. */
const DATABASE_ANSWER_MAX_MS = 3_000;
const NotReady = z.object({
  error: z.literal("not_ready"),
  message: z.string(),
  missing: z.array(z.string()),
});

export const health = createRouter();

health.openapi(
  route({
    operationId: "getHealth",
    method: "get",
    path: "/health",
    summary: "Check that the service runs",
    description: "Tests nothing else: `GET /ready` tests the database and the keys.",
    headers: ["Date"],
    responses: { 200: jsonResponse("The service runs.", Health) },
  }),
  // workerd adds no date of its own.
  (c) =>
    c.json({ status: "ok", version: SERVICE_VERSION }, 200, { Date: new Date().toUTCString() }),
);

health.openapi(
  route({
    operationId: "getReadiness",
    method: "get",
    path: "/ready",
    summary: "Check that the service can serve requests",
    description:
      "For balancers and monitors: tests the database, the keys and the free space on the disk of a self-hosted server.",
    responses: {
      200: jsonResponse(
        "The database, the keys and the secrets work, and the disk is not full. `relay` shows whether a relay is connected.",
        Ready,
      ),
      503: jsonResponse("Some parts do not work; `missing` names them.", NotReady),
    },
  }),
  async (c) => {
    const missing = await listFailingParts(c);
    const shortage = getDiskShortage(Date.now());
    if (shortage === "full") missing.push("disk");
    else if (missing.length === 0) {
      const relay = await getRelayState(c);
      return c.json(
        { status: "ready", version: SERVICE_VERSION, relay, disk: shortage ?? ("ok" as const) },
        200,
      );
    }
    const message = `The service is not ready. These parts do not work: ${missing.join(", ")}.`;
    const { headers } = errorResponse(new ApiError("not_ready", message));
    return c.json({ error: "not_ready" as const, message, missing }, 503, {
      ...Object.fromEntries(headers),
    });
  },
);

health.openapi(
  route({
    operationId: "getAccessTokenKeys",
    method: "get",
    path: "/.well-known/jwks.json",
    summary: "Get the public keys of access tokens",
    description: "The same keys verify visitors' tokens and the tickets of relays.",
    responses: { 200: jsonResponse("A JSON Web Key Set.", Jwks) },
  }),
  async (c) => {
    const { publicJwks } = await getAccessTokenKeys(c.var.config);
    const keys = publicJwks.map((jwk) => ({ ...jwk, kid: jwk.kid ?? "" }));
    return c.json({ keys }, 200, { "Cache-Control": "public, max-age=300" });
  },
);

/** Asks the objects of the relays: the row of a relay whose object was restarted may be stale. */
async function getRelayState(c: ApiContext): Promise<z.infer<typeof Ready>["relay"]> {
  if (c.var.config.RELAY_SECRET === undefined) return "not_configured";
  const ids = await listRelayIds(c.var.db);
  const checks = ids.map(async (id) => {
    if (!(await relayObject(c.env, id).isConnected()))
      throw new Error(`relay ${id} is not connected`);
    return "connected" as const;
  });
  const late = scheduler.wait(RELAY_ANSWER_MAX_MS).then(() => "disconnected" as const);
  return Promise.race([Promise.any(checks).catch(() => "disconnected" as const), late]);
}

/** Anyone can ask `/ready` at any rate. */
const failures = new LimitedLog("error", "not_ready");

/** Each part is used, not only loaded: a key that loads may still fail to sign. */
async function listFailingParts(c: ApiContext): Promise<string[]> {
  const { config, db } = c.var;
  const probes: Record<string, () => Promise<unknown>> = {
    database: () =>
      failAfter(DATABASE_ANSWER_MAX_MS, async () =>
        db.query.execute(sql`select 1 from installation limit 1`),
      ),
    "JWT keys": async () =>
      probeSigning(await getAccessTokenKeys(config), { name: "ECDSA", hash: "SHA-256" }),
    "token keys": async () =>
      probeSigning(await getCapabilityTokenKeys(config), { name: "Ed25519" }),
    "secret manager": () => probeEncryption(config),
  };
  const checked = await Promise.all(
    Object.entries(probes).map(async ([name, probe]) => {
      try {
        await probe();
        return null;
      } catch (error) {
        failures.record({ part: name, cause: describeError(error) }, Date.now());
        return name;
      }
    }),
  );
  return checked.filter((name) => name !== null);
}

async function probeSigning(
  { signer, verifiers }: SigningKeys,
  algorithm: { name: string; hash?: string },
): Promise<void> {
  const probe = toUtf8("ready?");
  const signature = await crypto.subtle.sign(algorithm, signer.key, probe);
  const verifier = verifiers.get(signer.kid);
  const isValid = verifier && (await crypto.subtle.verify(algorithm, verifier, signature, probe));
  if (!isValid) throw new Error("a signature did not verify");
}

async function probeEncryption(config: Config): Promise<void> {
  const encrypted = await encrypt(config, "ready", "ready?");
  if ((await decrypt(config, "ready", encrypted)) !== "ready?")
    throw new Error("an encrypted text did not decrypt");
}
