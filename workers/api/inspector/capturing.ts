/** /tunnels/{id}/inspector: what of a tunnel's requests is kept. */
import {
  CaptureSettings,
  TunnelCaptureSettings,
} from "../../../protocol/schemas/inspector/captures.ts";
import { Id } from "../../../protocol/schemas/scalars.ts";
import { findCapturing, setCapturing } from "../../store/inspector/capturing.ts";
import { allow } from "../guard.ts";
import { getMemberActor, jsonResponse, createRouter, notFound, route } from "../route.ts";
import { requireGateChange } from "../access/gate-changes.ts";

export const capturing = createRouter();

capturing.openapi(
  route({
    method: "get",
    path: "/tunnels/{id}/inspector",
    summary: "Read what of a tunnel's requests is kept",
    guard: allow("tunnels:read"),
    params: Id,
    responses: { 200: jsonResponse("The settings in force.", TunnelCaptureSettings) },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const settings = await findCapturing(c.var.db, c.var.principal.orgId, id);
    if (settings === undefined) throw notFound("such tunnel");
    return c.json({ id, ...settings }, 200);
  },
);

capturing.openapi(
  route({
    method: "put",
    path: "/tunnels/{id}/inspector",
    summary: "Set what of a tunnel's requests is kept",
    description:
      "It replaces the settings before; what is left out is as it is for a new tunnel. It holds from the next request on. What is kept already stays as it is.",
    guard: allow("tunnels:write"),
    params: Id,
    body: CaptureSettings,
    responses: { 200: jsonResponse("In force.", TunnelCaptureSettings) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const settings = c.req.valid("json");
    requireGateChange(await setCapturing(c.var.db, getMemberActor(c), id, settings));
    return c.json({ id, ...settings }, 200);
  },
);
