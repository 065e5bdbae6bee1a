/** /tunnels/{id}/inspector: which requests of a tunnel are captured, and how much of them. */
import {
  CaptureSettings,
  TunnelCaptureSettings,
} from "../../../protocol/schemas/inspector/captures.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { findCaptureSettings, setCaptureSettings } from "../../store/inspector/capture-settings.ts";
import { allow } from "../guard.ts";
import {
  createRouter,
  getMemberActor,
  jsonResponse,
  notFound,
  route,
  type ApiContext,
} from "../route.ts";
import { requireSettingChanged } from "../tunnels/setting-changes.ts";

export const captureSettings = createRouter();

captureSettings.openapi(
  route({
    operationId: "getCaptureSettings",
    method: "get",
    path: "/tunnels/{id}/inspector",
    summary: "Get the capture settings of a tunnel",
    guard: allow("tunnels:read"),
    params: IdParams,
    responses: { 200: jsonResponse("The settings in force.", TunnelCaptureSettings) },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const settings = await findCaptureSettings(c.var.db, c.var.principal.orgId, id);
    if (settings === undefined) throw notFound("tunnel");
    return c.json(describeSettings(c, id, settings), 200);
  },
);

captureSettings.openapi(
  route({
    operationId: "setCaptureSettings",
    method: "put",
    path: "/tunnels/{id}/inspector",
    summary: "Set the capture settings of a tunnel",
    description:
      "Replaces all settings, from the next request on. A setting that is left out gets its default. Requests that are already captured do not change.",
    guard: allow("tunnels:write"),
    params: IdParams,
    body: CaptureSettings,
    responses: { 200: jsonResponse("The settings are in force.", TunnelCaptureSettings) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const settings = c.req.valid("json");
    requireSettingChanged(await setCaptureSettings(c.var.db, getMemberActor(c), id, settings));
    return c.json(describeSettings(c, id, settings), 200);
  },
);

function describeSettings(
  c: ApiContext,
  id: string,
  settings: CaptureSettings,
): TunnelCaptureSettings {
  return { id, ...settings, serverAllowsReplay: c.var.config.ALLOW_REPLAY };
}
