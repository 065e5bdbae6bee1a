/** A visitor's request body on its way to the agent, at the rate that token and credit allow. */
import { FLAG, FRAME } from "../../../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES } from "../../../protocol/limits.ts";
import type { AgentLink } from "../agents/agent-link.ts";
import type { Recording } from "../captures/recording.ts";
import type { Usage } from "../metrics/usage.ts";

/** How often an upload checks whether the tunnel may buffer more. */
const BUFFER_POLL_MS = 20;

export interface Upload {
  /** Whether the whole body was sent. */
  isFinished(): boolean;
  /** Reads no more. What the visitor still sends is dropped by the platform. */
  cancel(): void;
}

interface UploadDeps {
  link: AgentLink;
  stream: number;
  usage: Usage;
  recording: Recording | null;
  /** The visitor did not finish the body. */
  onFailed(): void;
}

/** What an upload holds in memory while it lasts, besides the bytes that the agent has not granted again. */
export const UPLOAD_BUFFER_BYTES = FRAME_DATA_MAX_BYTES;

/** Starts sending. */
export function sendBody(body: ReadableStream, deps: UploadDeps): Upload {
  const { link, stream, usage, recording } = deps;
  let state: "sending" | "finished" | "canceled" = "sending";
  // A BYOB reader, because the default one reads four kilobytes at a time.
  const reader = body.getReader({ mode: "byob" });

  async function pump(): Promise<void> {
    let buffer = new ArrayBuffer(UPLOAD_BUFFER_BYTES);
    while (state === "sending") {
      const read = await reader.read(new Uint8Array(buffer));
      if (read.done) return finish();
      await send(read.value);
      buffer = read.value.buffer;
    }
  }

  async function send(bytes: Uint8Array): Promise<void> {
    usage.countIn(bytes.byteLength);
    recording?.addRequestBytes(bytes);
    const waitMs = link.pace.toAgent.reserve(bytes.byteLength, Date.now());
    if (waitMs > 0) await scheduler.wait(waitMs);
    let rest = bytes;
    while (state === "sending" && rest.byteLength > 0) {
      const available = link.windows.available(stream);
      if (available <= 0) {
        await new Promise<void>((resume) => link.windows.whenAvailable(stream, resume));
      } else if (link.buffered.isFull) {
        await scheduler.wait(BUFFER_POLL_MS);
      } else {
        const part = rest.subarray(0, available);
        link.windows.recordSent(stream, part.byteLength);
        link.send((writer) => writer.writeData(stream, part));
        rest = rest.subarray(part.byteLength);
      }
    }
  }

  function finish(): void {
    if (state !== "sending") return;
    recording?.endRequest();
    link.send((writer) => writer.writeBytes(FRAME.data, FLAG.end, stream, new Uint8Array()));
    link.windows.end(stream);
    state = "finished";
  }

  function cancel(): void {
    if (state !== "sending") return;
    state = "canceled";
    link.windows.drop(stream);
    reader.cancel().catch(() => undefined);
  }

  pump().catch(() => {
    if (state === "sending") deps.onFailed();
  });

  return { isFinished: () => state === "finished", cancel };
}
