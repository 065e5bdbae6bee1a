/** `idp_a`: any OpenID Connect provider that supports discovery. */
import * as oidc from "oauth4webapi";
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { buildCallOptions, isCodeRejected } from "./calls.ts";
import {
  buildAuthorizationUrl,
  toDenial,
  parseVerifiedEmail,
  buildRedirectUri,
  Subject,
  type Identification,
  type Provider,
} from "./provider.ts";
import { MINUTE_MS } from "../../../shared/time.ts";

/** How long an isolate caches a provider's metadata. */
const PROVIDER_METADATA_MAX_MS = 10 * MINUTE_MS;
const PROVIDER_CLOCK_TOLERANCE_SECONDS = 30;

const NAME = "idp_a";

const REQUIRED_ENDPOINTS = ["authorization_endpoint", "token_endpoint", "jwks_uri"] as const;
type Server = oidc.AuthorizationServer & Record<(typeof REQUIRED_ENDPOINTS)[number], string>;
type Options = ReturnType<typeof buildCallOptions>;

/**
 * @param redirect_uri as registered with the provider.
 * @returns null when it is not configured.
 */
export function createIdpA(
  env: Env,
  config: Config,
  redirect_uri = buildRedirectUri(config, NAME),
): Provider | null {
  const { IDP_A_ISSUER, IDP_A_CLIENT_ID: client_id, IDP_A_CLIENT_SECRET: secret } = config;
  if (IDP_A_ISSUER === undefined || client_id === undefined || secret === undefined) return null;
  const issuer = new URL(IDP_A_ISSUER);
  const options = buildCallOptions(env, issuer);
  const client = { client_id, [oidc.clockTolerance]: PROVIDER_CLOCK_TOLERANCE_SECONDS };

  return {
    name: NAME,
    host: issuer.host,

    async authorizationUrl(attempt, account) {
      const as = await discover(issuer, options);
      const { nonce } = attempt;
      const parameters = { client_id, redirect_uri, scope: "openid email", nonce };
      const all =
        account === "another" ? { ...parameters, prompt: getAccountSwitchPrompt(as) } : parameters;
      return buildAuthorizationUrl(as.authorization_endpoint, attempt, all);
    },

    async identify(attempt, answer) {
      const as = await discover(issuer, options);
      const parameters = validateResponse(as, client, answer, attempt.state);
      if (!(parameters instanceof URLSearchParams)) return parameters;

      const response = await oidc.authorizationCodeGrantRequest(
        as,
        client,
        getClientAuthentication(as, secret),
        parameters,
        redirect_uri,
        attempt.verifier,
        options,
      );
      const tokens = await oidc
        .processAuthorizationCodeResponse(as, client, response, {
          expectedNonce: attempt.nonce,
          requireIdToken: true,
        })
        .catch((failure: unknown) => {
          if (isCodeRejected(failure)) return null;
          throw failure;
        });
      if (!tokens) return { kind: "invalid_answer" };
      await verifySignature(as, response, issuer, options);
      const claims = oidc.getValidatedIdTokenClaims(tokens);
      if (!claims) throw new Error("the provider sent no ID token");
      checkClaims(claims, client_id);

      const identity = { claims, accessToken: tokens.access_token };
      const email = await fetchVerifiedEmail(as, client, identity, options);
      const subject = Subject.parse(claims.sub);
      return { kind: "account", account: { issuer: as.issuer, subject, email } };
    },
  };
}

/** `select_account`, unless the provider says that it does not support it: then `login`, which asks for the password. */
function getAccountSwitchPrompt({ prompt_values_supported: supported }: Server): string {
  return Array.isArray(supported) && !supported.includes("select_account")
    ? "login"
    : "select_account";
}

/** The provider's metadata, cached per isolate. The library caches its keys together with it. */
let cached: { issuer: string; as: Server; expiresAtMs: number } | undefined;

async function discover(issuer: URL, options: Options): Promise<Server> {
  if (cached?.issuer === issuer.href && Date.now() < cached.expiresAtMs) return cached.as;
  const response = await oidc.discoveryRequest(issuer, options);
  const as = await oidc.processDiscoveryResponse(issuer, response);
  requireEndpoints(as, options[oidc.allowInsecureRequests]);
  cached = { issuer: issuer.href, as, expiresAtMs: Date.now() + PROVIDER_METADATA_MAX_MS };
  return as;
}

/**
 * Metadata that no sign-in can be completed with must not be cached, because it is used for minutes.
 * @param isInsecure whether the operator configured this provider without TLS.
 */
function requireEndpoints(as: oidc.AuthorizationServer, isInsecure: boolean): asserts as is Server {
  for (const name of REQUIRED_ENDPOINTS) {
    const protocol = URL.parse(as[name] ?? "")?.protocol;
    if (protocol !== "https:" && !(isInsecure && protocol === "http:"))
      throw new Error(`the provider's metadata has no valid ${name}`);
  }
}

/** Compares `iss` (RFC 9207) where it is present or announced, so that another provider's answer is rejected. */
function validateResponse(
  as: Server,
  client: oidc.Client,
  answer: URLSearchParams,
  state: string,
): URLSearchParams | Identification {
  try {
    const parameters = oidc.validateAuthResponse(as, client, answer, state);
    return parameters.has("code") ? parameters : { kind: "invalid_answer" };
  } catch (failure) {
    if (failure instanceof oidc.AuthorizationResponseError) return toDenial(failure.error);
    if (failure instanceof oidc.OperationProcessingError) return { kind: "invalid_answer" };
    throw failure;
  }
}

/** HTTP Basic authentication, unless the provider does not support it. */
function getClientAuthentication(as: Server, secret: string): oidc.ClientAuth {
  const methods = as.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  if (!methods.includes("client_secret_basic")) return oidc.ClientSecretPost(secret);
  // The library escapes more characters than necessary, and not every provider unescapes them.
  return (_as, { client_id }, _body, headers) => {
    const credentials = `${encodeURIComponent(client_id)}:${encodeURIComponent(secret)}`;
    headers.set("authorization", `Basic ${btoa(credentials)}`);
  };
}

/** An unknown key leads to one new discovery: the provider may have rotated its keys. */
async function verifySignature(
  as: Server,
  response: Response,
  issuer: URL,
  options: Options,
): Promise<void> {
  try {
    await oidc.validateApplicationLevelSignature(as, response, options);
  } catch (failure) {
    const isUnknownKey =
      failure instanceof oidc.OperationProcessingError && failure.code === oidc.KEY_SELECTION;
    if (!isUnknownKey) throw failure;
    cached = undefined;
    const fresh = await discover(issuer, options);
    await oidc.validateApplicationLevelSignature(fresh, response, options);
  }
}

/** The checks of OpenID Connect Core §3.1.3.7 that the library leaves to its caller. */
function checkClaims({ azp, iat }: oidc.IDToken, clientId: string): void {
  if (azp !== undefined && azp !== clientId)
    throw new Error("the ID token was issued to another client");
  if (iat > Date.now() / 1000 + PROVIDER_CLOCK_TOLERANCE_SECONDS) {
    throw new Error("the ID token was issued in the future");
  }
}

/** From the ID token or from the userinfo endpoint, never mixed: each confirms only its own address. */
async function fetchVerifiedEmail(
  as: Server,
  client: oidc.Client,
  { claims, accessToken }: { claims: oidc.IDToken; accessToken: string },
  options: Options,
): Promise<string | null> {
  const isComplete = claims.email !== undefined && claims.email_verified !== undefined;
  if (isComplete || as.userinfo_endpoint === undefined) return getVerifiedEmail(claims);
  const response = await oidc.userInfoRequest(as, client, accessToken, options);
  return getVerifiedEmail(await oidc.processUserInfoResponse(as, client, claims.sub, response));
}

function getVerifiedEmail(claims: { readonly [claim: string]: unknown }): string | null {
  return claims.email_verified === true ? parseVerifiedEmail(claims.email) : null;
}
