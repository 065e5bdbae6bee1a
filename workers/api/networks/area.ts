/** What the routes of private networks share. */
import { OpenAPIHono } from "@hono/zod-openapi";
import type { ErrorCode } from "../../../protocol/errors.ts";
import { ApiError } from "../../errors.ts";
import { findNetwork, type Network } from "../../store/networks/networks.ts";
import { getOrgId } from "../guard.ts";
import { invalidInput, notFound, type ApiContext, type ApiEnv } from "../route.ts";

export const FOR_AGENTS =
  "The bearer is an access token, or a capability token that is confined to nothing.";

/** Fields with codes of their own. */
const CODES: Record<string, ErrorCode> = { name: "invalid_name", cidr: "invalid_cidr" };

/** Like `newArea`, with the codes that names and blocks of addresses have. */
export function createNetworkRouter(): OpenAPIHono<ApiEnv> {
  return new OpenAPIHono<ApiEnv>({
    defaultHook(result) {
      if (result.success) return;
      const error = invalidInput(result);
      const [field] = error.details.fields ?? [];
      const code = result.target === "json" && field ? CODES[field.path] : undefined;
      if (!code || !field) throw error;
      throw new ApiError(code, `${field.path}: ${field.message}`, error.details);
    },
  });
}

/** The network of the path, of the caller's organization. */
export async function requireNetwork(c: ApiContext, id: string): Promise<Network> {
  const network = await findNetwork(c.var.db, getOrgId(c), id);
  if (!network) throw networkNotFound();
  return network;
}

export function networkNotFound(): ApiError {
  return notFound("such private network");
}

export function serverNotRegistered(): ApiError {
  return new ApiError("server_not_registered", "The network's server is not registered yet.");
}
