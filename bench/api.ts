/** Calls of the management API. */
import type { TestServer } from "../test/harness/server/server.ts";

export interface ApiCaller {
  server: Pick<TestServer, "url">;
  accessToken: string;
}

/** @returns the parsed body, or its text if it is not JSON. @throws unless the request succeeds. */
export async function callApi<Body>(
  { server, accessToken }: ApiCaller,
  method: string,
  path: string,
  body?: object,
): Promise<Body> {
  const response = await fetch(server.url + path, {
    method,
    headers: {
      authorization: `Bearer ${accessToken}`,
      ...(body && { "content-type": "application/json" }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return (isJson ? JSON.parse(text) : text) as Body;
}

/** Mints a capability token with these limits. */
export async function mintToken(caller: ApiCaller, limits: object): Promise<Buffer> {
  const body = { name: "benchmark", ...limits };
  const { wireBytes } = await callApi<{ wireBytes: string }>(caller, "POST", "/tokens", body);
  return Buffer.from(wireBytes, "base64");
}
