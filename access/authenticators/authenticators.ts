/**
 * The slow parts of authorization, shared by all tunnels that an isolate authorizes for. Their libraries are
 * loaded when the first visitor sends a password or a token: most isolates never need them.
 */
import { waitUntil } from "cloudflare:workers";
import type { JSONWebKeySet } from "jose";
import { parseHost, toRouteName } from "../../protocol/hosts.ts";
import {
  getPublicAddress,
  getServiceDomain,
  type PublicAddressSettings,
} from "../../protocol/public-address.ts";
import { isFromForeignPage, SIGN_IN_TICKET_PATH } from "../identity.ts";
import type { IssuerKeys } from "./issuer-keys.ts";
import type { Authenticators } from "../access-request.ts";
import { readPasses } from "./visitor-cookies.ts";
import type { PassAuthenticator } from "./passes.ts";
import { PasswordAuthenticator } from "./passwords.ts";
import type { JwtAuthenticator } from "./tokens.ts";

/** The settings that the authenticators read, and the source of the service's own public keys. */
export interface AccessBindings extends PublicAddressSettings {
  INTERNAL_API: { getAccessTokenJwks(): Promise<JSONWebKeySet> };
  ALLOW_PRIVATE_FETCH?: string;
}

const now = () => Date.now();

const passwords = new PasswordAuthenticator({
  verify: async (hash, password) => (await import("./argon2.ts")).verifySecret(hash, password),
  now,
  wait: (ms) => scheduler.wait(ms),
});

let issuerKeys: IssuerKeys | undefined;
let tokens: JwtAuthenticator | undefined;
let passes: PassAuthenticator | undefined;

export function buildAuthenticators(env: AccessBindings): Authenticators {
  return {
    password: (auth, visitor) => passwords.check(auth, visitor),
    async identity(gate, request) {
      const { authority, path, cookie } = request;
      const host = parseHost(authority) ?? "";
      if (isCustomHost(host, env)) return "allowed";
      if (path === SIGN_IN_TICKET_PATH) return "redeeming";
      const cookies = cookie === null ? [] : readPasses(cookie, env.PUBLIC_SCHEME ?? "http");
      if (cookies.length === 0) return "signed_out";
      passes ??= await loadPasses(env);
      const verdict = await passes.check(gate, host, cookies);
      return verdict === "allowed" && isFromForeignPage(request) ? "foreign_page" : verdict;
    },
    async token(rule, subdomain, { authorization, tunnelId }) {
      tokens ??= await loadTokens(env);
      const host = `${subdomain}.${getServiceDomain(env)}`;
      return tokens.check(rule, authorization, { tunnelId, host });
    },
  };
}

/** The identity gate applies to hosts below the service's own domain: custom domains have their own sign-in. */
function isCustomHost(host: string, env: AccessBindings): boolean {
  return host !== "" && toRouteName(host, getServiceDomain(env)) === host;
}

async function loadTokens(env: AccessBindings): Promise<JwtAuthenticator> {
  const [keys, { JwtAuthenticator }] = await Promise.all([loadKeys(env), import("./tokens.ts")]);
  return new JwtAuthenticator({ keys, now, apiOrigin: getPublicAddress(env).apiOrigin });
}

async function loadPasses(env: AccessBindings): Promise<PassAuthenticator> {
  const [keys, { PassAuthenticator }] = await Promise.all([loadKeys(env), import("./passes.ts")]);
  return new PassAuthenticator({ keys, now });
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
        ? env.INTERNAL_API.getAccessTokenJwks()
        : discoverKeys(issuer, (url) => fetchJson(url, { allowHttp }));
    // Other visitors wait for the same response, even when the first one has disconnected.
    waitUntil(loading.catch(() => undefined));
    return loading;
  }, now);
  return issuerKeys;
}
