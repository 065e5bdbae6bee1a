/** The router and the errors that all routes of private networks share. */
import { OpenAPIHono } from "@hono/zod-openapi";
import { ApiError } from "../../errors.ts";
import { findNetwork, type Network } from "../../store/networks/networks.ts";
import { getOrgId } from "../guard.ts";
import { createFieldHook } from "../field-codes.ts";
import { notFound, type ApiContext, type ApiEnv } from "../route.ts";

/** Like `createRouter`, with the error codes of names and CIDR blocks. */
export function createNetworkRouter(): OpenAPIHono<ApiEnv> {
  return new OpenAPIHono<ApiEnv>({
    defaultHook: createFieldHook({ name: "invalid_name", cidr: "invalid_cidr" }),
  });
}

/** @throws ApiError unless the caller's organization has this network. */
export async function requireNetwork(c: ApiContext, id: string): Promise<Network> {
  const network = await findNetwork(c.var.db, getOrgId(c), id);
  if (!network) throw networkNotFound();
  return network;
}

export function networkNotFound(): ApiError {
  return notFound("private network");
}

export function serverNotRegistered(): ApiError {
  return new ApiError(
    "server_not_registered",
    "The network has no server yet. Register one first.",
  );
}
