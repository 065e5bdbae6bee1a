/** `idp_a`: any provider of OpenID Connect, found by discovery. */
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

/** How long an isolate believes what a provider said of itself. */
const PROVIDER_METADATA_MAX_MS = 10 * MINUTE_MS;
const PROVIDER_CLOCK_TOLERANCE_SECONDS = 30;

const NAME = "idp_a";

type Server = oidc.AuthorizationServer;
type Options = ReturnType<typeof buildCallOptions>;

/**
 * @param redirect_uri where it leads back to, as it is registered there.
 * @returns null when none is configured.
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

    async authorizationUrl(attempt, person) {
      const as = await discover(issuer, options);
      const { nonce } = attempt;
      const parameters = { client_id, redirect_uri, scope: "openid email", nonce };
      const all = person === "another" ? { ...parameters, prompt: getAccountSwitchPrompt(as) } : parameters;
      return buildAuthorizationUrl(as, attempt, all, options[oidc.allowInsecureRequests]);
    },

    async identify(attempt, answer) {
      const as = await discover(issuer, options);
      const parameters = validateAnswer(as, client, answer, attempt.state);
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
      if (!claims) throw new Error("the provider gave no ID token");
      checkClaims(claims, client_id);

      const email = await fetchVerifiedEmail(as, client, claims, tokens.access_token, options);
      const subject = Subject.parse(claims.sub);
      return { kind: "account", account: { issuer: as.issuer, subject, email } };
    },
  };
}

/** A choice of accounts, unless the provider says that it has none: then it asks for the password again. */
function getAccountSwitchPrompt({ prompt_values_supported: supported }: Server): string {
  return Array.isArray(supported) && !supported.includes("select_account")
    ? "login"
    : "select_account";
}

/** Per isolate: what the provider says of itself. Its keys are remembered with it, by the library. */
let cached: { issuer: string; as: Server; goodUntilMs: number } | undefined;

async function discover(issuer: URL, options: Options): Promise<Server> {
  if (cached?.issuer === issuer.href && Date.now() < cached.goodUntilMs) return cached.as;
  const response = await oidc.discoveryRequest(issuer, options);
  const as = await oidc.processDiscoveryResponse(issuer, response);
  cached = { issuer: issuer.href, as, goodUntilMs: Date.now() + PROVIDER_METADATA_MAX_MS };
  return as;
}

/** With `iss` (RFC 9207) compared, where it is there or was promised: an answer of another provider is none. */
function validateAnswer(
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

/** Clients are registered for the header unless their provider doesn't have it. */
function getClientAuthentication(as: Server, secret: string): oidc.ClientAuth {
  const methods = as.token_endpoint_auth_methods_supported ?? ["client_secret_basic"];
  if (!methods.includes("client_secret_basic")) return oidc.ClientSecretPost(secret);
  // The library's own escapes whatever it may. Not every provider unescapes, and most ids need none of it.
  return (_as, { client_id }, _body, headers) => {
    const credentials = `${encodeURIComponent(client_id)}:${encodeURIComponent(secret)}`;
    headers.set("authorization", `Basic ${btoa(credentials)}`);
  };
}

/** A key that is not known leads to another look at the provider, once: it may have new ones since. */
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

/** What the library leaves to us of the rules for ID tokens (OpenID Connect Core §3.1.3.7). */
function checkClaims({ azp, iat }: oidc.IDToken, clientId: string): void {
  if (azp !== undefined && azp !== clientId) throw new Error("the ID token is another client's");
  if (iat > Date.now() / 1000 + PROVIDER_CLOCK_TOLERANCE_SECONDS) {
    throw new Error("the ID token is of the future");
  }
}

/** From one place or from the other: an address of one and its confirmation of the other prove nothing. */
async function fetchVerifiedEmail(
  as: Server,
  client: oidc.Client,
  claims: oidc.IDToken,
  accessToken: string,
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
