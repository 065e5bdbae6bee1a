/** The first frame on a connection to a tunnel. */
import { STREAM_WINDOW_BYTES } from "../../protocol/limits.ts";
import { SERVICE_VERSION } from "../../protocol/version.ts";
import { PROTOCOL_VERSION, type Hello } from "../../protocol/wire/frames.ts";

export function buildHello(
  fields: Pick<Hello, "capabilities" | "connectionWindow" | "local" | "pool">,
): Hello {
  return {
    protocol: PROTOCOL_VERSION,
    agent: `underpass/${SERVICE_VERSION} (${process.platform}; node ${process.versions.node})`,
    streamWindow: STREAM_WINDOW_BYTES,
    ...fields,
  };
}
