/**
 * A program that obtains one certificate by ACME (RFC 8555) with the challenge `http-01`. It is a process of its own because the
 * client takes 40 MB of memory, and hours pass between two certificates.
 */
import { Client, crypto } from "acme-client";
import { getErrorMessage } from "../../../../shared/error-message.ts";
import type { OrderEvent, OrderRequest } from "./messages.ts";

/** How often the authority is asked whether it has verified the host: most take a second or two. */
const POLLING = { backoffMin: 1_000, backoffMax: 4_000, backoffAttempts: 30 };

process.once("message", (request) => void run(request as OrderRequest));
// The front proxy has ended.
process.once("disconnect", () => process.exit(1));

async function run(request: OrderRequest): Promise<void> {
  try {
    send({ type: "issued", ...(await order(request)) });
  } catch (error) {
    send({ type: "failed", reason: getErrorMessage(error) });
  }
  process.disconnect();
}

async function order({ name, directoryUrl, email, accountKey }: OrderRequest) {
  const client = new Client({ directoryUrl, accountKey, ...POLLING });
  // A common name has at most 64 characters; clients read the alternative names only.
  const [key, csr] = await crypto.createCsr(
    { altNames: [name] },
    await crypto.createPrivateEcdsaKey(),
  );
  const cert = await client.auto({
    csr,
    ...(email !== null && { email }),
    termsOfServiceAgreed: true,
    challengePriority: ["http-01"],
    // It would be requested from this machine, which may not reach its own public address.
    skipChallengeVerification: true,
    challengeCreateFn: (_, { token }, keyAuthorization) =>
      publish({ type: "challenge", token, keyAuthorization }),
    challengeRemoveFn: () => Promise.resolve(),
  });
  return { cert, key: key.toString() };
}

/** Resolves when the front proxy answers the challenge. */
function publish(event: OrderEvent): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  process.once("message", () => resolve());
  send(event);
  return promise;
}

function send(event: OrderEvent): void {
  process.send!(event);
}
