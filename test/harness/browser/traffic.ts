/** Tunnels with visitors, for tests of the pages that show their traffic. */
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import { MINUTE_MS } from "../../../shared/time.ts";
import { mintToken, type Person, type TestApi } from "../server/api.ts";
import { exchange } from "../tunnel/raw-http.ts";

export interface ServedTunnel extends AsyncDisposable {
  id: string;
  visit(path: string): Promise<void>;
}

/** A tunnel to a function, which answers `/status/404` with this status. */
export async function serveTunnel(
  api: TestApi,
  owner: Person,
  subdomain: string,
): Promise<ServedTunnel> {
  const { wireBytes } = await mintToken(owner, { name: `laptop of ${subdomain}` });
  const { url: server, port } = api.server;
  const agent: ExposedTunnel = await expose({
    server,
    token: Buffer.from(wireBytes, "base64"),
    subdomain,
    fetch: ({ url }) => {
      const [, status] = /\/status\/(\d+)/.exec(url) ?? [];
      return new Response("answer", { status: Number(status ?? 200) });
    },
  });
  return {
    id: agent.tunnelId,
    async visit(path) {
      await exchange(port, `GET ${path} HTTP/1.1\r\nHost: ${subdomain}.localhost:${port}\r\n\r\n`);
    },
    [Symbol.asyncDispose]: () => agent.close(),
  };
}

/** Traffic of one minute. */
interface StoredTraffic {
  tunnelId: string;
  /** How long ago the minute began. */
  minutesAgo: number;
  requests: number;
}

/** Stores traffic as if a tunnel had reported it. */
export async function storeTraffic(
  { sql }: TestApi,
  { orgId }: Person,
  { tunnelId, minutesAgo, requests }: StoredTraffic,
): Promise<void> {
  const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const startsAt = new Date(minute - minutesAgo * MINUTE_MS);
  await sql(
    `insert into traffic (org_id, grain, starts_at, tunnel_id, requests, bytes_in, bytes_out)
     values ($1, 'minute', $2, $3, $4, $5, $6)`,
    [orgId, startsAt, tunnelId, requests, 1_000 * requests, 2_000 * requests],
  );
}
