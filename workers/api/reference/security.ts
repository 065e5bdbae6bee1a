/** The credentials that routes accept. */

export const SECURITY_SCHEMES = {
  accessToken: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description:
      "The access token of a person: `access_token` of `POST /auth/login`, valid for 15 minutes.",
  },
  capabilityToken: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "base64 or base64url",
    description:
      "A capability token of an agent: `wireBytes` of `POST /tokens`. Routes of the management API accept one that is restricted neither to names nor to a project.",
  },
  masterKey: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "mtk_master_…",
    description: "A master key: `bearer` of `POST /tokens/master`. It mints tokens for projects.",
  },
  refreshCookie: {
    type: "apiKey",
    in: "cookie",
    name: "qnt_refresh",
    description: "The cookie that a login sets. Each renewal replaces it.",
  },
  accessTokenSubprotocol: {
    type: "apiKey",
    in: "header",
    name: "Sec-WebSocket-Protocol",
    description:
      "The access token of a person as one of the offered subprotocols, `bearer.<access token>`, because browsers can't set other headers of a WebSocket.",
  },
  relaySecret: {
    type: "http",
    scheme: "bearer",
    description: "The secret that the operator has configured for the service and its relays.",
  },
} as const;

export type SecurityScheme = keyof typeof SECURITY_SCHEMES;
