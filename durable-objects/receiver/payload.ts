/** Fields of a vendor's delivery. Read only after its signature has been verified. */
import type { Validator } from "../../protocol/schemas/webhooks.ts";
import { toHex, toUtf8 } from "../../shared/bytes.ts";
import { parseJsonObject } from "../../shared/json.ts";
import { exceedsJsonBounds, UNBOUNDED_JSON_MAX_BYTES } from "../../shared/bounds/json-bounds.ts";
import type { SignedRequest } from "./signatures.ts";

/** A longer id is stored as its hash. */
const DELIVERY_ID_MAX_CHARS = 200;

/** The vendor's id of this delivery, by which a repeated one is recognized. @returns null when it has none. */
export async function readDeliveryId(
  validator: Validator,
  { headers, body }: SignedRequest,
): Promise<string | null> {
  const id = toId(readVendorId(validator, headers, body)) ?? toId(headers.get("x-delivery-id"));
  if (id === undefined || id.length <= DELIVERY_ID_MAX_CHARS) return id ?? null;
  return `sha256:${toHex(new Uint8Array(await crypto.subtle.digest("SHA-256", toUtf8(id))))}`;
}

/** What a vendor that verifies a new address wants to be sent back. @returns null for any other delivery. */
export function readChallenge(validator: Validator, { body }: SignedRequest): string | null {
  if (validator !== "chat_app") return null;
  const { type, challenge } = parseFields(body);
  return type === "url_verification" && typeof challenge === "string" ? challenge : null;
}

function readVendorId(validator: Validator, headers: Headers, body: Uint8Array): unknown {
  switch (validator) {
    case "code_host":
      return headers.get("x-github-delivery");
    case "chat_app":
    case "payments": {
      const { event_id: eventId, id } = parseFields(body);
      return toId(eventId) ?? id;
    }
    case "generic_hmac_sha256":
      return null;
  }
}

/** A number counts only if it is exact: two deliveries must not get the same id. */
function toId(value: unknown): string | undefined {
  if (Number.isSafeInteger(value)) return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** @returns no fields when the body is not a JSON object, or would take long to parse. */
function parseFields(body: Uint8Array): Record<string, unknown> {
  if (body.byteLength > UNBOUNDED_JSON_MAX_BYTES && exceedsJsonBounds(body)) return {};
  return parseJsonObject(new TextDecoder().decode(body));
}
