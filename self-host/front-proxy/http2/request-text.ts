/** The head of an HTTP/2 request as that of an HTTP/1.1 request, which is then checked like any other. */

/**
 * Fields that describe one connection (RFC 9113 §8.2.2). They have no meaning for the next connection, which also frames its
 * messages differently.
 */
const CONNECTION_FIELDS = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

export function isConnectionField(name: string): boolean {
  return CONNECTION_FIELDS.has(name);
}

interface RequestText {
  method: string;
  /** One character for each byte. */
  head: string;
  /** Whether the body that follows is in the chunked coding. */
  isChunked: boolean;
}

/**
 * @param rawHeaders each name followed by its value. Names are in lower case, and values contain no line break: nghttp2
 * accepts no others.
 * @param hasBody whether the stream goes on after its head.
 */
export function formatRequest(rawHeaders: readonly string[], hasBody: boolean): RequestText {
  let method = "";
  let path = "";
  let authority: string | undefined;
  let hasLength = false;
  const cookies: string[] = [];
  const fields: [string, string][] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!;
    const value = rawHeaders[index + 1]!;
    if (name === ":method") method = value;
    else if (name === ":path") path = value;
    else if (name === ":authority") authority = value;
    // Browsers send each cookie as a field of its own (RFC 9113 §8.2.3).
    else if (name === "cookie") cookies.push(value);
    else if (!name.startsWith(":") && !isConnectionField(name)) fields.push([name, value]);
    if (name === "content-length") hasLength = true;
  }
  // A target that is not a path, or lacks its slash, is refused like `*`.
  let head = `${method} ${path.startsWith("/") ? path : "*"} HTTP/1.1\r\n`;
  // A Host that differs is added as a second one, for which the request is refused (RFC 9113 §8.3.1).
  if (authority !== undefined) head += `host: ${authority}\r\n`;
  for (const [name, value] of fields) {
    if (name !== "host" || value !== authority) head += `${name}: ${value}\r\n`;
  }
  if (cookies.length > 0) head += `cookie: ${cookies.join("; ")}\r\n`;
  const isChunked = hasBody && !hasLength;
  if (isChunked) head += "transfer-encoding: chunked\r\n";
  return { method, head: `${head}\r\n`, isChunked };
}
