/** An operation as a curl command. */
import type { OpenApiDocument, PlacedOperation } from "./openapi.ts";

/** Shell variables of the reader, by credential. */
const CREDENTIALS: Record<string, string> = {
  accessToken: '-H "Authorization: Bearer $ACCESS_TOKEN"',
  capabilityToken: '-H "Authorization: Bearer $TOKEN"',
  masterKey: '-H "Authorization: Bearer $MASTER_KEY"',
  relaySecret: '-H "Authorization: Bearer $RELAY_SECRET"',
  refreshCookie: '-b "qnt_refresh=$REFRESH_COOKIE"',
  accessTokenSubprotocol: '-H "Sec-WebSocket-Protocol: bearer.$ACCESS_TOKEN"',
};

export function formatCurlLine(
  document: OpenApiDocument,
  { method, path, operation }: PlacedOperation,
): string {
  const { parameters = [], requestBody, security } = operation;
  let address = path;
  const query = new URLSearchParams();
  for (const { name, in: place, required, example } of parameters) {
    const value = typeof example === "string" ? example : JSON.stringify(example);
    if (place === "path") address = address.replace(`{${name}}`, encodeURIComponent(value));
    else if (required) query.set(name, value);
  }
  const search = query.size > 0 ? `?${query.toString()}` : "";
  const [scheme = {}] = security;
  const credentials = Object.keys(scheme).flatMap((name) => CREDENTIALS[name] ?? []);
  const json = requestBody?.content["application/json"]?.example;
  const body =
    json === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(json))}`];
  const verb = method === "get" ? [] : [`-X ${method.toUpperCase()}`];
  const url = quote(`${document.servers[0]?.url ?? ""}${address}${search}`);
  return ["curl", ...verb, url, ...credentials, ...body]
    .join(" \\\n  ")
    .replace("curl \\\n  ", "curl ");
}

/** For a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
