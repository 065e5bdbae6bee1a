/** What the user learns about the gates of a tunnel: what visitors must bring, and which gates this command did not set. */
import { GATE_NAMES, type GateName } from "../../protocol/wire/frames.ts";

export interface TunnelGates {
  tunnelId: string;
  /** As the server names them; a later version may have further ones. */
  names: readonly string[];
  /** Those that this command has asked for. */
  ownNames: readonly GateName[];
}

/** What visitors bring, the gate itself, and the end of the API's route that removes it. */
const TEXTS: Record<GateName, { visitors: string; gate: string; route: string }> = {
  password: { visitors: "a password", gate: "the password", route: "auth" },
  sign_in: { visitors: "a sign-in", gate: "the sign-in", route: "edge-auth" },
  token: { visitors: "a token (JWT)", gate: "the check of tokens", route: "policy" },
  addresses: { visitors: "", gate: "the list of addresses", route: "ip-allowlist" },
};

/** @returns such as `with a password, from allowed addresses`; undefined when every visitor is served. */
export function describeGates({ names }: TunnelGates): string | undefined {
  const credentials = GATE_NAMES.filter((name) => name !== "addresses" && names.includes(name));
  const parts = [
    ...(credentials.length > 0
      ? [`with ${joinTexts(credentials.map((name) => TEXTS[name].visitors))}`]
      : []),
    ...(names.includes("addresses") ? ["from allowed addresses"] : []),
  ];
  return parts.length === 0 ? undefined : parts.join(", ");
}

/** @returns how to remove the gates that this command did not set; undefined when there are none. */
export function describeKeptGates({ tunnelId, names, ownNames }: TunnelGates): string | undefined {
  const kept = GATE_NAMES.filter((name) => names.includes(name) && !ownNames.includes(name));
  if (kept.length === 0) return undefined;
  const [were, them] = kept.length === 1 ? ["was", "it"] : ["were", "them"];
  const gates = joinTexts(kept.map((name) => TEXTS[name].gate));
  const calls = kept.map((name) => `DELETE /tunnels/${tunnelId}/${TEXTS[name].route}`);
  return `${gates} ${were} not set by this command; remove ${them} through the API: ${calls.join(", ")}`;
}

/** `a, b and c` */
function joinTexts(texts: string[]): string {
  const last = texts.at(-1) ?? "";
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(", ")} and ${last}`;
}
