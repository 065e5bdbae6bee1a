/** /tunnels/{id}/ip-allowlist: the addresses that visitors of a tunnel may come from. */
import { IpAllowlist, SetIpAllowlist } from "../../../protocol/schemas/access/ip-allowlist.ts";
import { Id } from "../../../protocol/schemas/scalars.ts";
import { findAllowedCidrs, setAllowedCidrs } from "../../store/access/gates.ts";
import { allow } from "../guard.ts";
import { getMemberActor, jsonResponse, createRouter, notFound, route } from "../route.ts";
import { requireGateChange } from "./gate-changes.ts";

export const ipAllowlist = createRouter();

ipAllowlist.openapi(
  route({
    method: "get",
    path: "/tunnels/{id}/ip-allowlist",
    summary: "Read the addresses that visitors of a tunnel may come from",
    guard: allow("tunnels:read"),
    params: Id,
    responses: {
      200: jsonResponse("`cidrs` is null where visitors may come from anywhere.", IpAllowlist),
    },
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const cidrs = await findAllowedCidrs(c.var.db, c.var.principal.orgId, id);
    if (cidrs === undefined) throw notFound("such tunnel");
    return c.json({ id, cidrs }, 200);
  },
);

ipAllowlist.openapi(
  route({
    method: "put",
    path: "/tunnels/{id}/ip-allowlist",
    summary: "Let visitors of a tunnel in from these addresses only",
    description:
      "It replaces the list before. Visitors from elsewhere get 403, or, of a tunnel of protocol `tcp`, no connection.",
    guard: allow("tunnels:write"),
    params: Id,
    body: SetIpAllowlist,
    responses: { 200: jsonResponse("In force.", IpAllowlist) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { cidrs } = c.req.valid("json");
    requireGateChange(await setAllowedCidrs(c.var.db, getMemberActor(c), id, cidrs));
    return c.json({ id, cidrs }, 200);
  },
);

ipAllowlist.openapi(
  route({
    method: "delete",
    path: "/tunnels/{id}/ip-allowlist",
    summary: "Let visitors of a tunnel in from anywhere",
    guard: allow("tunnels:write"),
    params: Id,
    responses: { 200: jsonResponse("In force.", IpAllowlist) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    requireGateChange(await setAllowedCidrs(c.var.db, getMemberActor(c), id, null));
    return c.json({ id, cidrs: null }, 200);
  },
);
