/** /tunnels/{id}/maintenance: a tunnel that answers every visitor with a maintenance message. */
import {
  MaintenanceState,
  StartMaintenance,
} from "../../../protocol/schemas/access/maintenance.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { callObject } from "../../call-object.ts";
import { tunnelObject } from "../../objects.ts";
import { setMaintenance } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import { createRouter, getMemberActor, jsonResponse, route } from "../route.ts";
import { requireGates, requireSettingChanged } from "../tunnels/setting-changes.ts";

export const maintenance = createRouter();

maintenance.openapi(
  route({
    operationId: "getMaintenance",
    method: "get",
    path: "/tunnels/{id}/maintenance",
    summary: "Get the maintenance of a tunnel",
    guard: allow("tunnels:read"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "Whether maintenance is on. `message` is null when visitors get the default text.",
        MaintenanceState,
      ),
    },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { isInMaintenance } = await requireGates(c, id);
    // The row does not have the message, and may not say yet that maintenance has ended.
    const current = isInMaintenance
      ? await callObject(tunnelObject(c.env, id).getMaintenance())
      : undefined;
    const isOn = current?.isOn ?? false;
    return c.json({ id, maintenance: isOn, message: isOn ? current!.message : null }, 200);
  },
);

maintenance.openapi(
  route({
    operationId: "startMaintenance",
    method: "put",
    path: "/tunnels/{id}/maintenance",
    summary: "Start maintenance of a tunnel",
    description:
      "Visitors receive 503, from the next request on. It ends with DELETE, or when the tunnel's last agent disconnects.",
    guard: allow("tunnels:write"),
    params: IdParams,
    optionalBody: StartMaintenance,
    responses: { 200: jsonResponse("Visitors receive 503.", MaintenanceState) },
    failures: ["expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const message = c.req.valid("json").message ?? null;
    requireSettingChanged(
      await setMaintenance(c.var.db, getMemberActor(c), id, { isOn: true, message }),
    );
    return c.json({ id, maintenance: true, message }, 200);
  },
);

maintenance.openapi(
  route({
    operationId: "endMaintenance",
    method: "delete",
    path: "/tunnels/{id}/maintenance",
    summary: "End the maintenance of a tunnel",
    guard: allow("tunnels:write"),
    params: IdParams,
    responses: { 200: jsonResponse("Visitors reach the tunnel again.", MaintenanceState) },
    failures: ["invalid_request", "expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const off = { isOn: false, message: null };
    requireSettingChanged(await setMaintenance(c.var.db, getMemberActor(c), id, off));
    return c.json({ id, maintenance: false, message: null }, 200);
  },
);
