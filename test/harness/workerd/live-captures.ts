/** What a tunnel has captured, for tests inside workerd. */
import type {
  CaptureEvent,
  CaptureFilter,
  CaptureSummary,
  CapturePolicy,
} from "../../../protocol/schemas/inspector/captures.ts";
import { FRAME } from "../../../protocol/wire/frames.ts";
import type { LiveTunnel, TestAgent } from "./live-tunnel.ts";

export async function capturesOf(
  tunnel: LiveTunnel,
  filter: Partial<CaptureFilter> = {},
): Promise<CaptureSummary[]> {
  return [...(await tunnel.stub.listCaptures({ limit: 500, ...filter }))];
}

/** The newest, in full. */
export async function lastCapture(tunnel: LiveTunnel): Promise<CaptureEvent> {
  const [newest] = await capturesOf(tunnel, { limit: 1 });
  if (!newest) throw new Error("nothing was captured");
  return (await tunnel.stub.getCapture(newest.id))!;
}

let versions = 0;

export async function setCapturing(
  tunnel: LiveTunnel,
  settings: Partial<CapturePolicy>,
): Promise<void> {
  versions += 1;
  await tunnel.stub.publishCaptureSettings({
    capture: true,
    redactHeaders: [],
    allowReplay: false,
    bodies: true,
    retentionDays: 7,
    version: versions,
    ...settings,
  });
}

export function textOf(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}

/** A visit that the agent answers, taken to its end. */
export async function visited(
  tunnel: LiveTunnel,
  agent: TestAgent,
  path = "/",
  body = "",
): Promise<void> {
  const answer = tunnel.visit(path);
  agent.answer(await nextRequest(agent), 200, [], body);
  await (await answer).text();
}

/** The stream of the next request, whatever credit came before it. */
export async function nextRequest(agent: TestAgent): Promise<number> {
  for (;;) {
    const { type, stream } = await agent.anything();
    if (type === FRAME.request) return stream;
  }
}
