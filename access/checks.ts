/**
 * The slow checks of an isolate, shared by all tunnels that it judges for. What they need is loaded when the
 * first visitor shows a password or a token: most isolates never do.
 */
import { waitUntil } from "cloudflare:workers";
import type { JSONWebKeySet } from "jose";
import { hostOf, routeNameOf } from "../protocol/hosts.ts";
import { TICKET_PATH } from "./identity.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import type { Checks } from "./judge.ts";
import { passesIn } from "./pass-cookie.ts";
import type { PassGate } from "./passes.ts";
import { PasswordGate } from "./passwords.ts";
import type { TokenGate } from "./tokens.ts";

/** The settings that these checks read, and where they get the service's own public keys. */
export interface AccessBindings {
  ROWS: { tokenKeys(): Promise<JSONWebKeySet> };
  PUBLIC_SCHEME?: string;
  SERVICE_DOMAIN?: string;
  ALLOW_PRIVATE_FETCH?: string;
}

const now = () => Date.now();

const passwords = new PasswordGate({
  verify: async (hash, password) => (await import("./argon2.ts")).verifySecret(hash, password),
  now,
  wait: (ms) => scheduler.wait(ms),
});

let issuerKeys: IssuerKeys | undefined;
let tokens: TokenGate | undefined;
let passes: PassGate | undefined;

export function checksOf(env: AccessBindings): Checks {
  return {
    password: (auth, visitor) => passwords.check(auth, visitor),
    async identity(gate, { authority, path, cookie }) {
      const host = hostOf(authority) ?? "";
      if (isCustomHost(host, env)) return "allowed";
      if (path === TICKET_PATH) return "arriving";
      const shown = cookie === null ? [] : passesIn(cookie, env.PUBLIC_SCHEME ?? "http");
      if (shown.length === 0) return "unknown";
      passes ??= await loadPasses(env);
      return passes.check(gate, host, shown);
    },
    async token(rule, authorization) {
      tokens ??= await loadTokens(env);
      return tokens.check(rule, authorization);
    },
  };
}

/** The gate is for hosts below the service's own domain: an owner's domain has a sign-in of its own. */
function isCustomHost(host: string, { SERVICE_DOMAIN: domain = "localhost" }: AccessBindings) {
  return host !== "" && routeNameOf(host, domain.toLowerCase()) === host;
}

async function loadTokens(env: AccessBindings): Promise<TokenGate> {
  const [keys, { TokenGate }] = await Promise.all([loadKeys(env), import("./tokens.ts")]);
  return new TokenGate({ keys, now });
}

async function loadPasses(env: AccessBindings): Promise<PassGate> {
  const [keys, { PassGate }] = await Promise.all([loadKeys(env), import("./passes.ts")]);
  return new PassGate({ keys, now });
}

async function loadKeys(env: AccessBindings): Promise<IssuerKeys> {
  const [{ discoverKeys, fetchJson, IssuerKeys }, { OWN_ISSUER }] = await Promise.all([
    import("./issuer-keys.ts"),
    import("./tokens.ts"),
  ]);
  const allowHttp = env.ALLOW_PRIVATE_FETCH === "true";
  issuerKeys ??= new IssuerKeys((issuer) => {
    const loading =
      issuer === OWN_ISSUER
        ? env.ROWS.tokenKeys()
        : discoverKeys(issuer, (url) => fetchJson(url, { allowHttp }));
    // Others wait for the same answer, also when the visitor who asked first has left.
    waitUntil(loading.catch(() => undefined));
    return loading;
  }, now);
  return issuerKeys;
}
