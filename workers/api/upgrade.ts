/** Routes whose answer is a WebSocket. */
import { ApiError } from "../errors.ts";
import type { ApiContext } from "./route.ts";

/** @param message says what comes with a WebSocket. */
export function requireUpgrade(c: ApiContext, message: string): void {
  if (c.req.header("upgrade")?.toLowerCase() === "websocket") return;
  throw new ApiError("upgrade_expected", message, { headers: { Upgrade: "websocket" } });
}

/** The subprotocols that the client would speak. */
export function getOfferedProtocols(c: ApiContext): string[] {
  const offered = c.req.header("sec-websocket-protocol")?.split(",") ?? [];
  return offered.map((protocol) => protocol.trim()).filter((protocol) => protocol !== "");
}
