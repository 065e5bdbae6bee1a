/**
 * The agent's end of a diagnostic connection (docs/protocols/agent-protocol.md), on which round trips and throughput
 * are measured.
 */
import type WebSocket from "ws";
import type { RawData } from "ws";
import {
  DIAGNOSTIC_BYTES_MAX,
  DIAGNOSTIC_MESSAGE_MAX_BYTES,
  DiagnosticReceipt,
} from "../../protocol/schemas/tunnels/diagnostics.ts";
import { parseJson } from "../../shared/json.ts";

/** Each direction is measured with all the bytes that the connection may carry in it. */
const MEASURED_MESSAGES = DIAGNOSTIC_BYTES_MAX / DIAGNOSTIC_MESSAGE_MAX_BYTES;
/** A slow connection is measured by what it has carried in this time. */
const MEASURE_MAX_MS = 1_000;
const ROUND_TRIP_MAX_MS = 2_000;

export class DiagnosticConnection {
  readonly #socket: WebSocket;

  /** @param socket has received the service's welcome. */
  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  /** @returns milliseconds; null when no answer arrives. */
  async measureRoundTrip(): Promise<number | null> {
    const startedAtMs = performance.now();
    this.#socket.send(JSON.stringify({ bytes: 0 }));
    const arrived = await this.#receive(ROUND_TRIP_MAX_MS, (_data, isBinary) => isBinary);
    return arrived ? performance.now() - startedAtMs : null;
  }

  /** @returns bits per second from the server. */
  async measureDownload(): Promise<number> {
    const startedAtMs = performance.now();
    let bytes = 0;
    for (let sent = 0; sent < MEASURED_MESSAGES; sent++) {
      this.#socket.send(JSON.stringify({ bytes: DIAGNOSTIC_MESSAGE_MAX_BYTES }));
    }
    await this.#receive(MEASURE_MAX_MS, (data) => {
      bytes += (data as Buffer).byteLength;
      return bytes >= DIAGNOSTIC_BYTES_MAX;
    });
    return computeRate(bytes, startedAtMs);
  }

  /** @returns bits per second to the server, which has confirmed their arrival. */
  async measureUpload(): Promise<number> {
    const startedAtMs = performance.now();
    let bytes = 0;
    const message = Buffer.alloc(DIAGNOSTIC_MESSAGE_MAX_BYTES);
    for (let sent = 0; sent < MEASURED_MESSAGES; sent++) this.#socket.send(message);
    await this.#receive(MEASURE_MAX_MS, (data, isBinary) => {
      if (isBinary) return false;
      const receipt = DiagnosticReceipt.safeParse(parseJson((data as Buffer).toString()));
      bytes = receipt.data?.received ?? bytes;
      return bytes >= DIAGNOSTIC_BYTES_MAX;
    });
    return computeRate(bytes, startedAtMs);
  }

  close(): void {
    this.#socket.terminate();
  }

  /** Resolves when `isLast` accepts a message, or with false after `maxMs` or at the connection's end. */
  #receive(maxMs: number, isLast: (data: RawData, isBinary: boolean) => boolean): Promise<boolean> {
    const socket = this.#socket;
    return new Promise((resolve) => {
      const settle = (isComplete: boolean): void => {
        clearTimeout(timer);
        socket.off("message", take);
        socket.off("close", end);
        resolve(isComplete);
      };
      const end = (): void => settle(false);
      const take = (data: RawData, isBinary: boolean): void => {
        if (isLast(data, isBinary)) settle(true);
      };
      const timer = setTimeout(end, maxMs);
      socket.on("message", take);
      socket.once("close", end);
    });
  }
}

function computeRate(bytes: number, startedAtMs: number): number {
  return (bytes * 8 * 1000) / Math.max(1, performance.now() - startedAtMs);
}
