/** Calls to the self-hosted server's gateway, which does for the Worker what workerd can't do or should not do itself. */
import type { Env } from "./env.ts";

type GatewayBindings = Pick<Env, "MAIL_GATEWAY" | "GATEWAY_URL" | "GATEWAY_SECRET">;

/** A hosted service has none. */
export function hasGateway({ MAIL_GATEWAY: gateway, GATEWAY_URL: url }: GatewayBindings): boolean {
  return gateway !== undefined || url !== undefined;
}

export function postToGateway(
  { MAIL_GATEWAY: gateway, GATEWAY_URL: url, GATEWAY_SECRET: secret }: GatewayBindings,
  path: string,
  body: object,
): Promise<Response> {
  const init = {
    method: "POST",
    headers: { authorization: `Bearer ${secret ?? ""}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  return gateway ? gateway.fetch(`http://gateway${path}`, init) : fetch(new URL(path, url), init);
}
