/** The providers of third-party sign-in that the operator configured. */
import { PROVIDERS, type ProviderName } from "../../../protocol/schemas/accounts/providers.ts";
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { createIdpA } from "./idp-a.ts";
import { createIdpB } from "./idp-b.ts";
import type { Provider } from "./provider.ts";

/** @returns null when it is not configured. */
export function findProvider(env: Env, config: Config, name: ProviderName): Provider | null {
  switch (name) {
    case "idp_a":
      return createIdpA(env, config);
    case "idp_b":
      return createIdpB(env, config);
  }
}

/** The provider for visitors of tunnels: the same one, with another redirect URI. */
export function findVisitorProvider(env: Env, config: Config): Provider | null {
  return createIdpA(env, config, `${config.publicOrigin}/edge-auth/callback`);
}

export function listConfiguredProviders(env: Env, config: Config): ProviderName[] {
  return PROVIDERS.filter((name) => findProvider(env, config, name) !== null);
}
