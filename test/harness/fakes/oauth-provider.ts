/** An OAuth 2 provider like those of code hosts: the user's identity comes from its API. */
import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import { buildLocalOrigin, startHttpServer } from "./http-server.ts";
import { json } from "./malicious-provider.ts";

export interface OAuthProvider extends AsyncDisposable {
  settings: Record<string, string>;
  /** The API's response about the user who signs in. */
  user: unknown;
  emails: unknown;
  /** Headers of the requests to its API. */
  headers: NodeJS.Dict<string | string[]>[];
}

interface Grant {
  challenge: string;
  redirectUri: string;
}

const CLIENT_ID = "client-b";
const CLIENT_SECRET = "secret-b";

/** Settings for a server that uses a provider on this port. */
export function buildOAuthProviderSettings(port: number) {
  const origin = buildLocalOrigin(port);
  return {
    IDP_B_AUTHORIZE_URL: `${origin}/authorize`,
    IDP_B_TOKEN_URL: `${origin}/token`,
    IDP_B_API_URL: `${origin}/api/`,
    IDP_B_CLIENT_ID: CLIENT_ID,
    IDP_B_CLIENT_SECRET: CLIENT_SECRET,
  };
}

/** @param port 0: any free one. */
export async function startOAuthProvider(port = 0): Promise<OAuthProvider> {
  const grants = new Map<string, Grant>();
  const tokens = new Set<string>();

  const server = await startHttpServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", server.origin);
    switch (pathname) {
      case "/authorize": {
        const code = crypto.randomUUID();
        const redirectUri = searchParams.get("redirect_uri") ?? "";
        grants.set(code, { challenge: searchParams.get("code_challenge") ?? "", redirectUri });
        const back = new URL(redirectUri);
        back.search = new URLSearchParams({
          code,
          state: searchParams.get("state") ?? "",
        }).toString();
        return response.writeHead(302, { location: back.href }).end();
      }
      case "/token":
        return void text(request).then((body) => {
          json(response, exchange(new URLSearchParams(body)));
        });
      default: {
        provider.headers.push(request.headers);
        const token = request.headers.authorization?.slice("Bearer ".length) ?? "";
        if (!tokens.has(token)) return json(response, { message: "Requires authentication" }, 401);
        if (pathname === "/api/user") return json(response, provider.user);
        if (pathname === "/api/user/emails") return json(response, provider.emails);
        return json(response, { message: "Not Found" }, 404);
      }
    }
  }, port);

  /** Errors have status 200, as with the largest code host. */
  function exchange(params: URLSearchParams): object {
    const grant = grants.get(params.get("code") ?? "");
    grants.delete(params.get("code") ?? "");
    const verifier = params.get("code_verifier") ?? "";
    if (params.get("client_id") !== CLIENT_ID || params.get("client_secret") !== CLIENT_SECRET) {
      return { error: "incorrect_client_credentials" };
    }
    const isValid =
      grant?.redirectUri === params.get("redirect_uri") &&
      grant.challenge === createHash("sha256").update(verifier).digest("base64url");
    if (!isValid) return { error: "bad_verification_code" };
    const access_token = crypto.randomUUID();
    tokens.add(access_token);
    return { access_token, token_type: "bearer", scope: "read:user,user:email" };
  }

  const provider: OAuthProvider = {
    settings: buildOAuthProviderSettings(server.port),
    user: {},
    emails: [],
    headers: [],
    [Symbol.asyncDispose]: () => server.stop(),
  };
  return provider;
}
