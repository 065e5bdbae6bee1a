/** /inspector: the captured requests of the organization's tunnels. */
import { z } from "zod";
import { CaptureDetail, CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import {
  Archive,
  ClearQuery,
  InspectorQuery,
} from "../../../protocol/schemas/inspector/inspector.ts";
import { ReplayResult, ReplayRequest } from "../../../protocol/schemas/inspector/replays.ts";
import { ApiError } from "../../errors.ts";
import { IdParams, Ok } from "../../../protocol/schemas/scalars.ts";
import { clearCaptures } from "../../store/inspector/inspector.ts";
import { allow, allowRead, allowReadOrAgent } from "../guard.ts";
import {
  createRouter,
  getMemberActor,
  jsonResponse,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";
import { createArchiveStream, readArchiveEntries } from "./archive.ts";
import { formatCurlCommand } from "./curl.ts";
import {
  findCapture,
  listCaptures,
  getTunnelOrigin,
  readCaptures,
  type TunnelCaptureSummary,
} from "./captures.ts";
import { replay } from "./replay.ts";

export const inspector = createRouter();

/** The body is streamed instead of returned by `c.json`, so the type of the handler does not depend on the schema. */
function archiveResponse(description: string): { description: string; content: object } {
  return jsonResponse(description, Archive);
}

inspector.openapi(
  route({
    operationId: "listCapturedRequests",
    method: "get",
    path: "/inspector",
    summary: "List captured requests",
    description:
      "Of one tunnel, or of the hundred tunnels of the organization that were served most recently. Without headers and bodies; for capability tokens also without queries.",
    guard: allowReadOrAgent("inspector:read"),
    query: InspectorQuery,
    responses: { 200: jsonResponse("The requests, newest first.", z.array(CaptureSummary)) },
    failures: ["not_found", "unavailable"],
  }),
  async (c) => {
    const listed = await listCaptures(c, c.req.valid("query"));
    const summaries = listed.map(({ summary: { query, ...summary } }) =>
      c.var.agentToken === undefined ? { ...summary, query } : summary,
    );
    return c.json(summaries, 200);
  },
);

inspector.openapi(
  route({
    operationId: "deleteCapturedRequests",
    method: "delete",
    path: "/inspector",
    summary: "Delete the captured requests of a tunnel",
    guard: allow("inspector:write"),
    query: ClearQuery,
    responses: { 200: jsonResponse("Every request that was captured before is deleted.", Ok) },
    failures: ["not_found", "unavailable"],
  }),
  async (c) => {
    const { tunnel_id: tunnelId } = c.req.valid("query");
    switch (await clearCaptures(c.var.db, getMemberActor(c), tunnelId)) {
      case "cleared":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("tunnel");
    }
  },
);

inspector.openapi(
  route({
    operationId: "exportCapturedRequests",
    method: "get",
    path: "/inspector/har",
    summary: "Export captured requests as an HTTP archive",
    description:
      "HAR 1.2, with the requests that `GET /inspector` lists for the same query. A large archive omits bodies.",
    guard: allowRead("inspector:read"),
    query: InspectorQuery,
    headers: ["Content-Disposition"],
    responses: { 200: archiveResponse("The archive, newest request first.") },
    failures: ["not_found", "unavailable"],
  }),
  async (c) => {
    const listed = await listCaptures(c, c.req.valid("query"));
    return archive(c, listed, "underpass.har");
  },
);

inspector.openapi(
  route({
    operationId: "getCapturedRequest",
    method: "get",
    path: "/inspector/{id}",
    summary: "Get a captured request, with headers, bodies and messages",
    guard: allowRead("inspector:read"),
    params: IdParams,
    responses: { 200: jsonResponse("The captured request.", CaptureDetail) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { capture } = await findCapture(c, c.req.valid("param").id);
    return c.json(capture, 200);
  },
);

inspector.openapi(
  route({
    operationId: "exportCapturedRequest",
    method: "get",
    path: "/inspector/{id}/har",
    summary: "Export one captured request as an HTTP archive",
    guard: allowRead("inspector:read"),
    params: IdParams,
    headers: ["Content-Disposition"],
    responses: { 200: archiveResponse("An archive (HAR 1.2) with one entry.") },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { tunnel, capture } = await findCapture(c, c.req.valid("param").id);
    return archive(c, [{ tunnel, summary: capture }], `${capture.id}.har`);
  },
);

inspector.openapi(
  route({
    operationId: "getCapturedRequestAsCurl",
    method: "get",
    path: "/inspector/{id}/curl",
    summary: "Get a captured request as a curl command",
    guard: allowRead("inspector:read"),
    params: IdParams,
    responses: {
      200: {
        description: "A shell command that sends the same request.",
        content: { "text/plain": { schema: z.string() } },
      },
    },
    failures: ["conflict", "unavailable"],
  }),
  async (c) => {
    const { tunnel, capture } = await findCapture(c, c.req.valid("param").id);
    if (capture.kind !== "websocket" && capture.truncated.request) {
      throw new ApiError(
        "conflict",
        "The captured body of this request is not complete, so no command can send it.",
      );
    }
    if (capture.truncated.request_head) {
      throw new ApiError(
        "conflict",
        "The headers of this request were not captured, so no command can send it.",
      );
    }
    return c.text(formatCurlCommand(capture, getTunnelOrigin(c, tunnel)), 200);
  },
);

inspector.openapi(
  route({
    operationId: "replayCapturedRequest",
    method: "post",
    path: "/inspector/{id}/replay",
    summary: "Replay a captured request",
    description:
      "Sends the request to the agent again, with the header `underpass-replay: <id>` and without redacted headers. The server and the tunnel must allow replays.",
    guard: allowRead("inspector:write"),
    params: IdParams,
    optionalBody: ReplayRequest,
    responses: {
      200: jsonResponse("The replayed request, and a comparison of both responses.", ReplayResult),
    },
    failures: ["conflict", "replay_disabled", "agent_offline", "unavailable"],
  }),
  async (c) => {
    const found = await findCapture(c, c.req.valid("param").id);
    return c.json(await replay(c, found, c.req.valid("json")), 200);
  },
);

function archive(c: ApiContext, listed: TunnelCaptureSummary[], name: string): Response {
  const entries = readArchiveEntries(listed, {
    read: (tunnel, ids) => readCaptures(c, tunnel, ids),
    getOrigin: (tunnel) => getTunnelOrigin(c, tunnel),
  });
  return c.body(createArchiveStream(entries), 200, {
    "Content-Type": "application/json",
    "Content-Disposition": `attachment; filename="${name}"`,
  });
}
