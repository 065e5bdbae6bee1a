/** /tunnels/{id}/maintenance: a tunnel that is closed for a while, with a word to its visitors. */
import {
  MaintenanceState,
  StartMaintenance,
} from "../../../protocol/schemas/access/maintenance.ts";
import { Id } from "../../../protocol/schemas/scalars.ts";
import { setMaintenance } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import { getMemberActor, jsonResponse, createRouter, route } from "../route.ts";
import { requireGateChange } from "./gate-changes.ts";

export const maintenance = createRouter();

maintenance.openapi(
  route({
    method: "put",
    path: "/tunnels/{id}/maintenance",
    summary: "Answer every visitor of a tunnel with 503",
    description: "From the next request on, until it is ended or the tunnel's last agent goes.",
    guard: allow("tunnels:write"),
    params: Id,
    optionalBody: StartMaintenance,
    responses: { 200: jsonResponse("In force.", MaintenanceState) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const message = c.req.valid("json").message ?? null;
    requireGateChange(
      await setMaintenance(c.var.db, getMemberActor(c), id, { isOn: true, message }),
    );
    return c.json({ id, maintenance: true, message }, 200);
  },
);

maintenance.openapi(
  route({
    method: "delete",
    path: "/tunnels/{id}/maintenance",
    summary: "End the maintenance of a tunnel",
    guard: allow("tunnels:write"),
    params: Id,
    responses: { 200: jsonResponse("Visitors get through again.", MaintenanceState) },
    failures: ["invalid_request", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const off = { isOn: false, message: null };
    requireGateChange(await setMaintenance(c.var.db, getMemberActor(c), id, off));
    return c.json({ id, maintenance: false, message: null }, 200);
  },
);
