/** /inspector: the requests that visitors made to the organization's tunnels, as they were captured. */
import { z } from "zod";
import { CaptureEvent, CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import {
  Archive,
  ClearQuery,
  InspectorQuery,
} from "../../../protocol/schemas/inspector/inspector.ts";
import { ReplayResult, ReplayRequest } from "../../../protocol/schemas/inspector/replays.ts";
import { Id, Ok } from "../../../protocol/schemas/scalars.ts";
import { clearCaptures } from "../../store/inspector/inspector.ts";
import { allow } from "../guard.ts";
import {
  getMemberActor,
  jsonResponse,
  createRouter,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";
import { createArchiveStream, readArchiveEntries } from "./archive.ts";
import { formatCurlCommand } from "./curl.ts";
import { findCapture, listCaptures, getOrigin, type ListedCapture } from "./reading.ts";
import { bodyNotComplete, replay } from "./replaying.ts";

export const inspector = createRouter();

/** Written as it goes, and so not by `c.json`: the router is not told what it must look like. */
function archiveResponse(description: string): { description: string; content: object } {
  return jsonResponse(description, Archive);
}

inspector.openapi(
  route({
    method: "get",
    path: "/inspector",
    summary: "List captured requests",
    description:
      "Of one tunnel, or of the hundred of the organization that were served last. Without headers and bodies.",
    guard: allow("inspector:read"),
    query: InspectorQuery,
    responses: { 200: jsonResponse("Newest first.", z.array(CaptureSummary)) },
    failures: ["not_found", "unavailable"],
  }),
  async (c) => {
    const listed = await listCaptures(c, c.req.valid("query"));
    return c.json(
      listed.map(({ summary }) => summary),
      200,
    );
  },
);

inspector.openapi(
  route({
    method: "delete",
    path: "/inspector",
    summary: "Clear the captured requests of a tunnel",
    guard: allow("inspector:write"),
    query: ClearQuery,
    responses: { 200: jsonResponse("Nothing that came before is kept any more.", Ok) },
    failures: ["not_found", "unavailable"],
  }),
  async (c) => {
    const { tunnel_id: tunnelId } = c.req.valid("query");
    switch (await clearCaptures(c.var.db, getMemberActor(c), tunnelId)) {
      case "cleared":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("such tunnel");
    }
  },
);

inspector.openapi(
  route({
    method: "get",
    path: "/inspector/har",
    summary: "Export captured requests as an HTTP archive",
    description:
      "HAR 1.2, of what the same query lists. An archive that grows large leaves bodies out.",
    guard: allow("inspector:read"),
    query: InspectorQuery,
    responses: { 200: archiveResponse("Newest first.") },
    failures: ["not_found", "unavailable"],
  }),
  async (c) => {
    const listed = await listCaptures(c, c.req.valid("query"));
    return archive(c, listed, "underpass.har");
  },
);

inspector.openapi(
  route({
    method: "get",
    path: "/inspector/{id}",
    summary: "Read a captured request, with headers, bodies and messages",
    guard: allow("inspector:read"),
    params: Id,
    responses: { 200: jsonResponse("As it was captured.", CaptureEvent) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { event } = await findCapture(c, c.req.valid("param").id);
    return c.json(event, 200);
  },
);

inspector.openapi(
  route({
    method: "get",
    path: "/inspector/{id}/har",
    summary: "Export one captured request as an HTTP archive",
    guard: allow("inspector:read"),
    params: Id,
    responses: { 200: archiveResponse("HAR 1.2, with one entry.") },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { tunnel, event } = await findCapture(c, c.req.valid("param").id);
    return archive(c, [{ tunnel, summary: event }], `${event.id}.har`);
  },
);

inspector.openapi(
  route({
    method: "get",
    path: "/inspector/{id}/curl",
    summary: "Read a captured request as a command for a shell",
    guard: allow("inspector:read"),
    params: Id,
    responses: {
      200: {
        description: "A command that sends the same.",
        content: { "text/plain": { schema: z.string() } },
      },
    },
    failures: ["conflict", "unavailable"],
  }),
  async (c) => {
    const { tunnel, event } = await findCapture(c, c.req.valid("param").id);
    if (event.kind !== "websocket" && event.truncated.request) throw bodyNotComplete();
    return c.text(formatCurlCommand(event, getOrigin(c, tunnel)), 200);
  },
);

inspector.openapi(
  route({
    method: "post",
    path: "/inspector/{id}/replay",
    summary: "Send a captured request to the agent once more",
    description:
      "Where the server and the tunnel allow it. With `underpass-replay: <id>` among its headers; those that were redacted are left out.",
    guard: allow("inspector:write"),
    params: Id,
    optionalBody: ReplayRequest,
    responses: { 200: jsonResponse("Both answers beside each other.", ReplayResult) },
    failures: ["conflict", "replay_disabled", "agent_offline", "unavailable"],
  }),
  async (c) => {
    const found = await findCapture(c, c.req.valid("param").id);
    return c.json(await replay(c, found, c.req.valid("json")), 200);
  },
);

function archive(c: ApiContext, listed: ListedCapture[], name: string): Response {
  return c.body(createArchiveStream(readArchiveEntries(c, listed)), 200, {
    "Content-Type": "application/json",
    "Content-Disposition": `attachment; filename="${name}"`,
  });
}
