/** Answers requests with the files of a directory, or with one file: GET and HEAD, ranges, conditional requests. */
import type { ReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { basename, dirname, relative, sep } from "node:path";
import send from "send";
import { ORIGIN_HEADERS_MAX_BYTES } from "../limits.ts";
import { findEntry, INDEX, listEntries, parsePath, type Entry } from "./directory.ts";
import { buildListingPage } from "./listing-page.ts";

export interface SharedFiles {
  /** The real path of a directory or a file. */
  path: string;
  kind: Entry["kind"];
  /** Whether a directory without index.html shows what it contains. */
  hasListing: boolean;
}

/** @returns a server that does not listen anywhere. */
export function createFileServer(shared: SharedFiles): Server {
  return createServer({ maxHeaderSize: ORIGIN_HEADERS_MAX_BYTES }, (request, response) => {
    respond(shared, request, response).catch(() => sendStatus(response, 500));
  });
}

async function respond(
  shared: SharedFiles,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  if (request.method !== "GET" && request.method !== "HEAD")
    return sendStatus(response, 405, { allow: "GET, HEAD" });
  const [path = "/", query] = request.url!.split(/\?(.*)/s);
  const names = parsePath(path);
  if (!names) return sendStatus(response, 404);
  if (shared.kind === "file") {
    const isNamed = names.length === 0 || names.join("/") === basename(shared.path);
    return isNamed ? sendFile(shared.path, request, response) : sendStatus(response, 404);
  }
  const entry = await findEntry(shared.path, names);
  if (!entry) return sendStatus(response, 404);
  const hasSlash = path.endsWith("/");
  if (entry.kind === "file")
    return hasSlash ? sendStatus(response, 404) : sendFile(entry.path, request, response);
  // Relative links of the directory's pages need the slash. A relative location can't lead to another host.
  if (!hasSlash) {
    const search = query === undefined ? "" : `?${query}`;
    return sendStatus(response, 301, {
      location: `./${encodeURIComponent(names.at(-1)!)}/${search}`,
    });
  }
  const index = await findEntry(shared.path, [...splitPath(shared.path, entry.path), INDEX]);
  if (index?.kind === "file") return sendFile(index.path, request, response);
  if (!shared.hasListing) return sendStatus(response, 404, {}, NO_INDEX);
  const listing = await listEntries(shared.path, entry.path, () => !response.destroyed);
  const page = buildListingPage(names, listing);
  response.writeHead(200, {
    "content-type": "text/html; charset=utf-8",
    "content-length": Buffer.byteLength(page),
    "content-security-policy": "default-src 'none'",
    "cache-control": "no-cache",
  });
  response.end(page);
}

function splitPath(root: string, path: string): string[] {
  const inner = relative(root, path);
  return inner === "" ? [] : inner.split(sep);
}

/** The last bytes of a file (RFC 9110 §14.1.2). */
const SUFFIX_RANGE = /^bytes=-(\d+)$/;

/** @param path the real path of a file that may be sent. */
async function sendFile(
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  response.setHeader("x-content-type-options", "nosniff");
  // Ranges are defined for GET only (RFC 9110 §14.2); `send` would answer with 206 or 416.
  if (request.method === "HEAD") delete request.headers.range;
  const suffix = SUFFIX_RANGE.exec(request.headers.range ?? "")?.[1];
  if (suffix !== undefined) {
    // If the file has fewer bytes, all of them are meant; `send` would answer 416. It is `send` that answers for a deleted file.
    const file = await stat(path).catch(() => undefined);
    if (file && Number(suffix) > file.size) request.headers.range = "bytes=0-";
  }
  const name = `/${encodeURIComponent(basename(path))}`;
  // `findEntry` has checked the path; one that was named on the command line may begin with a dot.
  send(request, name, { root: dirname(path), index: false, dotfiles: "allow" })
    .on("error", ({ status, headers }: { status: number; headers?: Record<string, string> }) =>
      sendStatus(response, status, headers),
    )
    .on("stream", (stream: ReadStream) =>
      // Otherwise the visitor waits without end for the rest of a file that became shorter.
      stream.on("end", () => {
        if (stream.bytesRead < Number(response.getHeader("content-length"))) response.destroy();
      }),
    )
    .pipe(response);
}

function sendStatus(
  response: ServerResponse,
  status: number,
  headers: Record<string, string> = {},
  sentence = STATUS_TEXTS[status] ?? "The file can't be read.",
): void {
  if (response.headersSent) return void response.destroy();
  const text = `${sentence}\n`;
  response.writeHead(status, {
    ...headers,
    "content-type": "text/plain; charset=utf-8",
    "content-length": text.length,
  });
  response.end(text);
}

/** The first visitor is most often the one who shares the directory. */
const NO_INDEX = `This directory has no ${INDEX}. With --directory-listing, the agent shows its files.`;

const STATUS_TEXTS: Record<number, string> = {
  301: "This directory's address ends with a slash.",
  404: "This file does not exist.",
  405: "Only GET and HEAD are supported.",
  412: "The file has changed.",
  416: "The file does not have this range.",
};
