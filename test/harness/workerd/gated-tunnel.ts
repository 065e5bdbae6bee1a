/** What stands before a `LiveTunnel`, set as the API sets it, and how visitors fare. Inside workerd. */
import { GATES_HEADER, parseGates, type Gates } from "../../../access/gates.ts";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import type { PolicyAction } from "../../../protocol/schemas/access/policies.ts";
import type { Asked, LiveTunnel, TestAgent } from "./live-tunnel.ts";

/** Nobody hashes in these tests: whether a password is right is the edge's word. */
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

/** @returns the version that they have. */
export async function publish(
  tunnel: LiveTunnel,
  actions: PolicyAction[],
  basicAuth: typeof AUTH | null = null,
): Promise<number> {
  const settings = { version: newVersion(), realm: "shop", basicAuth, policy: { actions } };
  await tunnel.stub.publishSettings(settings);
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
  /** Of the refusal, or `passed`. */
  code: string | null;
  answer: Response;
  /** What the agent got, where it got anything. */
  asked?: Asked;
}

export async function outcomeOf(
  tunnel: LiveTunnel,
  agent: TestAgent,
  path: string,
  init?: RequestInit,
): Promise<VisitOutcome> {
  const visit = tunnel.visit(path, init);
  const first = await Promise.race([visit, agent.asked()]);
  if (first instanceof Response) return { code: first.headers.get(ERROR_HEADER), answer: first };
  agent.answer(first.stream, 200, [], "passed");
  const answer = await visit;
  // An object that still has something to send does not sleep.
  await answer.arrayBuffer();
  return { code: "passed", answer, asked: first };
}

/** What an answer tells the edge; undefined: nothing. */
export function gatesIn(answer: Response): Gates | null | undefined {
  const line = answer.headers.get(GATES_HEADER);
  return line === null ? undefined : parseGates(line);
}
