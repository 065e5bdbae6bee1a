/** The captures of a tunnel, for tests inside workerd. */
import type {
  CaptureDetail,
  CaptureFilter,
  CaptureSummary,
  VersionedCaptureSettings,
} from "../../../protocol/schemas/inspector/captures.ts";
import { FRAME } from "../../../protocol/wire/frames.ts";
import type { LiveTunnel, TestAgent } from "./live-tunnel.ts";

export async function listCaptures(
  tunnel: LiveTunnel,
  filter: Partial<CaptureFilter> = {},
): Promise<CaptureSummary[]> {
  return [...(await tunnel.stub.listCaptures({ limit: 500, ...filter }))];
}

/** @returns null when it is not stored. */
export async function getCapture(
  stub: LiveTunnel["stub"],
  id: string,
): Promise<CaptureDetail | null> {
  return (await stub.getCaptures([id]))[0] ?? null;
}

/** The newest capture, in full. */
export async function lastCapture(tunnel: LiveTunnel): Promise<CaptureDetail> {
  const [newest] = await listCaptures(tunnel, { limit: 1 });
  if (!newest) throw new Error("the tunnel has no captures");
  return (await getCapture(tunnel.stub, newest.id))!;
}

let versions = 0;

export async function setCaptureSettings(
  tunnel: LiveTunnel,
  settings: Partial<VersionedCaptureSettings>,
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

export function decodeBase64Text(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)));
}

/** A visitor's request that the agent responds to; the response is read to its end. */
export async function completeVisit(
  tunnel: LiveTunnel,
  agent: TestAgent,
  path = "/",
  body = "",
): Promise<void> {
  const answer = tunnel.visit(path);
  agent.respond(await nextRequest(agent), 200, [], body);
  await (await answer).text();
}

/** The stream of the next request. Frames before it, such as credit, are skipped. */
export async function nextRequest(agent: TestAgent): Promise<number> {
  for (;;) {
    const { type, stream } = await agent.nextFrame();
    if (type === FRAME.request) return stream;
  }
}
