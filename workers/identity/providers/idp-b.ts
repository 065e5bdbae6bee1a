/** `idp_b`: an OAuth 2 provider that serves the user's profile at `<API>/user` and `<API>/user/emails`. */
import * as oauth from "oauth4webapi";
import { z } from "zod";
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { buildCallOptions, isCodeRejected } from "./calls.ts";
import {
  buildAuthorizationUrl,
  toDenial,
  parseVerifiedEmail,
  buildRedirectUri,
  Subject,
  type Provider,
} from "./provider.ts";

const NAME = "idp_b";
/** Code hosts return verified addresses only with this scope. */
const SCOPE = "read:user user:email";

const User = z.object({ id: z.union([Subject, z.int()]) });
const Emails = z.array(
  z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }),
);

/** @returns null when it is not configured. */
export function createIdpB(env: Env, config: Config): Provider | null {
  const {
    IDP_B_AUTHORIZE_URL: authorization_endpoint,
    IDP_B_TOKEN_URL: token_endpoint,
    IDP_B_API_URL: apiUrl,
    IDP_B_CLIENT_ID: client_id,
    IDP_B_CLIENT_SECRET: secret,
  } = config;
  if (
    authorization_endpoint === undefined ||
    token_endpoint === undefined ||
    apiUrl === undefined ||
    client_id === undefined ||
    secret === undefined
  ) {
    return null;
  }
  // The provider publishes no issuer. Its API's URL identifies the namespace of its user ids.
  const issuer = new URL(apiUrl).href.replace(/\/+$/, "");
  const as = { issuer, authorization_endpoint, token_endpoint };
  const client = { client_id };
  const redirect_uri = buildRedirectUri(config, NAME);

  return {
    name: NAME,
    host: new URL(authorization_endpoint).host,

    authorizationUrl(attempt) {
      const parameters = { client_id, redirect_uri, scope: SCOPE };
      return buildAuthorizationUrl(authorization_endpoint, attempt, parameters);
    },

    async identify(attempt, answer) {
      const error = answer.get("error");
      if (error !== null) return toDenial(error);
      const code = answer.get("code");
      if (!code) return { kind: "invalid_answer" };

      const { state } = attempt;
      const response = await oauth.authorizationCodeGrantRequest(
        as,
        client,
        oauth.ClientSecretPost(secret),
        oauth.validateAuthResponse(as, client, new URLSearchParams({ code, state }), state),
        redirect_uri,
        attempt.verifier,
        buildCallOptions(env, new URL(token_endpoint)),
      );
      const tokens = await oauth
        .processAuthorizationCodeResponse(as, client, response)
        .catch((failure: unknown) => {
          if (isCodeRejected(failure)) return null;
          throw failure;
        });
      if (!tokens) return { kind: "invalid_answer" };

      const read = (path: string) => readProfile(env, issuer + path, tokens.access_token);
      const { id } = User.parse(await read("/user"));
      const emails = Emails.parse(await read("/user/emails"));
      const email = parseVerifiedEmail(
        emails.find(({ primary, verified }) => primary && verified)?.email,
      );
      if (email === null) return { kind: "email_not_verified" };
      return { kind: "account", account: { issuer, subject: String(id), email } };
    },
  };
}

/** @throws Error when the provider does not answer with 200. */
async function readProfile(env: Env, href: string, accessToken: string): Promise<unknown> {
  const url = new URL(href);
  const options = buildCallOptions(env, url);
  const headers = new Headers({ ...options.headers, accept: "application/json" });
  const response = await oauth.protectedResourceRequest(
    accessToken,
    "GET",
    url,
    headers,
    null,
    options,
  );
  if (response.status !== 200) throw new Error(`${href} answered with status ${response.status}`);
  return response.json();
}
