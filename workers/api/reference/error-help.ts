/** For every error code: what it means, and what a caller can do about it. */
import type { ErrorCode } from "../../../protocol/errors.ts";

interface ErrorHelp {
  meaning: string;
  action: string;
}

const help = (meaning: string, action: string): ErrorHelp => ({ meaning, action });

export const ERROR_HELP: Readonly<Record<ErrorCode, ErrorHelp>> = {
  invalid_request: help(
    "The request body, the query or the state of the sign-in is not valid.",
    "Read `message`; `fields` lists each invalid field with the rule that it breaks.",
  ),
  invalid_code: help(
    "The code is wrong, has expired, or was already used.",
    "Enter the newest code, or request another one.",
  ),
  invalid_token: help(
    "The token from the email is wrong, has expired, or was already used.",
    "Use the link of the newest email, or request another one.",
  ),
  bad_policy: help(
    "The traffic policy is not valid.",
    "Read `message`; `fields` names the action and the field.",
  ),
  invalid_cidr: help(
    "The address block of a private network is not valid.",
    "Send an IPv4 block of private addresses, from /16 to /30, such as 10.88.0.0/24.",
  ),
  invalid_name: help(
    "The name can't be used: it is not well-formed, or reserved for the service.",
    "Choose another name; `message` says which rule it breaks.",
  ),
  unsupported_provider: help(
    "Visitors can't sign in with this provider.",
    "Send `idp_a`, or leave `provider` out.",
  ),
  invalid_budget: help(
    "The monthly budget is missing or out of range.",
    "Send whole US cents from 0 to 1,000,000,000, or null for no limit.",
  ),
  verification_failed: help(
    "The domain has no TXT record with the expected value yet.",
    "Publish `verificationToken` at `_svc-challenge.<domain>`, wait for DNS, and verify again.",
  ),
  invalid_host: help(
    "The `Host` of the request is not a valid host name.",
    "Send the host of the tunnel or of the service.",
  ),
  authorization_pending: help(
    "The request of the machine has not been approved yet.",
    "Poll again after `interval` seconds.",
  ),
  slow_down: help(
    "The machine polls more often than `interval` allows.",
    "Wait for the seconds in `Retry-After` before the next poll.",
  ),
  access_denied: help(
    "A user denied the request of the machine.",
    "Start again with `/auth/cli/start` if the user agrees.",
  ),
  unauthorized: help(
    "The credential is missing, wrong, expired or revoked, or the signature of a delivery is wrong.",
    "Renew the access token with `POST /auth/refresh`, or log in again. Check which credentials the operation accepts.",
  ),
  reauthentication_required: help(
    "The session is valid, but its sign-in is more than 10 minutes old, and this change needs a fresh one.",
    "Confirm your identity with `POST /auth/reauthenticate`, then repeat the request.",
  ),
  upgrade_required: help(
    "The organization's plan does not include this, or its quota is used up.",
    "Upgrade the plan, or remove other resources of this kind.",
  ),
  billing_not_configured: help(
    "The server sells no plans (`BILLING_MODE` is `none`).",
    "Nothing needs to be bought. An operator who wants to sell plans configures a payment provider.",
  ),
  forbidden: help(
    "The caller is known, but may not do this: the role, the token or the list of visitors does not allow it.",
    "Ask an administrator of the organization for the permission that `message` names.",
  ),
  email_not_verified: help(
    "The account at the provider has no verified primary email address.",
    "Verify the address at the provider, then sign in again.",
  ),
  not_found: help(
    "Nothing exists at this path, or the resource belongs to another organization.",
    "Check the path and the id. An access token acts for one organization.",
  ),
  tunnel_not_found: help(
    "No tunnel has this host.",
    "Check the address. A tunnel exists while its agent has it open, or while it is reserved.",
  ),
  method_not_allowed: help(
    "The path exists, but not with this method.",
    "Use one of the methods in the header `Allow`.",
  ),
  duplicate_name: help(
    "The name, slug, domain or port is already taken, or the name is reserved for the service.",
    "Choose another one, or remove the resource that has it.",
  ),
  network_full: help(
    "The private network has no free address.",
    "Remove a device, or create a network with a larger block.",
  ),
  server_not_registered: help(
    "The private network has no server yet.",
    "Register one with `PUT /private-networks/{id}/server`.",
  ),
  conflict: help(
    "The state of the resource does not allow this, or a limit on the number of resources is reached.",
    "Read `message`, and change the state first.",
  ),
  expired: help("The tunnel or the request has expired.", "Create a new one."),
  payload_too_large: help("The request body is too large.", "Send at most 1 MiB to the API."),
  unsupported_media_type: help(
    "The `Content-Type` or the `Content-Encoding` of the request body is not supported.",
    "Send JSON in UTF-8, without compression, with `Content-Type: application/json`.",
  ),
  upgrade_expected: help(
    "The path is a WebSocket, and the request is not an upgrade.",
    "Connect with a WebSocket client.",
  ),
  rate_limited: help(
    "Too many requests.",
    "Wait for the seconds in `Retry-After`, which are also in `retry_after_seconds`.",
  ),
  internal: help(
    "The server failed to process the request.",
    "Try again. If it persists, give the operator the value of `underpass-request-id`.",
  ),
  replay_disabled: help(
    "The server or the tunnel does not allow replays.",
    "The operator sets `ALLOW_REPLAY`; the tunnel's owner sets `allowReplay`.",
  ),
  agent_offline: help(
    "No agent serves the tunnel now.",
    "Start the agent. While it reconnects, visitors wait up to ten seconds.",
  ),
  origin_unreachable: help(
    "The agent can't connect to the local server.",
    "Start the local server, and check the port that the agent was given.",
  ),
  origin_failed: help(
    "The local server closed the connection, or its response was not valid HTTP.",
    "Look into the log of the local server.",
  ),
  not_ready: help(
    "Some parts of the service do not work; `missing` names them.",
    "Wait. If it persists, the operator checks these parts.",
  ),
  provider_not_configured: help(
    "The server has no settings for this provider.",
    "The operator configures it; until then use another way to sign in.",
  ),
  unavailable: help(
    "The service or a provider that it depends on can't be reached now. A change may be saved but not in effect yet.",
    "Try again after the seconds in `Retry-After`.",
  ),
  maintenance: help(
    "The tunnel's owner has put it into maintenance.",
    "Visit it later. The owner ends it with `DELETE /tunnels/{id}/maintenance`.",
  ),
  origin_timeout: help(
    "The local server did not answer in time.",
    "Look into the log of the local server, or answer long requests as a stream.",
  ),
};
