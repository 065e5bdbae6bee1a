/** Describes the gates of a tunnel to its user: what visitors must bring, and which gates this command did not set. */
import { nameKeys, type OptionSource } from "../config/option-keys.ts";
import { GATE_NAMES, type GateName } from "../../protocol/wire/frames.ts";

export interface TunnelGates {
  tunnelId: string;
  /** As the server names them; a later version may have further ones. */
  names: readonly string[];
  /** Those that this command has asked for. */
  ownNames: readonly GateName[];
  /** Only the commands of TCP tunnels have `--allow`. */
  isTcp?: boolean;
}

/** What visitors bring, the gate itself, and how it is removed: by an option of the agent, or else by a route of the API. */
const TEXTS: Record<GateName, { visitors: string; gate: string; option?: string; route?: string }> =
  {
    password: { visitors: "a password", gate: "the password", option: "--basic-auth=off" },
    sign_in: { visitors: "a sign-in", gate: "the sign-in", route: "edge-auth" },
    token: { visitors: "a token (JWT)", gate: "the check of tokens", option: "--policy-file=off" },
    addresses: { visitors: "", gate: "the list of addresses", route: "ip-allowlist" },
    policy: { visitors: "", gate: "the traffic policy", option: "--policy-file=off" },
  };

/** @returns such as `with a password, from allowed addresses`; undefined when all requests of all visitors are served. */
export function describeGates({ names }: TunnelGates): string | undefined {
  const credentials = GATE_NAMES.filter(
    (name) => TEXTS[name].visitors !== "" && names.includes(name),
  );
  const parts = [
    ...(credentials.length > 0
      ? [`with ${joinTexts(credentials.map((name) => TEXTS[name].visitors))}`]
      : []),
    ...(names.includes("addresses") ? ["from allowed addresses"] : []),
    ...(names.includes("policy") ? ["under a traffic policy"] : []),
  ];
  return parts.length === 0 ? undefined : parts.join(", ");
}

/**
 * @returns how to remove the gates that this command did not set; undefined when there are none.
 */
export function describeUnchangedGates(
  { tunnelId, names, ownNames, isTcp }: TunnelGates,
  source: OptionSource = "command_line",
): string | undefined {
  const unchanged = GATE_NAMES.filter(
    (name) =>
      names.includes(name) &&
      !ownNames.includes(name) &&
      // The check of tokens is a part of the policy. An earlier server names it alone.
      !(name === "token" && names.includes("policy")),
  );
  if (unchanged.length === 0) return undefined;
  const [were, them] = unchanged.length === 1 ? ["was", "it"] : ["were", "them"];
  const gates = joinTexts(unchanged.map((name) => TEXTS[name].gate));
  const ways = unchanged.map((name) => {
    const { option = isTcp && name === "addresses" ? "--allow=off" : undefined, route } =
      TEXTS[name];
    if (option === undefined) return `DELETE /tunnels/${tunnelId}/${route} (API)`;
    return source === "file" ? nameKeys(option) : option;
  });
  return `${gates} ${were} not set by this command; to remove ${them}: ${ways.join(", ")}`;
}

/** Shown while visitors get the maintenance page. */
export function describeMaintenance(tunnelId: string): string {
  return `in maintenance: visitors get 503; to end it: DELETE /tunnels/${tunnelId}/maintenance (API)`;
}

/** `a, b and c` */
function joinTexts(texts: string[]): string {
  const last = texts.at(-1) ?? "";
  return texts.length < 2 ? last : `${texts.slice(0, -1).join(", ")} and ${last}`;
}
