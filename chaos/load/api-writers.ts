/** Callers who change rows through the API, and record which changes were acknowledged. */
import type { Tunnel } from "../../protocol/schemas/tunnels/tunnels.ts";
import type { WriteEntry, WriteResult } from "../history.ts";
import { repeat, type LoadContext } from "./load.ts";
import { POLICY_HEADER } from "./origin.ts";

const PAUSE_MS = 400;
/** The percentages of steps that create a tunnel, and that mint a token; the others delete a tunnel. */
const CREATE_PERCENT = 45;
const MINT_PERCENT = 30;

/** Creates tunnels and tokens, and deletes tunnels. */
export async function runWriter(context: LoadContext): Promise<void> {
  const created: { id: string; name: string }[] = [];
  await repeat(context, PAUSE_MS, async () => {
    const step = context.random.below(100);
    const name = `w-${context.nextId()}`;
    if (step < CREATE_PERCENT) {
      const body = { localPort: 1, subdomain: name };
      const request = { method: "POST", path: "/tunnels", body };
      const tunnel = await write<Tunnel>(context, "create-tunnel", name, request);
      if (tunnel !== undefined) created.push({ id: tunnel.id, name });
    } else if (step < CREATE_PERCENT + MINT_PERCENT) {
      const request = { method: "POST", path: "/tokens", body: { name } };
      await write(context, "mint-token", name, request);
    } else {
      const tunnel = created.pop();
      if (!tunnel) return;
      const request = { method: "DELETE", path: `/tunnels/${tunnel.id}` };
      await write(context, "delete-tunnel", tunnel.name, request);
    }
  });
}

/** Gives a tunnel one policy after the other, each with a higher number, which the local server sees. */
export async function runPolicyWriter(context: LoadContext): Promise<void> {
  const path = `/tunnels/${context.targets.policyTunnelId}/policy`;
  let number = 0;
  await repeat(context, PAUSE_MS, async () => {
    number += 1;
    const header = { kind: "header_set", name: POLICY_HEADER, value: String(number) };
    const request = { method: "PUT", path, body: { actions: [header] } };
    await write(context, "set-policy", String(number), request);
  });
}

interface ApiWrite {
  method: string;
  path: string;
  body?: object;
}

/** @param name of the changed row, or the number of the policy. @returns the body of the response. */
async function write<Body>(
  { targets, history }: LoadContext,
  kind: WriteEntry["kind"],
  name: string,
  { method, path, body }: ApiWrite,
): Promise<Body | undefined> {
  const startedAtMs = history.now();
  const reply = await targets.owner.call<Body>(method, path, body);
  const entry = { type: "write", kind, name, startedAtMs, endedAtMs: history.now() } as const;
  history.add({ ...entry, result: toResult(reply.status), status: reply.status });
  return reply.body;
}

/** A 4xx is decided before anything is changed. A 5xx may follow a commit, for example when a delivery is still due. */
function toResult(status: number): WriteResult {
  if (status >= 200 && status < 300) return "acknowledged";
  return status >= 400 && status < 500 ? "refused" : "unknown";
}
