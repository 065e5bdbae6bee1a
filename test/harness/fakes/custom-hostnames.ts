/** Fakes the part of Cloudflare's API for custom hostnames that the service calls. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { startHttpServer } from "./http-server.ts";

export interface FakeCloudflareApi extends AsyncDisposable {
  settings: Record<string, string>;
  /** By id. */
  hostnames: Map<string, string>;
  /** Method and path of each call. */
  calls: string[];
  /** While set, every call is answered with this error. */
  failure: { status: number; code: number } | undefined;
  /** Awaited before each call is handled. */
  before: (method: string) => Promise<void>;
}

const ZONE = "0123456789abcdef0123456789abcdef";
const TOKEN = "token-of-the-zone";
const PER_PAGE_MAX = 50;

function paginate(all: object[], query: URLSearchParams): object {
  const page = Number(query.get("page") ?? 1);
  const perPage = Math.min(Number(query.get("per_page") ?? 20), PER_PAGE_MAX);
  const result = all.slice((page - 1) * perPage, page * perPage);
  const total_pages = Math.ceil(all.length / perPage);
  const counts = { count: result.length, total_count: all.length };
  return { result, result_info: { page, per_page: perPage, total_pages, ...counts } };
}

export async function startCustomHostnames(): Promise<FakeCloudflareApi> {
  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", headers } = request;
    const url = new URL(request.url ?? "", server.origin);
    const body = await text(request);
    fake.calls.push(`${method} ${url.pathname.split("/").slice(5).join("/")}`);
    const answer = (status: number, content: object) =>
      response
        .writeHead(status, { "content-type": "application/json" })
        .end(JSON.stringify(content));
    const refuse = (status: number, code: number) =>
      answer(status, { success: false, errors: [{ code, message: "no" }], result: null });

    const base = `/client/v4/zones/${ZONE}/custom_hostnames`;
    if (headers.authorization !== `Bearer ${TOKEN}`) return void refuse(403, 10_000);
    if (fake.failure) return void refuse(fake.failure.status, fake.failure.code);
    await fake.before(method);
    const id = url.pathname.slice(base.length + 1);
    if (method === "GET" && url.pathname === base) {
      const hostnameFilter = url.searchParams.get("hostname") ?? "";
      const found = [...fake.hostnames]
        .map(([id, hostname]) => ({ id, hostname, status: "active" }))
        .filter(({ hostname }) => hostname.includes(hostnameFilter));
      return void answer(200, { success: true, errors: [], ...paginate(found, url.searchParams) });
    }
    if (method === "POST" && url.pathname === base) {
      const hostnameRequest = JSON.parse(body) as { hostname: string; ssl: { type: string } };
      if (hostnameRequest.ssl.type !== "dv") return void refuse(400, 1_405);
      if ([...fake.hostnames.values()].includes(hostnameRequest.hostname))
        return void refuse(409, 1_406);
      const newId = crypto.randomUUID();
      fake.hostnames.set(newId, hostnameRequest.hostname);
      const result = { id: newId, hostname: hostnameRequest.hostname, status: "pending" };
      return void answer(201, { success: true, errors: [], result });
    }
    if (method === "DELETE" && fake.hostnames.delete(id)) return void answer(200, { id });
    refuse(404, 1_436);
  }
  const server = await startHttpServer((request, response) => void handle(request, response));
  const fake: FakeCloudflareApi = {
    settings: {
      CF_API_URL: `${server.origin}/client/v4`,
      CF_API_TOKEN: TOKEN,
      CF_ZONE_ID: ZONE,
    },
    hostnames: new Map(),
    calls: [],
    failure: undefined,
    before: () => Promise.resolve(),
    [Symbol.asyncDispose]: () => server.stop(),
  };
  return fake;
}
