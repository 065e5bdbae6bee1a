/** The type of event that a delivery is about, such as `pull_request.opened`, by the conventions of its vendor. */
import type { Delivery, Validator } from "../../../../protocol/schemas/webhooks.ts";
import { fromBase64 } from "../../../../shared/bytes.ts";
import { isJsonObject, parseJsonObject } from "../../../../shared/json.ts";

/** A longer text is not a type. */
const EVENT_TYPE_MAX_CHARS = 100;
/** The headers of vendors whose deliveries are validated as generic ones, and that of CloudEvents. */
const TYPE_HEADERS = [
  "x-event-type",
  "x-event-key",
  "x-gitlab-event",
  "x-shopify-topic",
  "ce-type",
];

/** @returns null when the delivery does not have one that is known. */
export function readEventType(
  validator: Validator,
  { headers, body }: Pick<Delivery, "headers" | "body">,
): string | null {
  const text = new TextDecoder().decode(fromBase64(body) ?? new Uint8Array());
  switch (validator) {
    case "code_host": {
      const event = toType(headers["x-github-event"]);
      const action = toType(parseJsonObject(text).action);
      return event !== null && action !== null ? `${event}.${action}` : event;
    }
    case "chat_app":
      return readChatType(text);
    case "payments":
      return toType(parseJsonObject(text).type);
    case "generic_hmac_sha256": {
      const named = TYPE_HEADERS.map((name) => toType(headers[name])).find((type) => type !== null);
      const { type, event } = parseJsonObject(text);
      return named ?? toType(type) ?? toType(event);
    }
  }
}

/** Slack sends events in JSON, the payload of a dialog in the field of a form, and the name of a command in another. */
function readChatType(text: string): string | null {
  const form = text.startsWith("{") ? null : new URLSearchParams(text);
  const command = toType(form?.get("command"));
  if (command !== null) return command;
  const { type, event } = parseJsonObject(form?.get("payload") ?? text);
  const isEvent = type === "event_callback" && isJsonObject(event);
  return (isEvent ? toType(event.type) : null) ?? toType(type);
}

function toType(value: unknown): string | null {
  if (typeof value !== "string" || value.length > EVENT_TYPE_MAX_CHARS) return null;
  return value.trim() === "" ? null : value;
}
