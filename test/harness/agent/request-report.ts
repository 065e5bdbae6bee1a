import type { RequestKind, RequestReport } from "../../../agent/library/types.ts";

/** @returns the report of a request that the local server has answered. */
export const createReport = (path: string, kind: RequestKind = "request"): RequestReport => ({
  ...{
    id: 1,
    requestId: undefined,
    kind,
    method: "GET",
    path,
    status: 200,
    durationMs: 12.3,
    problem: undefined,
    abortReason: undefined,
  },
  ...{ bytesIn: 0, bytesOut: 1536, messages: 0 },
});
