import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect as connectTcp, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  CertificateFiles,
  findCertificateProblems,
  readKeyPair,
} from "../../../../../self-host/front-proxy/https/certificate-files.ts";
import { HttpsServer } from "../../../../../self-host/front-proxy/https/https-server.ts";
import { writePrivateFile } from "../../../../../self-host/files.ts";
import { DAY_MS } from "../../../../../shared/time.ts";
import { createCertificate } from "../../../../harness/fakes/certificate.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

let open: number;
let isFull: boolean;
let server: HttpsServer;
let port: number;

beforeEach(async () => {
  open = 0;
  isFull = false;
  server = new HttpsServer({
    keyPair: createCertificate(),
    findContext: () => Promise.resolve(undefined),
    socketOptions: { allowHalfOpen: true, pauseOnConnect: true },
    admit() {
      if (isFull) return undefined;
      open += 1;
      return () => void (open -= 1);
    },
    serve(visitor) {
      visitor.on("error", () => undefined);
      visitor.end("hello");
    },
  });
  server.tcp.listen(0, "127.0.0.1");
  await once(server.tcp, "listening");
  ({ port } = server.tcp.address() as AddressInfo);
});
afterEach(async () => {
  server.tcp.close();
  await once(server.tcp, "close");
});

async function handshake(): Promise<TLSSocket> {
  const visitor = connectTls({
    host: "127.0.0.1",
    port,
    servername: "localhost",
    rejectUnauthorized: false,
  });
  await once(visitor, "secureConnect");
  return visitor;
}

test("a connection is counted from before its handshake to its end", async () => {
  const silent = connectTcp(port, "127.0.0.1");
  await vi.waitFor(() => expect(open).toBe(1), WAIT_OPTIONS);
  silent.destroy();
  await vi.waitFor(() => expect(open).toBe(0), WAIT_OPTIONS);
  const broken = connectTcp(port, "127.0.0.1").on("error", () => undefined);
  broken.end("GET / HTTP/1.1\r\n\r\n");
  await vi.waitFor(() => expect(broken.closed).toBe(true), WAIT_OPTIONS);
  expect(open).toBe(0);
  const visitor = await handshake();
  expect(open).toBe(1);
  expect(Buffer.concat(await visitor.toArray()).toString()).toBe("hello");
  visitor.destroy();
  await vi.waitFor(() => expect(open).toBe(0), WAIT_OPTIONS);
});

test("a connection beyond the limit is closed before its handshake", async () => {
  isFull = true;
  await expect(handshake()).rejects.toThrow();
});

test("a renewed certificate in the files is used for the next connection, and a broken one is not", async () => {
  const directory = await mkdtemp(join(tmpdir(), "underpass-certificate-"));
  const paths = {
    certificateFile: join(directory, "cert.pem"),
    keyFile: join(directory, "key.pem"),
  };
  const write = (cert: string, key: string) =>
    Promise.all([
      writePrivateFile(paths.certificateFile, cert),
      writePrivateFile(paths.keyFile, key),
    ]);
  const readSerial = async () => {
    const visitor = await handshake();
    const serial = visitor.getPeerX509Certificate()?.serialNumber;
    visitor.destroy();
    return serial;
  };
  vi.spyOn(console, "log").mockReturnValue();
  let stop: (() => void) | undefined;
  const reported = vi.spyOn(console, "error").mockReturnValue();
  try {
    const [first, second] = [createCertificate(), createCertificate({ names: ["a.example"] })];
    await write(first.cert, first.key);
    const files = new CertificateFiles(paths, await readKeyPair(paths));
    server.replaceKeyPair(files.keyPair);
    const before = await readSerial();
    stop = files.watch((keyPair) => server.replaceKeyPair(keyPair), 10);
    await write(second.cert, first.key);
    await vi.waitFor(
      () => expect(reported).toHaveBeenCalledWith(expect.stringMatching(/previous/)),
      WAIT_OPTIONS,
    );
    expect(await readSerial()).toBe(before);
    expect(files.isFor("a.example")).toBe(false);
    await write(second.cert, second.key);
    await vi.waitFor(() => expect(files.isFor("a.example")).toBe(true), WAIT_OPTIONS);
    expect(await readSerial()).not.toBe(before);
  } finally {
    stop?.();
    await rm(directory, { recursive: true });
  }
});

test("an empty file is no certificate and no key, as while another program writes it", async () => {
  const directory = await mkdtemp(join(tmpdir(), "underpass-certificate-"));
  const { cert, key } = createCertificate();
  const paths = {
    certificateFile: join(directory, "cert.pem"),
    keyFile: join(directory, "key.pem"),
  };
  try {
    for (const [certText, keyText] of [
      [cert, ""],
      ["", key],
      ["", ""],
    ] as const) {
      await writePrivateFile(paths.certificateFile, certText);
      await writePrivateFile(paths.keyFile, keyText);
      await expect(readKeyPair(paths)).rejects.toThrow(/not a certificate and its private key/);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a certificate for other names, or one that expires soon, is reported", () => {
  const nowMs = Date.now();
  const { cert } = createCertificate({ commonName: "a.example", validToMs: nowMs + 13 * DAY_MS });
  expect(findCertificateProblems(cert, ["a.example", "b.example"], nowMs)).toEqual([
    expect.stringMatching(/is not for b\.example$/),
    expect.stringMatching(/expires at \d{4}-/),
  ]);
  const valid = createCertificate({ commonName: "a.example", validToMs: nowMs + 80 * DAY_MS });
  expect(findCertificateProblems(valid.cert, ["a.example"], nowMs)).toEqual([]);
});
