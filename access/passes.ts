/**
 * Passes of visitors who signed in: tokens that this service signs for one tunnel on one host. They are
 * checked once and remembered; what they may open is not decided here.
 */
import type { JWTPayload } from "jose";
import { z } from "zod";
import { ISSUER_DOWN_MS, ISSUER_KEYS_MAX_MS } from "./limits.ts";
import { isOnList, type IdentityGate, type IdentityVerdict } from "./identity.ts";
import { remember } from "../shared/bounded-map.ts";
import { keyedHash } from "./secrets.ts";
import { OWN_ISSUER, verifiedBy, type TokenTools } from "./tokens.ts";

/** Passes that an isolate remembers as good, and cookies of that name that it looks at in one request. */
const VISITOR_PASSES_MAX = 10_000;
export const VISITOR_PASS_MAX_CHARS = 2_048;

/** No other token of ours can be taken for a pass, nor a pass for one of them. */
export const PASS_TYPE = "underpass-visitor+jwt";
export const PASS_ALGORITHM = "ES256";

/** `aud` is the host. */
const Pass = z.object({ email: z.string(), tunnel: z.string(), exp: z.int() });

interface Holder {
  email: string;
  untilMs: number;
}

export class PassGate {
  readonly #tools: TokenTools;
  /** By keyed hashes of a pass together with where it is good: whose it is, and until when. */
  readonly #good = new Map<string, Holder>();

  constructor(tools: TokenTools) {
    this.#tools = tools;
  }

  async check(gate: IdentityGate, host: string, passes: string[]): Promise<IdentityVerdict> {
    let verdict: IdentityVerdict = "unknown";
    for (const pass of passes) {
      const holder = await this.#holderOf(pass, gate.tunnelId, host);
      if (holder === "keys_down") return { keysDownForMs: ISSUER_DOWN_MS };
      if (holder === null) continue;
      if (isOnList(gate, holder.email)) return "allowed";
      verdict = { denied: holder.email };
    }
    return verdict;
  }

  async #holderOf(
    pass: string,
    tunnelId: string,
    host: string,
  ): Promise<Holder | "keys_down" | null> {
    if (pass.length > VISITOR_PASS_MAX_CHARS) return null;
    const key = await keyedHash(JSON.stringify([tunnelId, host, pass]));
    const known = this.#good.get(key);
    if (known && known.untilMs > this.#tools.now()) return known;

    const payload = await this.#verify(pass, host);
    if (payload === "issuer_down") return "keys_down";
    const { success, data } = Pass.safeParse(payload);
    if (!success || data.tunnel !== tunnelId) return null;
    // No longer than the service's keys are believed, as with other tokens.
    const untilMs = Math.min(data.exp * 1000, this.#tools.now() + ISSUER_KEYS_MAX_MS);
    const holder = { email: data.email, untilMs };
    remember(this.#good, key, holder, VISITOR_PASSES_MAX);
    return holder;
  }

  #verify(pass: string, host: string): Promise<JWTPayload | "issuer_down" | null> {
    return verifiedBy(this.#tools.keys, OWN_ISSUER, pass, {
      algorithms: [PASS_ALGORITHM],
      typ: PASS_TYPE,
      audience: host,
      requiredClaims: ["exp"],
      currentDate: new Date(this.#tools.now()),
    });
  }
}
