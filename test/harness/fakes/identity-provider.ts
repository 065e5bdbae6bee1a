/** A real OpenID Connect provider that signs every user in without asking. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";
import { buildLocalOrigin, startHttpServer } from "./http-server.ts";

export type ProviderUser = { sub: string; email?: string; email_verified?: boolean };

export interface IdentityProvider extends AsyncDisposable {
  issuer: string;
  /** Settings for a server that uses this provider. */
  settings: Record<string, string>;
  /** Registers the client. The redirect URI is known as soon as the server listens. */
  register(redirectUri: string): Promise<void>;
  /** The user who signs in; null: the user denies access. */
  user: ProviderUser | null;
}

const CLIENT = { client_id: "underpass-test", client_secret: "a secret: of words & signs" };

/** Settings for a server that uses a provider on this port. */
export function buildIdentityProviderSettings(port: number) {
  return {
    IDP_A_ISSUER: buildLocalOrigin(port),
    IDP_A_CLIENT_ID: CLIENT.client_id,
    IDP_A_CLIENT_SECRET: CLIENT.client_secret,
  };
}

/** @param port 0: any free one. */
export async function startIdentityProvider(port = 0): Promise<IdentityProvider> {
  let provider: Provider | undefined;
  const people = new Map<string, ProviderUser>();
  const server = await startHttpServer((request, response) => {
    const handled = request.url?.startsWith("/interaction/")
      ? interact(request, response)
      : provider?.callback()(request, response);
    handled?.catch((error: unknown) => response.writeHead(500).end(String(error)));
  }, port);

  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { user } = started;
    const { prompt, session } = await provider!.interactionDetails(request, response);
    if (user === null) {
      const denial = { error: "access_denied", error_description: "<b>no</b>" };
      return provider!.interactionFinished(request, response, denial);
    }
    people.set(user.sub, user);
    if (prompt.name === "login") {
      const login = { accountId: user.sub };
      return provider!.interactionFinished(request, response, { login });
    }
    const { client_id: clientId } = CLIENT;
    const grant = new provider!.Grant({ accountId: session!.accountId, clientId });
    grant.addOIDCScope("openid email");
    const consent = { grantId: await grant.save() };
    return provider!.interactionFinished(request, response, { consent });
  }

  const started: IdentityProvider = {
    issuer: server.origin,
    settings: buildIdentityProviderSettings(server.port),
    user: null,
    async register(redirectUri) {
      const { privateKey } = await generateKeyPair("RS256", { extractable: true });
      provider = new Provider(server.origin, {
        clients: [{ ...CLIENT, redirect_uris: [redirectUri] }],
        jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", use: "sig" }] },
        cookies: { keys: [crypto.randomUUID()] },
        claims: { openid: ["sub"], email: ["email", "email_verified"] },
        ttl: {
          AccessToken: 60,
          AuthorizationCode: 60,
          Grant: 60,
          IdToken: 60,
          Interaction: 60,
          Session: 60,
        },
        pkce: { required: () => true },
        features: { devInteractions: { enabled: false } },
        interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
        findAccount: (_context, id) => ({
          accountId: id,
          claims: () => people.get(id) ?? { sub: id },
        }),
      });
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
  return started;
}
