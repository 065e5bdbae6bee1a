/** What the routes of a tunnel's settings share: the settings in force, and the outcome of a change. */
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { ApiError } from "../../errors.ts";
import { findGates, type SettingOutcome } from "../../store/access/gates.ts";
import { findProtocol } from "../../store/tunnels/tunnels.ts";
import { notFound, type ApiContext } from "../route.ts";

/** @throws ApiError `not_found` */
export async function requireGates({ var: { db, principal } }: ApiContext, id: string) {
  const gates = await findGates(db, principal.orgId, id);
  if (gates === undefined) throw notFound("tunnel");
  return gates;
}

/** For what applies to HTTP tunnels only. Called before refusals that depend on the plan or on the server. */
export async function requireHttpTunnel(
  { var: { db, principal } }: ApiContext,
  id: string,
): Promise<void> {
  const protocol = await findProtocol(db, principal.orgId, id);
  if (protocol === null) throw toSettingError("not_found");
  if (!isHttpProtocol(protocol)) throw toSettingError("not_http");
}

/** @throws ApiError unless the change is in force from the next request on. */
export function requireSettingChanged(change: SettingOutcome): void {
  if (change !== "changed") throw toSettingError(change);
}

export function toSettingError(refused: Exclude<SettingOutcome, "changed">): ApiError {
  switch (refused) {
    case "not_found":
      return notFound("tunnel");
    case "not_http":
      return new ApiError(
        "invalid_request",
        "This setting applies to HTTP tunnels only, and this tunnel is a TCP tunnel.",
      );
    case "upgrade_required":
      return new ApiError(
        "upgrade_required",
        "Your plan has just changed and does not include this setting.",
      );
    case "expired":
      return tunnelExpired();
  }
}

export function tunnelExpired(): ApiError {
  return new ApiError("expired", "The tunnel has expired. Create a new one.");
}
