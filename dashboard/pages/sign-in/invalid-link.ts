import { getUserMessage, RequestError } from "../../api/request.ts";

/** @returns the API's message about a link that is not valid, or no longer. @throws every other error. */
export function getInvalidLinkMessage(error: unknown): string {
  if (!(error instanceof RequestError) || error.code !== "invalid_token") throw error;
  return getUserMessage(error);
}
