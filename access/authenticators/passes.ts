/**
 * Visitor passes: tokens that this service signs for a signed-in visitor of one tunnel on one host. A pass is
 * verified once and cached; the allow lists decide separately on each request.
 */
import type { JWTPayload } from "jose";
import { z } from "zod";
import { ISSUER_DOWN_MS, ISSUER_KEYS_MAX_MS } from "./limits.ts";
import { isAllowedEmail, type IdentityGate, type IdentityVerdict } from "../identity.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { computeKeyedHash } from "./keyed-hash.ts";
import { OWN_ISSUER, verifyWithIssuerKeys, type TokenDeps } from "./tokens.ts";

/** Verified passes that an isolate caches. */
const VISITOR_PASSES_MAX = 10_000;
export const VISITOR_PASS_MAX_CHARS = 2_048;

/** A type of its own: no other token of this service is accepted as a pass, and no pass as another token. */
export const PASS_TYPE = "underpass-visitor+jwt";
export const PASS_ALGORITHM = "ES256";

/** The claims; `aud` is the host. */
const Pass = z.object({ email: z.string(), tunnel: z.string(), exp: z.int() });

interface Holder {
  email: string;
  untilMs: number;
}

export class PassAuthenticator {
  readonly #deps: TokenDeps;
  /** Holders of verified passes, by the keyed hash of pass, tunnel and host. */
  readonly #valid = new BoundedMap<string, Holder>(VISITOR_PASSES_MAX);

  constructor(deps: TokenDeps) {
    this.#deps = deps;
  }

  async check(gate: IdentityGate, host: string, passes: string[]): Promise<IdentityVerdict> {
    let verdict: IdentityVerdict = "signed_out";
    for (const pass of passes) {
      const holder = await this.#findHolder(pass, gate.tunnelId, host);
      if (holder === "keys_down") return { keysDownForMs: ISSUER_DOWN_MS };
      if (holder === null) continue;
      if (isAllowedEmail(gate, holder.email)) return "allowed";
      verdict = { denied: holder.email };
    }
    return verdict;
  }

  async #findHolder(
    pass: string,
    tunnelId: string,
    host: string,
  ): Promise<Holder | "keys_down" | null> {
    if (pass.length > VISITOR_PASS_MAX_CHARS) return null;
    const key = await computeKeyedHash(JSON.stringify([tunnelId, host, pass]));
    const cached = this.#valid.get(key);
    if (cached && cached.untilMs > this.#deps.now()) return cached;

    const payload = await this.#verify(pass, host);
    if (payload === "issuer_down") return "keys_down";
    const { success, data } = Pass.safeParse(payload);
    if (!success || data.tunnel !== tunnelId) return null;
    // No longer than the service's keys are cached, as with other tokens.
    const untilMs = Math.min(data.exp * 1000, this.#deps.now() + ISSUER_KEYS_MAX_MS);
    const holder = { email: data.email, untilMs };
    this.#valid.set(key, holder);
    return holder;
  }

  #verify(pass: string, host: string): Promise<JWTPayload | "issuer_down" | null> {
    return verifyWithIssuerKeys(this.#deps.keys, OWN_ISSUER, pass, {
      algorithms: [PASS_ALGORITHM],
      typ: PASS_TYPE,
      audience: host,
      requiredClaims: ["exp"],
      currentDate: new Date(this.#deps.now()),
    });
  }
}
