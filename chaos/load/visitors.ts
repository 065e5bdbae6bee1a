/** Visitors of HTTP tunnels: small requests, and uploads and downloads whose bodies are checked. */
import { Agent, request, type IncomingMessage } from "node:http";
import { ERROR_HEADER } from "../../protocol/errors.ts";
import type { RequestEntry, RequestKind, RequestOutcome } from "../history.ts";
import { BodyComparison, createBody } from "./bodies.ts";
import { ANSWER_MAX_MS, repeat, type LoadContext, type LoadTargets } from "./load.ts";
import { POLICY_HEADER } from "./origin.ts";

const SMALL_PAUSE_MS = 120;
const TRANSFER_PAUSE_MS = 600;
export const SMALL_KINDS: RequestKind[] = ["page", "order"];
/** A kind is chosen as often as it is in the list. */
export const TRANSFER_KINDS: RequestKind[] = ["upload", "download", "download", "broken-download"];
const TRANSFER_MIN_BYTES = 1_000;
const TRANSFER_MAX_BYTES = 3_000_000;

export function runVisitor(context: LoadContext): Promise<void> {
  return visitRepeatedly(context, SMALL_KINDS, SMALL_PAUSE_MS);
}

export function runTransfers(context: LoadContext): Promise<void> {
  return visitRepeatedly(context, TRANSFER_KINDS, TRANSFER_PAUSE_MS);
}

async function visitRepeatedly(
  context: LoadContext,
  kinds: RequestKind[],
  pauseMs: number,
): Promise<void> {
  const connections = new Agent({ keepAlive: true, maxSockets: 1 });
  const tunnels = [...context.targets.hosts.keys()];
  await repeat(context, pauseMs, async () => {
    const { random } = context;
    await visit(context, random.pick(tunnels), random.pick(kinds), connections);
  });
  connections.destroy();
}

/** The parts of a `LoadContext` that a visit needs. */
export interface VisitContext extends Pick<LoadContext, "history" | "random" | "nextId"> {
  targets: Pick<LoadTargets, "visitorPort" | "hosts">;
}

/** Sends one request and records its outcome. */
export async function visit(
  { targets, history, random, nextId }: VisitContext,
  tunnel: string,
  kind: RequestKind,
  connections?: Agent,
): Promise<RequestEntry> {
  const id = nextId();
  const body = {
    seed: random.below(1_000_000),
    bytes: TRANSFER_MIN_BYTES + random.below(TRANSFER_MAX_BYTES),
  };
  const startedAtMs = history.now();
  const answer = await send({
    port: targets.visitorPort,
    host: targets.hosts.get(tunnel)!,
    path: `/${kind}?id=${id}&seed=${body.seed}&bytes=${body.bytes}`,
    kind,
    id,
    body,
    connections,
  });
  const endedAtMs = history.now();
  const entry = { type: "request", id, tunnel, kind, startedAtMs, endedAtMs, ...answer } as const;
  history.add(entry);
  return entry;
}

interface Visit {
  port: number;
  host: string;
  path: string;
  kind: RequestKind;
  id: string;
  body: { seed: number; bytes: number };
  connections: Agent | undefined;
}

type Answer = Pick<RequestEntry, "outcome" | "status" | "detail" | "policy">;

function send(visit: Visit): Promise<Answer> {
  const { port, host, path, kind, body, connections } = visit;
  const isUpload = kind === "upload";
  const method = isUpload || kind === "order" ? "POST" : "GET";
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const headers = {
    host,
    ...(isUpload && body.seed % 2 === 0 && { "content-length": body.bytes }),
  };
  const agent = connections ?? false;
  const signal = AbortSignal.timeout(ANSWER_MAX_MS);
  const outgoing = request({ host: "127.0.0.1", port, method, path, headers, agent, signal });
  const fail = (outcome: RequestOutcome) => {
    resolve({ outcome: signal.aborted ? "timed out" : outcome, status: 0 });
  };
  outgoing.on("error", () => fail("no connection"));
  outgoing.on("response", (response) => void readAnswer(visit, response, signal).then(resolve));
  if (isUpload) for (const part of createBody(body.seed, body.bytes)) outgoing.write(part);
  outgoing.end();
  return promise;
}

async function readAnswer(
  { kind, id, body }: Visit,
  response: IncomingMessage,
  signal: AbortSignal,
): Promise<Answer> {
  const status = response.statusCode ?? 0;
  const isDownload = kind === "download" || kind === "broken-download";
  const comparison = isDownload ? new BodyComparison(body.seed, body.bytes) : undefined;
  let text = "";
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      if (status !== 200 || !comparison) text += part.toString("latin1");
      else comparison.add(part);
    }
    if (!response.complete) return { outcome: "cut", status };
  } catch {
    return { outcome: signal.aborted ? "timed out" : "cut", status };
  }
  const code = response.headers[ERROR_HEADER];
  if (typeof code === "string") return { outcome: "refused", status, detail: code };
  const difference = status === 200 ? undefined : `status ${status} without an error code`;
  const detail = difference ?? (comparison ? comparison.findDifference() : compareId(id, text));
  if (detail !== undefined) return { outcome: "corrupt", status, detail };
  const policy = response.headers[POLICY_HEADER];
  return { outcome: "complete", status, ...(policy && { policy: Number(policy) }) };
}

function compareId(id: string, text: string): string | undefined {
  return text === id ? undefined : `the answer to ${text.slice(0, 100)}`;
}
