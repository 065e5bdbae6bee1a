/** How the Unix socket of a local server is written, and what is refused before the tunnel opens. */
import { createServer } from "node:net";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findTarget } from "../../../../agent/files/files-target.ts";
import { explainSocketError, parseUnixSocket } from "../../../../agent/local-server/unix-socket.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";

let directory: string;
beforeAll(async () => void (directory = await createTemporaryDir()));
afterAll(() => rm(directory, { recursive: true }));

test.each([
  ["unix:/run/app.sock", "/run/app.sock"],
  ["unix:///run/app.sock", "/run/app.sock"],
  [" UNIX:/run/app.sock ", "/run/app.sock"],
  ["unix:./app.sock", "/srv/app.sock"],
  ["unix:app.sock", "/srv/app.sock"],
  ["unix:../run/my app.sock", "/run/my app.sock"],
])("%j is a socket", (text, path) => {
  expect(parseUnixSocket(text, "/srv", "linux")).toBe(path);
});

test.each(["3000", "localhost:3000", "http://unix:80", "./unix", "/run/app.sock", ""])(
  "%j is another address",
  (text) => {
    expect(parseUnixSocket(text, "/srv")).toBeNull();
  },
);

describe("an address where no server can listen is refused:", () => {
  test.each(["unix:", "unix://", "unix:///", "unix:a\0b"])("%j", (text) => {
    expect(() => parseUnixSocket(text)).toThrow("for example unix:/run/app.sock");
  });

  test("one that is too long, counted in bytes", () => {
    const longest = `/${"é".repeat(51)}`;
    expect(parseUnixSocket(`unix:${longest}`)).toBe(longest);
    expect(() => parseUnixSocket(`unix:/${"é".repeat(54)}`)).toThrow(
      /^the path of a Unix socket has at most 10[37] bytes, and \S+ has 109; use a shorter path$/,
    );
  });

  test("another file", async () => {
    const file = join(directory, "file");
    await writeFile(file, "");
    expect(() => parseUnixSocket(`unix:${file}`)).toThrow(`${file} is not a socket`);
    expect(() => parseUnixSocket(`unix:${directory}`)).toThrow(`${directory} is not a socket`);
  });

  test("one on Windows", () => {
    expect(() => parseUnixSocket(String.raw`unix:\\.\pipe\app`, "C:\\", "win32")).toThrow(
      "can't be used on Windows; use a port of the local server",
    );
  });

  test("--directory-listing", () => {
    expect(() => findTarget("unix:/run/app.sock", { directoryListing: true })).toThrow(
      "--directory-listing needs a directory instead of a server",
    );
  });
});

test("a path of a socket without unix: is named with it", async () => {
  const path = join(directory, "app.sock");
  const server = createServer().listen(path);
  await once(server, "listening");
  expect(() => findTarget(path)).toThrow(`${path} is a socket; use unix:${path}`);
  server.close();
});

test("a socket that this user may not use is explained", () => {
  expect(explainSocketError("EACCES", "unix:/run/app.sock")).toEqual({
    problem: "this user may not connect to unix:/run/app.sock",
    advice: "allow it to write to the socket, and to enter its directories",
  });
});
