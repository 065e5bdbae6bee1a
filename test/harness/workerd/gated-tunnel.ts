/** A `LiveTunnel` with access settings, published as the API publishes them. For tests inside workerd. */
import { GATES_HEADER, parseGates, type Gates } from "../../../access/gates.ts";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import type { PolicyAction } from "../../../protocol/schemas/access/policies.ts";
import type { ReceivedRequest, LiveTunnel, TestAgent } from "./live-tunnel.ts";

/** Nothing is hashed in these tests: they send the edge's verdict instead. */
export const AUTH = {
  username: "ann",
  passwordHash: "$argon2id$v=19$m=19456,t=2,p=1$c2FsdA$aGFzaA",
};
export const ANN = { authorization: `Basic ${btoa("ann:open sesame")}` };

let version = 0;
export function newVersion(): number {
  version += 1;
  return version;
}

/** @returns the version of the settings. */
export async function publish(
  tunnel: LiveTunnel,
  actions: PolicyAction[],
  basicAuth: typeof AUTH | null = null,
): Promise<number> {
  const settings = { version: newVersion(), realm: "shop", basicAuth, policy: { actions } };
  await tunnel.stub.publishAccessSettings(settings);
  return settings.version;
}

export async function setMaintenance(
  tunnel: LiveTunnel,
  isOn: boolean,
  message: string | null = null,
): Promise<number> {
  const maintenance = { version: newVersion(), isOn, message };
  await tunnel.stub.setMaintenance(tunnel.id, maintenance);
  return maintenance.version;
}

export interface VisitOutcome {
  /** The code of the refusal, or `passed`. */
  code: string | null;
  response: Response;
  /** The request that the agent received, if any. */
  received?: ReceivedRequest;
}

/** Sends a visitor's request, to which the agent responds if it is admitted. */
export async function runVisit(
  tunnel: LiveTunnel,
  agent: TestAgent,
  path: string,
  init?: RequestInit,
): Promise<VisitOutcome> {
  const visit = tunnel.visit(path, init);
  const first = await Promise.race([visit, agent.nextRequest()]);
  if (first instanceof Response) return { code: first.headers.get(ERROR_HEADER), response: first };
  agent.respond(first.stream, 200, [], "passed");
  const response = await visit;
  // An object that still has bytes to send does not hibernate.
  await response.arrayBuffer();
  return { code: "passed", response, received: first };
}

/** The policy update in a response; undefined: none. */
export function readPolicyUpdate(response: Response): Gates | null | undefined {
  const header = response.headers.get(GATES_HEADER);
  return header === null ? undefined : parseGates(header);
}
