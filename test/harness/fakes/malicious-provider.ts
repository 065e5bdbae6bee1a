/**
 * An OpenID Connect provider whose responses a test can override one by one. Everything else conforms to the standard:
 * a code is valid once, and only with its client, redirect URI and verifier.
 */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey, type JWK } from "jose";
import { buildLocalOrigin, startHttpServer } from "./http-server.ts";

export type Claims = Record<string, unknown>;

export interface ProviderOverrides {
  claims?: (honest: Claims) => Claims;
  /** Replaces the correct signing of the claims. */
  idToken?: (claims: Claims) => Promise<string | undefined>;
  userinfo?: Claims;
  /** The `iss` parameter of the authorization response. */
  iss?: string;
  /** Replaces the responses of these paths. */
  responses?: Record<string, (response: ServerResponse) => void>;
}

export interface MaliciousProvider extends AsyncDisposable {
  issuer: string;
  /** Its answer about itself, unless a response overrides it. */
  metadata: object;
  secret: string;
  overrides: ProviderOverrides;
  /** The address of the next user who signs in. */
  email: string;
  key: { kid: string; privateKey: CryptoKey; jwk: JWK };
  /** Replaces the signing key. */
  rotateKey(alg?: string): Promise<void>;
  /** In the order of the requests. */
  requestedPaths: string[];
  /** Closes all connections and stops listening. */
  stop(): Promise<void>;
  /** Listens on the same port again. */
  start(): Promise<void>;
}

interface Grant {
  challenge: string;
  nonce: string;
  redirectUri: string;
  email: string;
}

const CLIENT_ID = "client";
const SECRET = "the-secret-of-the-client-which-is-long-enough-for-a-MAC";

/** Settings for a server that uses a provider on this port. */
export function buildMaliciousProviderSettings(port: number) {
  return {
    IDP_A_ISSUER: buildLocalOrigin(port),
    IDP_A_CLIENT_ID: CLIENT_ID,
    IDP_A_CLIENT_SECRET: SECRET,
  };
}

export async function startMaliciousProvider(port: number): Promise<MaliciousProvider> {
  const server = await startHttpServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  }, port);
  const grants = new Map<string, Grant>();
  const subjects = new Map<string, Claims>();

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? "", server.origin);
    provider.requestedPaths.push(pathname);
    const answer = provider.overrides.responses?.[pathname];
    if (answer) return answer(response);
    switch (pathname) {
      case "/authorize":
        return authorize(searchParams, response);
      case "/token":
        return token(new URLSearchParams(await text(request)), response);
      case "/userinfo": {
        const honest = subjects.get(request.headers.authorization?.slice("Bearer ".length) ?? "");
        return json(response, provider.overrides.userinfo ?? honest ?? {});
      }
      case "/keys":
        return json(response, { keys: [provider.key.jwk] });
      default:
        return json(response, provider.metadata);
    }
  }

  function authorize(params: URLSearchParams, response: ServerResponse): void {
    const code = crypto.randomUUID();
    const redirectUri = params.get("redirect_uri") ?? "";
    const challenge = params.get("code_challenge") ?? "";
    const nonce = params.get("nonce") ?? "";
    grants.set(code, { challenge, nonce, redirectUri, email: provider.email });
    const back = new URL(redirectUri);
    const { iss = server.origin } = provider.overrides;
    const answer = { code, iss, state: params.get("state") ?? "" };
    for (const [name, value] of Object.entries(answer)) back.searchParams.set(name, value);
    response.writeHead(302, { location: back.href }).end();
  }

  async function token(params: URLSearchParams, response: ServerResponse): Promise<void> {
    const code = params.get("code") ?? "";
    const grant = grants.get(code);
    grants.delete(code);
    const verifier = params.get("code_verifier") ?? "";
    const isValid =
      grant?.redirectUri === params.get("redirect_uri") &&
      grant.challenge === createHash("sha256").update(verifier).digest("base64url") &&
      params.get("client_id") === CLIENT_ID &&
      params.get("client_secret") === SECRET;
    if (!isValid) return json(response, { error: "invalid_grant" }, 400);

    const now = Math.floor(Date.now() / 1000);
    const subject = { sub: `of ${grant.email}`, email: grant.email, email_verified: true };
    const times = { iat: now, exp: now + 60 };
    const honest = { iss: server.origin, aud: CLIENT_ID, nonce: grant.nonce, ...times, ...subject };
    const { claims = (same) => same, idToken = sign } = provider.overrides;
    const access_token = crypto.randomUUID();
    subjects.set(access_token, subject);
    const id_token = await idToken(claims(honest));
    json(response, { access_token, token_type: "Bearer", id_token });
  }

  function sign(claims: Claims): Promise<string> {
    const { kid, privateKey, jwk } = provider.key;
    return new SignJWT(claims).setProtectedHeader({ alg: jwk.alg!, kid }).sign(privateKey);
  }

  const provider: MaliciousProvider = {
    issuer: server.origin,
    metadata: {
      issuer: server.origin,
      authorization_endpoint: `${server.origin}/authorize`,
      token_endpoint: `${server.origin}/token`,
      userinfo_endpoint: `${server.origin}/userinfo`,
      jwks_uri: `${server.origin}/keys`,
      token_endpoint_auth_methods_supported: ["client_secret_post"],
      authorization_response_iss_parameter_supported: true,
      // Claims to support insecure algorithms too.
      id_token_signing_alg_values_supported: ["RS256", "ES256", "EdDSA", "HS256", "none", "None"],
    },
    secret: SECRET,
    overrides: {},
    email: "",
    key: await newKey("RS256"),
    async rotateKey(alg = "RS256") {
      provider.key = await newKey(alg);
    },
    requestedPaths: [],
    stop: () => server.stop(),
    start: () => server.start(),
    [Symbol.asyncDispose]: () => server.stop(),
  };
  return provider;
}

async function newKey(alg: string) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const kid = crypto.randomUUID();
  return { kid, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
