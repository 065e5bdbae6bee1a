/** Audit events as sentences: who did what to which resource. */
import { AUDIT_ACTIONS, type AuditAction } from "../../../protocol/audit/audit-actions.ts";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import { formatFormerMember } from "../../api/organization/organizations.ts";

/** Names by the id of the resource or user. Deleted resources are missing. */
export type ResourceNames = ReadonlyMap<string, string>;

/** Our own text, or a value that a user or an agent has chosen. */
type SentencePart = string | { value: string };

const FACTORS: Record<string, string> = {
  password: "their password",
  totp: "a code of the authenticator",
  recovery_code: "a recovery code",
  mailed_link: "a mailed link",
};

/** Keys of metadata whose value names the resource of the event. */
const NAME_KEYS = ["name", "label", "subdomain", "domain", "slug", "email"];

/** @param self the email address of the user, whom the sentences of their own log call `You`; null elsewhere. */
export function describeEvent(
  event: AuditEvent,
  names: ResourceNames,
  self: string | null = null,
): SentencePart[] {
  const isSelf = event.userEmail !== null && event.userEmail === self;
  // The expression has a group, so that every second part is the name between braces.
  const parts = AUDIT_ACTIONS[event.action].predicate.split(/\{(\w+)\}/);
  const predicate = parts.map((part, index) =>
    index % 2 === 0 ? address(part, isSelf) : { value: getValue(event, part, names, isSelf) },
  );
  const actor = isSelf ? "You" : getActor(event);
  const agent = event.metadata.by === "agent" ? ", through an agent" : "";
  return [actor, " ", ...predicate, ...getDevice(event), agent].filter((part) => part !== "");
}

/** `their password` becomes `your password` in a sentence about `You`. */
function address(text: string, isSelf: boolean): string {
  return isSelf ? text.replaceAll(/\btheir\b/g, "your") : text;
}

/** The browser and system of a sign-in. */
function getDevice({ action, metadata }: AuditEvent): SentencePart[] {
  const { deviceName } = metadata;
  const isNamed = action === "session_created" && isText(deviceName);
  return isNamed ? [" with ", { value: toText(deviceName) }] : [];
}

/** The sentence as one string, for exports. */
export function formatEvent(event: AuditEvent, names: ResourceNames): string {
  return describeEvent(event, names)
    .map((part) => (typeof part === "string" ? part : part.value))
    .join("");
}

/** The title of an action, such as `Token created`. */
export function formatAction(action: AuditAction): string {
  const text = action.replaceAll("_", " ").replace("mfa", "two-factor authentication");
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** Without an address the service itself did it: a job, or an event of another service. */
function getActor({ userEmail, ipAddress }: AuditEvent): SentencePart {
  if (userEmail !== null) return { value: userEmail };
  return ipAddress === null ? "The service" : "A person who was not signed in";
}

function getValue(event: AuditEvent, key: string, names: ResourceNames, isSelf: boolean): string {
  const { metadata, resourceId, resourceType } = event;
  if (key === "it") {
    const name = NAME_KEYS.map((each) => metadata[each]).find((value) => isText(value));
    const unknown = resourceType === "user" ? formatFormerMember(resourceId) : resourceId;
    return toText(name ?? names.get(resourceId) ?? unknown);
  }
  const value = toText(metadata[key]);
  if (key === "factor") return address(FACTORS[value] ?? value, isSelf);
  if (key === "status") return value.replaceAll("_", " ");
  return names.get(value) ?? value;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function toText(value: unknown): string {
  if (typeof value === "string") return value;
  return value === undefined || value === null ? "unknown" : JSON.stringify(value);
}
