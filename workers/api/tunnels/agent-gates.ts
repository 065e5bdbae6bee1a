/** The gates that an agent sets with its connection. */
import {
  AGENT_GATES_HEADER,
  AGENT_GATES_MAX_CHARS,
  AgentGates,
  hasGates,
} from "../../../protocol/schemas/tunnels/agent-gates.ts";
import { formatPath } from "../../../protocol/schemas/issue-messages.ts";
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { fromBase64Url, toHex, toUuid } from "../../../shared/bytes.ts";
import { parseJson } from "../../../shared/json.ts";
import { getConfig, type Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { ApiError } from "../../errors.ts";
import type { AgentRequest } from "../../internal-api-binding.ts";
import { hashPassword } from "../../identity/accounts/password-hashing.ts";
import type { TokenPayload } from "../../identity/tokens/capability-token.ts";
import type { AgentGateValues } from "../../store/access/gates.ts";
import { hasFeature } from "../../store/billing/plans.ts";
import type { Database } from "../../store/database.ts";
import { findTokenRefusal } from "../../store/tokens/spending.ts";
import { findAgentToken } from "../../store/tokens/tokens.ts";
import { findIssuerIssue } from "../access/policy-issuers.ts";
import { TOKEN_ERRORS } from "./agent-token.ts";
import { ConnectionRefusedError, toTokenRefusal } from "./refusals.ts";

const NO_GATES: AgentGateValues = { basicAuth: undefined, policy: undefined };

/** @throws ConnectionRefusedError when the header is not valid. */
export function parseAgentGates(header: string | undefined): AgentGates {
  if (header === undefined) return {};
  const gates = AgentGates.safeParse(parseHeader(header));
  if (gates.success) return gates.data;
  const [issue] = gates.error.issues;
  const field = issue === undefined || issue.path.length === 0 ? "it" : formatPath(issue.path);
  throw new ConnectionRefusedError(
    "invalid_request",
    `${AGENT_GATES_HEADER}: ${field} ${issue?.message}`,
  );
}

/** @returns undefined for text that is not base64url of JSON. */
function parseHeader(header: string): unknown {
  const bytes = header.length > AGENT_GATES_MAX_CHARS ? null : fromBase64Url(header);
  return bytes ? parseJson(new TextDecoder().decode(bytes)) : undefined;
}

/**
 * Checks the gates against the token's plan and the server's settings, and hashes the password. The registration checks the
 * plan again, under a lock.
 * @throws ConnectionRefusedError
 */
export async function prepareGates(
  env: Env,
  db: Database,
  token: TokenPayload,
  { gates, query, address }: AgentRequest,
): Promise<AgentGateValues> {
  if (!hasGates(gates) || query.tunnel !== undefined) return NO_GATES;
  if (!isHttpProtocol(query.protocol)) {
    throw new ConnectionRefusedError(
      "invalid_request",
      "passwords and policies are for HTTP tunnels",
    );
  }
  const { basicAuth, policy } = gates;
  const config = getConfig(env);
  const issue = policy && findIssuerIssue(policy, config);
  if (issue) {
    throw new ConnectionRefusedError(
      "invalid_request",
      `policy.${formatPath(issue.path)} ${issue.message}`,
    );
  }
  if (!basicAuth) return { basicAuth, policy };
  // A hash is expensive: it is for tokens that are valid and whose plan has passwords.
  const claims = { orgId: toUuid(token.organizationId), nonce: toHex(token.nonce) };
  const live = await findAgentToken(db, claims);
  if (!live) {
    const refusal = await findTokenRefusal(db, claims);
    throw refusal
      ? toTokenRefusal(refusal)
      : new ConnectionRefusedError("unauthorized", TOKEN_ERRORS.expired);
  }
  if (!hasFeature("tunnel_password", live, new Date())) throw planLacksPassword(config);
  const caller = { env, config, address, account: claims.nonce };
  const passwordHash = await hashPassword(caller, basicAuth.password).catch((error: unknown) => {
    if (error instanceof ApiError) throw new ConnectionRefusedError("internal", error.message);
    throw error;
  });
  return { basicAuth: { username: basicAuth.username, passwordHash }, policy };
}

export function planLacksPassword({ BILLING_MODE }: Config): ConnectionRefusedError {
  const change =
    BILLING_MODE === "none"
      ? "the operator of the server sets the plan"
      : "an owner of the organization can change the plan";
  return new ConnectionRefusedError(
    "upgrade_required",
    `the plan does not include passwords for tunnels; ${change}`,
  );
}
