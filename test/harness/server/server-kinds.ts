/** The kinds of servers that test files share, by their settings. */
import { buildIdentityProviderSettings } from "../fakes/identity-provider.ts";
import { buildMaliciousProviderSettings } from "../fakes/malicious-provider.ts";
import { buildOAuthProviderSettings } from "../fakes/oauth-provider.ts";
import { buildPaymentSettings } from "../fakes/payments.ts";
import { buildResolverSettings } from "../fakes/resolver.ts";

export type Settings = Record<string, string>;

const FAKES = ["resolver", "identityProvider", "oauthProvider", "paymentProvider"] as const;
/** The port on which a server expects each fake. */
export type FakePorts = Record<(typeof FAKES)[number], number>;
export const FAKE_PORTS_COUNT = FAKES.length;

/** @param first of as many consecutive ports as there are fakes. */
export function assignFakePorts(first: number): FakePorts {
  return Object.fromEntries(FAKES.map((name, n) => [name, first + n])) as FakePorts;
}

/** The secret of all relays of tests. */
export const RELAY_SECRET = "a secret that only relays and this service know";

/** Nothing depends on a fake before a test uses it: a fake that does not run is a service that is down. */
function buildStandardSettings(ports: FakePorts): Settings {
  return {
    ...buildResolverSettings(ports.resolver),
    ...buildIdentityProviderSettings(ports.identityProvider),
    RELAY_SECRET,
  };
}

/** A server treats an empty setting as one that is not set. */
const WITHOUT_IDENTITY_PROVIDER = {
  IDP_A_ISSUER: "",
  IDP_A_CLIENT_ID: "",
  IDP_A_CLIENT_SECRET: "",
};

const BUILDERS = {
  standard: buildStandardSettings,
  /** Behind a TLS proxy, which reports the addresses that limits count. It allows replays, and no gates with a sign-in. */
  public: (ports: FakePorts) => ({
    ...buildStandardSettings(ports),
    ...WITHOUT_IDENTITY_PROVIDER,
    ...buildOAuthProviderSettings(ports.oauthProvider),
    ALLOW_REPLAY: "true",
    API_HOSTS: "underpass.example,localhost,127.0.0.1",
    AUTH_RATE_LIMIT: "on",
    PUBLIC_SCHEME: "https",
    TRUST_PROXY: "true",
  }),
  /** Servers cache the metadata of their identity provider, so the malicious one has servers of its own. */
  maliciousProvider: (ports: FakePorts) => ({
    ...buildStandardSettings(ports),
    ...buildMaliciousProviderSettings(ports.identityProvider),
    ...buildOAuthProviderSettings(ports.oauthProvider),
  }),
  /** New organizations have the plan `free`. */
  payments: (ports: FakePorts) => ({
    ...buildStandardSettings(ports),
    ...buildPaymentSettings(ports.paymentProvider),
    DEFAULT_PLAN: "free",
  }),
  /** Plans are bought without a payment provider. New organizations have the plan `free`. */
  mockBilling: (ports: FakePorts) => ({
    ...buildStandardSettings(ports),
    BILLING_MODE: "mock",
    DEFAULT_PLAN: "free",
  }),
} satisfies Record<string, (ports: FakePorts) => Settings>;

export type ServerKind = keyof typeof BUILDERS;

export function buildServerSettings(kind: ServerKind, ports: FakePorts): Settings {
  return BUILDERS[kind](ports);
}
