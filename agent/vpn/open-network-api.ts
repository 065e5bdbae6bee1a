import { RejectionError } from "../rejection-error.ts";
import { findServerAccess, type AccessValues } from "../server-access.ts";
import { NETWORK_TOKEN_ADVICE, NetworkApi } from "./network-api.ts";

/** For commands that are run once, whose rejections are printed without the advice of `underpass vpn`. */
export async function openNetworkApi(values: AccessValues): Promise<NetworkApi> {
  return new NetworkApi(await findServerAccess(values), explainForbidden);
}

function explainForbidden(rejection: RejectionError): RejectionError {
  const { reason, message } = rejection;
  if (reason !== "forbidden") return rejection;
  return new RejectionError(reason, `${message} ${NETWORK_TOKEN_ADVICE}`);
}
