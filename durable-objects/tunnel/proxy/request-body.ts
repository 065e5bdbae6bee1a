/** A visitor's request body on its way to the agent, no faster than its token and its credit allow. */
import { FLAG, FRAME, RESET } from "../../../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES } from "../../../protocol/limits.ts";
import type { AgentLink } from "../agents/agent-link.ts";
import type { Recording } from "../captures/recording.ts";
import type { Usage } from "../metrics/usage.ts";

export interface Upload {
  /** Everything was sent. */
  isFinished(): boolean;
  cancel(): void;
}

/** Starts sending. A body that the visitor does not finish resets the stream. */
export function sendBody(
  body: ReadableStream,
  link: AgentLink,
  stream: number,
  usage: Usage,
  recording: Recording | null,
): Upload {
  let cancelled = false;
  let finished = false;
  // A reader that brings its own buffer: the default one reads four kilobytes at a time.
  const reader = body.getReader({ mode: "byob" });

  async function pump(): Promise<void> {
    let buffer = new ArrayBuffer(FRAME_DATA_MAX_BYTES);
    while (!cancelled) {
      const read = await reader.read(new Uint8Array(buffer));
      if (cancelled) return;
      if (read.done) {
        recording?.endRequest();
        link.send((writer) => writer.writeBytes(FRAME.data, FLAG.end, stream, new Uint8Array()));
        link.windows.end(stream);
        finished = true;
        return;
      }
      let rest: Uint8Array = read.value;
      usage.countIn(rest.byteLength);
      recording?.addRequestBytes(rest);
      const waitMs = link.pace.toAgent.reserve(rest.byteLength, Date.now());
      if (waitMs > 0) await scheduler.wait(waitMs);
      if (cancelled) return;
      while (rest.byteLength > 0) {
        const available = link.windows.available(stream);
        if (available <= 0) {
          await new Promise<void>((resume) => link.windows.whenAvailable(stream, resume));
          if (cancelled) return;
          continue;
        }
        const part = rest.subarray(0, available);
        link.windows.recordSent(stream, part.byteLength);
        link.send((writer) => writer.writeBytes(FRAME.data, 0, stream, part));
        rest = rest.subarray(part.byteLength);
      }
      buffer = read.value.buffer;
    }
  }

  pump().catch(() => {
    if (!cancelled) link.reset(stream, RESET.cancelled, "the visitor did not finish the request");
  });

  return {
    isFinished: () => finished,
    cancel() {
      if (cancelled || finished) return;
      cancelled = true;
      link.windows.drop(stream);
      reader.cancel().catch(() => undefined);
    },
  };
}
