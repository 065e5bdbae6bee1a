/** For routes that open a WebSocket. */
import { ApiError } from "../errors.ts";
import type { ApiContext } from "./route.ts";

/** @param callers the programs that connect here, for the message. */
export function requireUpgrade(c: ApiContext, callers: string): void {
  if (isUpgrade(c)) return;
  const message = `${callers} connect over a WebSocket. Use a WebSocket client.`;
  throw new ApiError("upgrade_expected", message, { headers: { Upgrade: "websocket" } });
}

export function isUpgrade(c: ApiContext): boolean {
  return c.req.header("upgrade")?.toLowerCase() === "websocket";
}

/** The subprotocols that the client offers. */
export function getOfferedProtocols(c: ApiContext): string[] {
  const offered = c.req.header("sec-websocket-protocol")?.split(",") ?? [];
  return offered.map((protocol) => protocol.trim()).filter((protocol) => protocol !== "");
}
