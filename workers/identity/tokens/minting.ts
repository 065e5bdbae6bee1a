/** Builds the row of a new token from a request, and the signed bytes that an agent sends from the row. */
import { TOKEN_BANDWIDTH_DEFAULT_MBPS, TOKEN_TUNNELS_DEFAULT } from "../../../protocol/limits.ts";
import type { Config } from "../../config/config.ts";
import type { NewToken, TokenRow } from "../../store/tokens/tokens.ts";
import { signCapabilityToken } from "./capability-token.ts";
import { fromHex, toHex } from "../../../shared/bytes.ts";
import { getCapabilityTokenKeys } from "../keys.ts";
import { HOUR_MS } from "../../../shared/time.ts";

const CLI_TOKEN_DAYS = 90;
const CLI_TOKEN_TUNNELS = 100;
const CLI_TOKEN_BANDWIDTH_MBPS = 10_000;

const NONCE_BYTES = 16;

/** The permissions and the lifetime of a new agent token. */
interface TokenScope {
  name: string;
  ttlHours: number;
  allowedSubdomains: string[];
  bandwidthLimitMbps: number;
  tunnelQuota: number;
}

export function newAgentToken({ ttlHours, ...scope }: TokenScope): NewToken {
  return { ...scope, kind: "agent", ...createIdentity(ttlHours * HOUR_MS) };
}

/** A master key mints tokens of projects. It opens no tunnels itself. */
export function newMasterKey(name: string, ttlDays: number): NewToken {
  return {
    name,
    kind: "master",
    allowedSubdomains: [],
    bandwidthLimitMbps: TOKEN_BANDWIDTH_DEFAULT_MBPS,
    tunnelQuota: 0,
    ...createIdentity(ttlDays * 24 * HOUR_MS),
  };
}

/**
 * For a job of continuous integration, which needs the token for its own duration only.
 *
 * @param masterKey mints the token, which expires with it at the latest: a thief of the key must not get a longer access.
 */
export function newProjectToken(
  request: Pick<TokenScope, "name" | "ttlHours" | "allowedSubdomains">,
  masterKey?: { expiresAt: Date },
): NewToken {
  const token = newAgentToken({
    ...request,
    bandwidthLimitMbps: TOKEN_BANDWIDTH_DEFAULT_MBPS,
    tunnelQuota: TOKEN_TUNNELS_DEFAULT,
  });
  return masterKey ? endBy(token, masterKey.expiresAt) : token;
}

/**
 * The successor of a rotated token: the same scope, and the same validity period as the old one had.
 *
 * @param masterKey has minted the old token; the new one expires with it at the latest too, but not before the old one.
 */
export function newRotatedToken(old: TokenRow, masterKey?: { expiresAt: Date }): NewToken {
  const { kind, name, allowedSubdomains, bandwidthLimitMbps, tunnelQuota, issuedAt, expiresAt } =
    old;
  const scope = { kind, name, allowedSubdomains, bandwidthLimitMbps, tunnelQuota };
  const token = { ...scope, ...createIdentity(expiresAt.getTime() - startOfSecondMs(issuedAt)) };
  if (!masterKey) return token;
  return endBy(token, masterKey.expiresAt > expiresAt ? masterKey.expiresAt : expiresAt);
}

function endBy(token: NewToken, time: Date): NewToken {
  return time < token.expiresAt ? { ...token, expiresAt: time } : token;
}

/** The fields that differ in each token: its nonce, and its validity from now on. */
function createIdentity(validMs: number): Pick<NewToken, "nonce" | "issuedAt" | "expiresAt"> {
  // With milliseconds, because tokens are listed in this order.
  const issuedAt = new Date();
  return {
    nonce: toHex(crypto.getRandomValues(new Uint8Array(NONCE_BYTES))),
    issuedAt,
    // A whole second, as in the signed bytes: the row and the token must expire together.
    expiresAt: new Date(startOfSecondMs(issuedAt) + validMs),
  };
}

function startOfSecondMs(time: Date): number {
  return toUnixSeconds(time) * 1000;
}

/** For a person's own machine: all subdomains, and quotas that are too high to be reached. */
export function newCliToken(label: string): NewToken {
  return newAgentToken({
    name: label,
    ttlHours: CLI_TOKEN_DAYS * 24,
    allowedSubdomains: ["*"],
    bandwidthLimitMbps: CLI_TOKEN_BANDWIDTH_MBPS,
    tunnelQuota: CLI_TOKEN_TUNNELS,
  });
}

/** The same row always gives the same bytes, so the bytes need not be stored until the agent collects them. */
export async function signTokenRow(config: Config, token: TokenRow): Promise<Uint8Array> {
  return signCapabilityToken(
    {
      kind: token.kind,
      nonce: fromHex(token.nonce),
      organizationId: fromHex(token.orgId.replaceAll("-", "")),
      project: token.projectSlug,
      allowedSubdomains: token.allowedSubdomains,
      tunnelQuota: token.tunnelQuota,
      bandwidthLimitMbps: token.bandwidthLimitMbps,
      issuedAtSeconds: toUnixSeconds(token.issuedAt),
      expiresAtSeconds: toUnixSeconds(token.expiresAt),
    },
    await getCapabilityTokenKeys(config),
  );
}

export function toUnixSeconds(time: Date): number {
  return Math.floor(time.getTime() / 1000);
}
