/** A tunnel that a test visits to inspect the captured requests, and the local server behind it. */
import type {
  CaptureDetail,
  CaptureSummary,
} from "../../../protocol/schemas/inspector/captures.ts";
import { waitUntil, type Person, type Reply } from "../server/api.ts";
import { startRawOrigin, type RawOrigin } from "./origin.ts";
import type { OwnedTunnel, TunnelOwner } from "./owned-tunnel.ts";
import { exchange, type Answer } from "./raw-http.ts";

export interface VisitedTunnel extends OwnedTunnel {
  origin: RawOrigin;
  /** Sends a request with this start line and the tunnel's Host, followed by `rest`. */
  send: (startLine: string, rest?: Buffer | string) => Promise<Answer>;
}

export async function startVisitedTunnel(
  owned: TunnelOwner,
  subdomain: string,
): Promise<VisitedTunnel> {
  const origin = await startRawOrigin();
  const tunnel = await owned.expose(subdomain, origin.port);
  const host = `${subdomain}.localhost:${owned.api.server.port}`;
  return {
    ...tunnel,
    origin,
    send(startLine, rest = "\r\n") {
      const head = Buffer.from(`${startLine} HTTP/1.1\r\nHost: ${host}\r\n`, "latin1");
      return exchange(owned.api.server.port, Buffer.concat([head, Buffer.from(rest)]));
    },
  };
}

export type Query = Record<string, string | number>;

/** Whether the list contains a capture, apart from its limit. */
export const matchesQuery = (
  one: CaptureSummary,
  { tunnel_id, method, status, path, since, after }: Query,
): boolean =>
  (tunnel_id === undefined || one.tunnel_id === tunnel_id) &&
  (method === undefined || one.method === String(method).toUpperCase()) &&
  (status === undefined ||
    (/xx/i.test(String(status))
      ? String(one.status)[0] === String(status)[0]
      : one.status === status)) &&
  (path === undefined || one.path.includes(String(path))) &&
  one.timestamp >= String(since) &&
  (after === undefined || one.id < after);

export function listCaptures(by: Person, query: Query = {}): Promise<Reply<CaptureSummary[]>> {
  const params = Object.entries(query).map(([name, value]) => [name, String(value)]);
  return by.get(`/inspector?${new URLSearchParams(params as [string, string][]).toString()}`);
}

/** Waits until `count` requests are captured completely. */
export function waitForCaptures(
  by: Person,
  query: Query,
  count: number,
): Promise<CaptureSummary[]> {
  return waitUntil(async () => {
    const { body } = await listCaptures(by, { limit: 500, ...query });
    return body.length === count && body.every(({ state }) => state !== "open") && body;
  }, 60_000);
}

export async function getCapture(by: Person, id: string): Promise<CaptureDetail> {
  return (await by.get<CaptureDetail>(`/inspector/${id}`)).body;
}
