/** Groups of rules that a user can start a policy with. */
import { DEFAULT_REQUESTS_PER_MINUTE, type EditedAction } from "./action-kinds.ts";

interface Template {
  title: string;
  about: string;
  actions: readonly EditedAction[];
}

const SCANNED_PATHS = ["/.env", "/.git", "/wp-admin", "/wp-login.php", "/phpmyadmin"];

export const TEMPLATES: readonly Template[] = [
  {
    title: "Block scanners",
    about: "Denies paths that bots look for: .env, .git, WordPress and phpMyAdmin.",
    actions: SCANNED_PATHS.map((path) => ({ kind: "deny", path_prefix: path })),
  },
  {
    title: "Hide admin pages",
    about: "Denies /admin and everything below it.",
    actions: [{ kind: "deny", path_prefix: "/admin" }],
  },
  {
    title: "Rate limit by visitor",
    about: `At most ${DEFAULT_REQUESTS_PER_MINUTE} requests a minute for each IP address.`,
    actions: [
      {
        kind: "rate_limit",
        requests_per_minute: DEFAULT_REQUESTS_PER_MINUTE,
        per_client_ip: true,
      },
    ],
  },
  {
    title: "Tokens of your identity provider",
    about: "Only requests with a valid token (JWT) of an issuer that you name.",
    actions: [
      {
        kind: "jwt_validation",
        allowed_issuers: ["https://idp.example.com"],
        allowed_audiences: ["my-api"],
      },
    ],
  },
  {
    title: "Tokens for this tunnel",
    about: "Only requests with a token that a member minted under Access.",
    actions: [{ kind: "jwt_validation" }],
  },
  {
    title: "Mark tunneled requests",
    about: "The local server receives a header that visitors can't forge.",
    actions: [{ kind: "header_set", name: "X-From-Tunnel", value: "yes" }],
  },
];
