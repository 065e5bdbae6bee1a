/**
 * The slow checks of an isolate, shared by all tunnels that it judges for. What they need is loaded when the
 * first visitor shows a password or a token: most isolates never do.
 */
import { waitUntil } from "cloudflare:workers";
import type { ObjectBindings } from "../bindings.ts";
import type { Checks } from "./judge.ts";
import { PasswordGate } from "./passwords.ts";
import type { TokenGate } from "./tokens.ts";

const now = () => Date.now();

const passwords = new PasswordGate({
  verify: async (hash, password) => (await import("./argon2.ts")).verifySecret(hash, password),
  now,
  wait: (ms) => scheduler.wait(ms),
});

let tokens: TokenGate | undefined;

export function checksOf(env: ObjectBindings): Checks {
  return {
    password: (auth, visitor) => passwords.check(auth, visitor),
    async token(rule, authorization) {
      tokens ??= await loadTokens(env);
      return tokens.check(rule, authorization);
    },
  };
}

async function loadTokens(env: ObjectBindings): Promise<TokenGate> {
  const [{ discoverKeys, fetchJson, IssuerKeys }, { OWN_ISSUER, TokenGate }] = await Promise.all([
    import("./issuer-keys.ts"),
    import("./tokens.ts"),
  ]);
  const allowHttp = env.ALLOW_PRIVATE_FETCH === "true";
  const keys = new IssuerKeys((issuer) => {
    const loading =
      issuer === OWN_ISSUER
        ? env.ROWS.tokenKeys()
        : discoverKeys(issuer, (url) => fetchJson(url, { allowHttp }));
    // Others wait for the same answer, also when the visitor who asked first has left.
    waitUntil(loading.catch(() => undefined));
    return loading;
  }, now);
  return new TokenGate({ keys, now });
}
