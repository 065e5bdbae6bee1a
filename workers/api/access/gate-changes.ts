/** How the routes that put something before a tunnel say how that went. */
import { RECONNECT_MAX_MS } from "../../../protocol/limits.ts";
import { ApiError } from "../../errors.ts";
import type { GateChange } from "../../store/access/gates.ts";
import { notFound, roleChanged } from "../route.ts";

/** The change is made, and whoever asked must not think that it holds already. */
export function unheard(): ApiError {
  return new ApiError(
    "unavailable",
    "The change is saved. The tunnel could not be told right now, and will be: within minutes it takes effect.",
    { retryAfterSeconds: RECONNECT_MAX_MS / 1000 },
  );
}

/** Returns when the change holds from the next request on. */
export function requireChanged(change: GateChange): void {
  switch (change) {
    case "changed":
      return;
    case "changed_unheard":
      throw unheard();
    case "not_found":
      throw notFound("such tunnel");
    case "not_http":
      throw new ApiError(
        "invalid_request",
        "The tunnel carries TCP. This setting is for tunnels that carry HTTP.",
      );
    case "role_changed":
      throw roleChanged();
    case "upgrade_required":
      throw new ApiError("upgrade_required", "Your plan is another one now, and lacks this.");
  }
}
