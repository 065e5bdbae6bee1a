/** RFC 9562 §4: an id in upper case is the same id, although Durable Objects have names that are compared as text. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { MintedVisitorToken } from "../../../protocol/schemas/access/visitor-tokens.ts";
import type { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import type { DeliveryPage } from "../../../protocol/schemas/webhooks.ts";
import { createReceiver, deliver } from "../../harness/fakes/vendor.ts";
import { waitUntil } from "../../harness/server/api.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  findErrorCode,
  startTunnelOwner,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";

let owned: TunnelOwner;
let origin: RawOrigin;
beforeAll(async () => {
  [owned, origin] = await Promise.all([startTunnelOwner(), startRawOrigin()]);
});
afterAll(async () => {
  await owned.stop();
  await origin.stop();
});

const expose = async (subdomain: string) => {
  const tunnel = await owned.expose(subdomain, origin.port);
  return { ...tunnel, path: `/tunnels/${tunnel.id.toUpperCase()}` };
};

describe("an id in upper case", () => {
  test("sets the maintenance page of its tunnel, and is returned in lower case", async () => {
    const tunnel = await expose("capital-maintenance");
    const { body } = await owned.owner.send("PUT", `${tunnel.path}/maintenance`);
    expect(body).toMatchObject({ id: tunnel.id, maintenance: true });
    expect(findErrorCode(await tunnel.visit())).toBe("maintenance");
  });

  test("stops its tunnel", async () => {
    const tunnel = await expose("capital-stopped");
    await owned.owner.post(`${tunnel.path}/stop`);
    expect(findErrorCode(await tunnel.visit())).toBe("agent_offline");
  });

  test("mints a visitor's token that its tunnel accepts", async () => {
    const tunnel = await expose("capital-token");
    await tunnel.put("policy", { actions: [{ kind: "jwt_validation" }] });
    const minted = await owned.owner.post<MintedVisitorToken>(`${tunnel.path}/visitor-tokens`, {
      subject: "ann",
    });
    const authorization = `Bearer ${minted.body.token}`;
    expect(findErrorCode(await tunnel.visit("/", { authorization }))).toBe("passed");
  });

  test("disconnects its agent", async () => {
    const { id } = await expose("capital-agent");
    const connection = await waitUntil(async () => {
      const { body } = await owned.owner.get<Connection[]>("/connections");
      return body.find(({ tunnels }) => tunnels.includes(id));
    });
    const path = `/connections/${connection.agent_id.toUpperCase()}`;
    expect((await owned.owner.delete(path)).status).toBe(200);
  });

  test("reads the deliveries of its receiver", async () => {
    const receiver = await createReceiver(owned.owner);
    await deliver(owned.api.server, receiver, { body: "{}" });
    const path = `/webhook-receivers/${receiver.id.toUpperCase()}/events`;
    expect((await owned.owner.get<DeliveryPage>(path)).body.events).toHaveLength(1);
  });
});
