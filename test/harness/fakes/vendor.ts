/** Vendors that deliver webhooks to a receiver, each with its own signature scheme. */
import { createHmac } from "node:crypto";
import type { Receiver, Validator } from "../../../protocol/schemas/webhooks.ts";
import type { Person } from "../server/api.ts";

export interface DeliveryOptions {
  body?: string | Buffer;
  /** The delivery id, for vendors that send it in a header. */
  id?: string;
  secret?: string;
  /** The vendor's time, in seconds since the epoch. */
  time?: number;
  /** Added to the vendor's headers, or replacing them. */
  headers?: Record<string, string>;
}

export const SECRET = "whsec_of_the_tests";

export async function createReceiver(
  owner: Person,
  validator: Validator = "generic_hmac_sha256",
  name: string = validator,
): Promise<Receiver> {
  const reply = await owner.post<Receiver>("/webhook-receivers", {
    validator,
    secret: SECRET,
    name,
  });
  if (reply.status !== 201) throw new Error(`no receiver: ${JSON.stringify(reply.body)}`);
  return reply.body;
}

/** @param server the API's address, because Node.js does not resolve the host name in a receiver's URL. */
export function deliver(
  server: { url: string },
  { id, validator }: Pick<Receiver, "id" | "validator">,
  delivering: DeliveryOptions = {},
): Promise<Response> {
  const { body = "{}" } = delivering;
  const headers = { ...buildSignatureHeaders(validator, delivering), ...delivering.headers };
  return fetch(`${server.url}/hooks/${id}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : new Uint8Array(body),
  });
}

function buildSignatureHeaders(
  validator: Validator,
  { body = "{}", id, secret = SECRET, time = Math.floor(Date.now() / 1000) }: DeliveryOptions,
): Record<string, string> {
  const sign = (prefix = "") =>
    createHmac("sha256", secret).update(prefix).update(body).digest("hex");
  switch (validator) {
    case "code_host":
      return {
        "x-hub-signature-256": `sha256=${sign()}`,
        ...(id === undefined ? {} : { "x-github-delivery": id }),
      };
    case "chat_app":
      return {
        "x-slack-request-timestamp": String(time),
        "x-slack-signature": `v0=${sign(`v0:${time}:`)}`,
      };
    case "payments":
      return { "stripe-signature": `t=${time},v1=${sign(`${time}.`)}` };
    case "generic_hmac_sha256":
      return {
        "x-signature-256": `sha256=${sign()}`,
        ...(id === undefined ? {} : { "x-delivery-id": id }),
      };
  }
}
