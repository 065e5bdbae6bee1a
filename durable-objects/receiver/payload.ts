/** What a vendor's payload says of itself. Read once its signature is known to be right. */
import type { Validator } from "../../protocol/schemas/webhooks.ts";
import type { SignedRequest } from "./signatures.ts";

/** What is longer is no delivery id: the delivery gets one of ours. */
const DELIVERY_ID_MAX_CHARS = 200;

/** What a vendor calls this delivery, so that it is kept once. @returns null where it has no name. */
export function readDeliveryId(validator: Validator, { headers, body }: SignedRequest): string | null {
  return (
    toUsableId(readVendorId(validator, headers, body)) ?? toUsableId(headers.get("x-delivery-id")) ?? null
  );
}

/** A vendor that tries a new address wants this back. @returns null for any other delivery. */
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
      return toUsableId(eventId) ?? id;
    }
    case "generic_hmac_sha256":
      return null;
  }
}

function toUsableId(id: unknown): string | undefined {
  if (typeof id !== "string" || id === "" || id.length > DELIVERY_ID_MAX_CHARS) return undefined;
  return id;
}

/** Of what is no JSON object: none. */
function parseFields(body: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
