/** A visitor's request body on its way to the agent, at the rate that token and credit allow. */
import { FLAG, FRAME, RESET } from "../../../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES } from "../../../protocol/limits.ts";
import type { AgentLink } from "../agents/agent-link.ts";
import type { Recording } from "../captures/recording.ts";
import type { Usage } from "../metrics/usage.ts";

export interface Upload {
  /** Whether the whole body was sent. */
  isFinished(): boolean;
  cancel(): void;
}

/** Starts sending. If the visitor does not finish the body, the stream is reset. */
export function sendBody(
  body: ReadableStream,
  link: AgentLink,
  stream: number,
  usage: Usage,
  recording: Recording | null,
): Upload {
  let isCancelled = false;
  let isFinished = false;
  // A BYOB reader, because the default one reads four kilobytes at a time.
  const reader = body.getReader({ mode: "byob" });

  async function pump(): Promise<void> {
    let buffer = new ArrayBuffer(FRAME_DATA_MAX_BYTES);
    while (!isCancelled) {
      const read = await reader.read(new Uint8Array(buffer));
      if (isCancelled) return;
      if (read.done) {
        recording?.endRequest();
        link.send((writer) => writer.writeBytes(FRAME.data, FLAG.end, stream, new Uint8Array()));
        link.windows.end(stream);
        isFinished = true;
        return;
      }
      let rest: Uint8Array = read.value;
      usage.countIn(rest.byteLength);
      recording?.addRequestBytes(rest);
      const waitMs = link.pace.toAgent.reserve(rest.byteLength, Date.now());
      if (waitMs > 0) await scheduler.wait(waitMs);
      if (isCancelled) return;
      while (rest.byteLength > 0) {
        const available = link.windows.available(stream);
        if (available <= 0) {
          await new Promise<void>((resume) => link.windows.whenAvailable(stream, resume));
          if (isCancelled) return;
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
    if (!isCancelled) link.reset(stream, RESET.cancelled, "the visitor did not finish the request");
  });

  return {
    isFinished: () => isFinished,
    cancel() {
      if (isCancelled || isFinished) return;
      isCancelled = true;
      link.windows.drop(stream);
      reader.cancel().catch(() => undefined);
    },
  };
}
