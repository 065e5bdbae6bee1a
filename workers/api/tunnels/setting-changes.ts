/** The outcome of a change to a setting of a tunnel, for the routes that make such changes. */
import { isHttpProtocol } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { ApiError } from "../../errors.ts";
import type { SettingOutcome } from "../../store/access/gates.ts";
import { findProtocol, hasTunnel } from "../../store/tunnels/tunnels.ts";
import { notFound, type ApiContext } from "../route.ts";

/** Before refusals that depend on the plan or on the server: what does not exist is 404. */
export async function requireTunnel(
  { var: { db, principal } }: ApiContext,
  id: string,
): Promise<void> {
  if (!(await hasTunnel(db, principal.orgId, id))) throw notFound("tunnel");
}

/** For what applies to HTTP tunnels only. */
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
  }
}
