/** Agents that the database has admitted, and the tunnel's object refuses. */
import { afterEach, expect, test, vi } from "vitest";
import type { AgentAdmission } from "../../durable-objects/tunnel/admission.ts";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import type { ApiContext } from "../../workers/api/route.ts";
import { handOver } from "../../workers/api/tunnels/hand-over.ts";
import type { Env } from "../../workers/env.ts";
import type { Database } from "../../workers/store/database.ts";
import { withdrawAdmission } from "../../workers/store/tunnels/object-sync.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** @param object the tunnel's. */
const bindTunnel = (object: object) => ({
  TUNNEL: { idFromName: (name: string) => name, get: () => object },
});

test("an agent learns why it is refused, even if its admission cannot be withdrawn", async () => {
  const logged = vi.spyOn(console, "error").mockReturnValue();
  const headers = { [ERROR_HEADER]: "tunnel_not_found" };
  const fetch = () => Promise.resolve(new Response(null, { status: 404, headers }));
  const failure = new Error("the database is unavailable");
  const INTERNAL_API = { withdrawAdmission: () => Promise.reject(failure) };
  const env = { ...bindTunnel({ fetch }), INTERNAL_API };
  const context = { env, var: { requestId: "" } } as unknown as ApiContext;
  const admission = { tunnelId: crypto.randomUUID() } as AgentAdmission;
  await expect(handOver(context, admission)).rejects.toMatchObject({ closeName: "tunnel_deleted" });
  expect(String(logged.mock.calls)).toContain(failure.message);
});

test.each([
  ["a tunnel that other agents of a pool serve stays connected", { agentConnected: true }, 0],
  ["a tunnel that no agent has ever served is not connected", null, 1],
])("after a refused agent, %s", async (_, report, updates) => {
  const update = vi.fn(() => ({ set: () => ({ where: () => Promise.resolve() }) }));
  const db = { query: { update } } as unknown as Database;
  const env = bindTunnel({ sendReport: () => Promise.resolve(report) }) as unknown as Env;
  await withdrawAdmission(env, db, { tunnelId: crypto.randomUUID() } as AgentAdmission);
  expect(update).toHaveBeenCalledTimes(updates);
});
