/** A thousand agents: how soon the list has them, loses those that go, and is right after a crash. */
import { expose, type ExposedTunnel } from "../../agent/expose.ts";
import { AT_ONCE, inParallel, wideToken } from "../many-agents.ts";
import type { Row } from "../report.ts";
import type { Stack } from "../stack.ts";

const AGENTS = 1_000;
const GONE = 300;
const WAIT_MAX_MS = 60_000;

export async function benchConnections(stack: Stack): Promise<Row[]> {
  const token = await wideToken(stack, AGENTS);
  const target = `127.0.0.1:${stack.origin.port}`;
  const agents: ExposedTunnel[] = [];
  const startedAt = performance.now();
  await inParallel(AGENTS, async () => {
    agents.push(await expose({ target, server: stack.server.url, token }));
  });
  const admittedMs = performance.now() - startedAt;
  // The stack's own agent is there too.
  const listed = await listUntil(stack, AGENTS + 1);
  const fresh = await timedList(stack);

  await Promise.all(agents.splice(0, GONE).map((agent) => agent.close()));
  const gone = await listUntil(stack, AGENTS + 1 - GONE);

  process.kill(stack.workerdPid, "SIGKILL");
  const crashed = await firstList(stack);
  const back = await listUntil(stack, AGENTS + 1 - GONE);
  await Promise.all(agents.map((agent) => agent.close()));
  return [
    {
      group: "connections",
      agents: AGENTS,
      "admitted/s": Math.round((AGENTS * 1000) / admittedMs),
      "at once": AT_ONCE,
      "all listed after ms": Math.round(listed.ms),
      "list in ms": Math.round(fresh.ms),
      "gone after ms": Math.round(gone.ms),
      "listed then": gone.count,
      "listed right after kill -9": crashed.count,
      "that list in ms": Math.round(crashed.ms),
      "back after ms": Math.round(back.ms),
      "listed in the end": back.count,
    },
  ];
}

interface Timed {
  count: number;
  ms: number;
}

async function timedList({ server, accessToken }: Stack): Promise<Timed> {
  const startedAt = performance.now();
  const answer = await fetch(`${server.url}/connections`, {
    headers: { authorization: `Bearer ${accessToken}` },
  });
  if (!answer.ok) throw new Error(`GET /connections answered ${answer.status}`);
  const { length: count } = (await answer.json()) as unknown[];
  return { count, ms: performance.now() - startedAt };
}

async function firstList(stack: Stack): Promise<Timed> {
  for (;;) {
    try {
      return await timedList(stack);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Asks until as many are listed, or for as long as anybody would wait. */
async function listUntil(stack: Stack, wanted: number): Promise<Timed> {
  const startedAt = performance.now();
  for (;;) {
    const { count } = await firstList(stack);
    const ms = performance.now() - startedAt;
    if (count === wanted || ms > WAIT_MAX_MS) return { count, ms };
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
