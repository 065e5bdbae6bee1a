/** /tunnels/{id}/ip-allowlist: the IP addresses from which visitors may reach a tunnel. */
import { IpAllowlist, SetIpAllowlist } from "../../../protocol/schemas/access/ip-allowlist.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { setAllowedCidrs } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import { createRouter, getMemberActor, jsonResponse, route } from "../route.ts";
import { requireGates, requireSettingChanged } from "../tunnels/setting-changes.ts";

export const ipAllowlist = createRouter();

ipAllowlist.openapi(
  route({
    operationId: "getIpAllowlist",
    method: "get",
    path: "/tunnels/{id}/ip-allowlist",
    summary: "Get the IP allowlist of a tunnel",
    guard: allow("tunnels:read"),
    params: IdParams,
    responses: {
      200: jsonResponse("The list. `cidrs` is null when every address is allowed.", IpAllowlist),
    },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { allowedCidrs: cidrs } = await requireGates(c, id);
    return c.json({ id, cidrs }, 200);
  },
);

ipAllowlist.openapi(
  route({
    operationId: "setIpAllowlist",
    method: "put",
    path: "/tunnels/{id}/ip-allowlist",
    summary: "Set the IP allowlist of a tunnel",
    description:
      "Replaces the current list. A visitor from any other address receives 403, or no connection from a TCP tunnel.",
    guard: allow("tunnels:write"),
    params: IdParams,
    body: SetIpAllowlist,
    responses: { 200: jsonResponse("The list is in force.", IpAllowlist) },
    failures: ["expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { cidrs } = c.req.valid("json");
    requireSettingChanged(await setAllowedCidrs(c.var.db, getMemberActor(c), id, cidrs));
    return c.json({ id, cidrs }, 200);
  },
);

ipAllowlist.openapi(
  route({
    operationId: "removeIpAllowlist",
    method: "delete",
    path: "/tunnels/{id}/ip-allowlist",
    summary: "Remove the IP allowlist of a tunnel",
    guard: allow("tunnels:write"),
    params: IdParams,
    responses: { 200: jsonResponse("Every address is allowed.", IpAllowlist) },
    failures: ["expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    requireSettingChanged(await setAllowedCidrs(c.var.db, getMemberActor(c), id, null));
    return c.json({ id, cidrs: null }, 200);
  },
);
