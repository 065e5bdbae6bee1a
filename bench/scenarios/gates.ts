/** The cost of gates: requests per second with each gate, relative to a tunnel without gates. */
import { COOKIE, TunnelBrowser } from "../../test/harness/tunnel/gated-visits.ts";
import { callApi } from "../api.ts";
import { compareVariants, measureLoad, type MeasuredLoad } from "../measured-load.ts";
import { runLoad } from "../processes.ts";
import { CONNECTIONS, ROUNDS, type BenchOptions } from "../settings.ts";
import type { Row } from "../report.ts";
import type { BenchStack } from "../stack.ts";

interface Gate {
  name: string;
  /** Sets this gate on the tunnel, which has no other. */
  set(stack: BenchStack): Promise<void>;
  headers?: Record<string, string>;
}

const PASSWORD = { username: "bench", password: "open sesame" };
const credentials = Buffer.from(`${PASSWORD.username}:${PASSWORD.password}`).toString("base64");
const policy = (...actions: object[]) => ({
  set: (stack: BenchStack) => send(stack, "PUT", "policy", { actions }),
});

const GATES = ["policy", "auth", "edge-auth"];
const ANY_VISITOR = { allowed_domains: [], allowed_emails: [] };

function buildGates(visitorToken: string, pass: string): Gate[] {
  return [
    { name: "open", set: () => Promise.resolve() },
    {
      name: "policy: deny, header_set",
      ...policy(
        { kind: "deny", path_prefix: "/admin" },
        { kind: "header_set", name: "X-Team", value: "blue" },
      ),
    },
    {
      name: "policy: rate_limit",
      ...policy({ kind: "rate_limit", requests_per_minute: 1_000_000, per_client_ip: true }),
    },
    {
      name: "Basic auth",
      set: (stack) => send(stack, "PUT", "auth", PASSWORD),
      headers: { authorization: `Basic ${credentials}` },
    },
    {
      name: "identity gate",
      set: (stack) => send(stack, "PUT", "edge-auth", ANY_VISITOR),
      headers: { cookie: `${COOKIE}=${pass}` },
    },
    {
      name: "policy: jwt_validation",
      ...policy({ kind: "jwt_validation" }),
      headers: { authorization: `Bearer ${visitorToken}` },
    },
  ];
}

export async function benchGates(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  const gates = buildGates(await mintVisitorToken(stack), await signIn(stack));
  const rounds = new Map(gates.map(({ name }) => [name, [] as MeasuredLoad[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const gate of gates) {
      for (const setting of GATES) await send(stack, "DELETE", setting);
      await gate.set(stack);
      // The first request verifies the password or token, whose result is cached. Only later ones are measured.
      const plan = buildPlan(stack, gate);
      await runLoad({ ...plan, connections: 1, seconds: 0.5, warmUpSeconds: 0 });
      const measured = { ...plan, connections: CONNECTIONS, seconds };
      rounds.get(gate.name)!.push(await measureLoad(measured, [stack.workerdPid]));
    }
  }
  return compareVariants("gates", rounds);
}

/** Signs a visitor in at the identity provider. @returns the visitor pass. */
async function signIn(stack: BenchStack): Promise<string> {
  const email = "visitor@example.com";
  stack.provider.user = { sub: email, email, email_verified: true };
  await send(stack, "PUT", "edge-auth", ANY_VISITOR);
  const browser = new TunnelBrowser();
  await browser.followRedirects(`http://${stack.host}/`);
  const pass = browser.cookie(stack.host.split(":")[0]!, COOKIE);
  if (pass === undefined) throw new Error("the visitor got no pass");
  return pass;
}

async function mintVisitorToken(stack: BenchStack): Promise<string> {
  const path = `/tunnels/${stack.tunnelId}/visitor-tokens`;
  const { token } = await callApi<{ token: string }>(stack, "POST", path, { subject: "bench" });
  return token;
}

function buildPlan({ server, host }: BenchStack, { headers }: Gate) {
  return { port: server.port, host, path: "/", ...(headers && { headers }) };
}

async function send(
  stack: BenchStack,
  method: string,
  setting: string,
  body?: object,
): Promise<void> {
  await callApi(stack, method, `/tunnels/${stack.tunnelId}/${setting}`, body);
}
