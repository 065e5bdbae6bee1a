/** How the routes that put something before a tunnel say how that went. */
import { ApiError } from "../../errors.ts";
import type { GateChange } from "../../store/access/gates.ts";
import { notFound } from "../route.ts";

/** Returns when the change holds from the next request on. */
export function requireGateChange(change: GateChange): void {
  switch (change) {
    case "changed":
      return;
    case "not_found":
      throw notFound("such tunnel");
    case "not_http":
      throw new ApiError(
        "invalid_request",
        "The tunnel carries TCP. This setting is for tunnels that carry HTTP.",
      );
    case "upgrade_required":
      throw new ApiError("upgrade_required", "Your plan is another one now, and lacks this.");
  }
}
