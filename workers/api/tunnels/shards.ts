/** /tunnels/{id}/shards: how many objects the visitors of a tunnel are spread over. */
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { TunnelShards, TunnelShardsResult } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { setShards } from "../../store/tunnels/shards.ts";
import { requireSettingChanged } from "./setting-changes.ts";
import { allow } from "../guard.ts";
import { createRouter, getMemberActor, jsonResponse, route } from "../route.ts";

export const shards = createRouter();

shards.openapi(
  route({
    operationId: "setTunnelShards",
    method: "put",
    path: "/tunnels/{id}/shards",
    summary: "Spread the visitors of a tunnel over several objects",
    description:
      "For HTTP tunnels with more requests than one object serves. The objects have the settings of the tunnel when the response is sent; visitors are spread over them within a minute, by their addresses. The agent opens a connection to each.",
    guard: allow("tunnels:write"),
    params: IdParams,
    body: TunnelShards,
    example: { shards: 4 },
    responses: { 200: jsonResponse("The number is set.", TunnelShardsResult) },
    failures: ["expired", "unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    const { shards: count } = c.req.valid("json");
    requireSettingChanged(await setShards(c.var.db, getMemberActor(c), id, count));
    return c.json({ id, shards: count }, 200);
  },
);
