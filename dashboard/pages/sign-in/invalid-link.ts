import { getErrorMessage, RequestError } from "../../api/request.ts";

/** @returns the message about a link that is not valid (any more). @throws every other error. */
export function getInvalidLinkMessage(error: unknown): string {
  if (!(error instanceof RequestError) || error.code !== "invalid_token") throw error;
  return getErrorMessage(error);
}
