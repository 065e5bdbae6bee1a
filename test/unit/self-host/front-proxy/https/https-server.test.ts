import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect as connectTcp, createServer, type AddressInfo, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  connect as connectTls,
  createSecureContext,
  type ConnectionOptions,
  type TLSSocket,
} from "node:tls";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  CertificateFiles,
  findCertificateProblems,
  readKeyPair,
} from "../../../../../self-host/front-proxy/https/certificate-files.ts";
import { HandshakePace } from "../../../../../self-host/front-proxy/https/handshake-pace.ts";
import {
  HttpsServer,
  type HttpsServerOptions,
} from "../../../../../self-host/front-proxy/https/https-server.ts";
import { writePrivateFile } from "../../../../../self-host/files.ts";
import { DAY_MS } from "../../../../../shared/time.ts";
import { createCertificate } from "../../../../harness/fakes/certificate.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

let open: number;
let isFull: boolean;
let server: HttpsServer;
let port: number;

beforeEach(() => start());

async function start(options: Partial<HttpsServerOptions> = {}): Promise<void> {
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
    ...options,
  });
  server.tcp.listen(0, "127.0.0.1");
  await once(server.tcp, "listening");
  ({ port } = server.tcp.address() as AddressInfo);
}

afterEach(() => stop());

async function stop(): Promise<void> {
  server.tcp.close();
  await once(server.tcp, "close");
}

/** @param options in addition to those of a client that names localhost. */
async function handshake(options: ConnectionOptions = {}): Promise<TLSSocket> {
  const visitor = connectTls({
    host: "127.0.0.1",
    port,
    servername: "localhost",
    rejectUnauthorized: false,
    ...options,
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

test("the handshakes of one source begin at its rate, and those of others at once", async () => {
  await stop();
  // The second handshake would begin after an hour.
  await start({ handshakePace: new HandshakePace(1 / 3_600, 1) });
  (await handshake()).destroy();
  await vi.waitFor(() => expect(open).toBe(0), WAIT_OPTIONS);
  const connected = once(server.tcp, "connection");
  const waiting = connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false });
  let hasBegun = false;
  waiting.on("error", () => undefined).on("secureConnect", () => (hasBegun = true));
  const [accepted] = (await connected) as [Socket];
  // Linux has as many loopback addresses as a test needs.
  (await handshake({ localAddress: "127.0.0.2" } as ConnectionOptions)).destroy();
  expect(hasBegun).toBe(false);
  waiting.destroy();
  // It is not read from while it waits, so that the client's end is not noticed.
  accepted.destroy();
});

test("a handshake that has waited is served", async () => {
  await stop();
  await start({ handshakePace: new HandshakePace(20, 1) });
  const visitors = await Promise.all([handshake(), handshake(), handshake()]);
  const answers = await Promise.all(visitors.map((visitor) => visitor.toArray()));
  expect(answers.map((chunks) => Buffer.concat(chunks).toString())).toEqual(
    Array.from({ length: 3 }, () => "hello"),
  );
});

test.each(["the certificate of the files", "a replaced one", "one of its own"])(
  "a client can't repeat the handshake: with %s",
  async (kind) => {
    await stop();
    const context = createSecureContext(createCertificate());
    const findContext = () => Promise.resolve(kind === "one of its own" ? context : undefined);
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    await start({
      findContext,
      serve: (visitor) =>
        visitor
          .on("error", () => undefined)
          .on("close", resolve)
          .resume(),
    });
    if (kind === "a replaced one") server.replaceKeyPair(createCertificate());
    const visitor = await handshake({ maxVersion: "TLSv1.2" });
    const failed = once(visitor, "error");
    visitor.renegotiate({ rejectUnauthorized: false }, () => undefined);
    await expect(failed).resolves.toMatchObject([{ message: /no renegotiation/ }]);
    visitor.destroy();
    await closed;
  },
);

test("a client that ends its side, leaves or is reset in the handshake holds nothing", async () => {
  const hello = await readClientHello();
  const leave = [
    (socket: Socket) => socket.end(hello),
    (socket: Socket) => socket.end(hello.subarray(0, 100)),
    (socket: Socket) => socket.write(hello, () => socket.resetAndDestroy()),
    (socket: Socket) => socket.write(hello.subarray(0, 100), () => socket.resetAndDestroy()),
  ];
  for (const act of leave) {
    const socket = connectTcp({ port, host: "127.0.0.1", allowHalfOpen: true });
    socket.on("error", () => undefined).resume();
    act(socket);
    await once(socket, "close");
  }
  await vi.waitFor(() => expect(open).toBe(0), WAIT_OPTIONS);
  expect(Buffer.concat(await (await handshake()).toArray()).toString()).toBe("hello");
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

test("a certificate that is not renewed is reported daily, before and after it expires", async () => {
  const directory = await mkdtemp(join(tmpdir(), "underpass-certificate-"));
  const reported = vi.spyOn(console, "error").mockReset().mockReturnValue();
  let nowMs = Date.now();
  const validToMs = Math.floor(nowMs / 1_000) * 1_000 + 14.5 * DAY_MS;
  const { cert, key } = createCertificate({ validToMs });
  const paths = {
    certificateFile: join(directory, "cert.pem"),
    keyFile: join(directory, "key.pem"),
  };
  await writePrivateFile(paths.certificateFile, cert);
  await writePrivateFile(paths.keyFile, key);
  const readTime = vi.fn(() => nowMs);
  const files = new CertificateFiles(paths, { cert, key }, readTime);
  expect(files.expiresAtMs).toBe(validToMs);
  const stop = files.watch(() => undefined, 5);
  const waitForChecks = async () => {
    readTime.mockClear();
    await vi.waitUntil(() => readTime.mock.calls.length > 2, WAIT_OPTIONS);
  };
  try {
    await waitForChecks();
    expect(reported).not.toHaveBeenCalled();
    nowMs += DAY_MS;
    await waitForChecks();
    nowMs += 14 * DAY_MS;
    await waitForChecks();
    expect(reported.mock.calls).toEqual([
      [expect.stringMatching(/expires at \d{4}-/)],
      [expect.stringMatching(/expired at \d{4}-/)],
    ]);
  } finally {
    stop();
    await rm(directory, { recursive: true });
  }
});

/** The first bytes of a client. */
async function readClientHello(): Promise<Buffer> {
  const catcher = createServer().listen(0, "127.0.0.1");
  await once(catcher, "listening");
  const { port: catcherPort } = catcher.address() as AddressInfo;
  const client = connectTls({ port: catcherPort, host: "127.0.0.1", servername: "localhost" });
  client.on("error", () => undefined);
  const [caught] = (await once(catcher, "connection")) as [Socket];
  const [hello] = (await once(caught, "data")) as [Buffer];
  client.destroy();
  caught.destroy();
  catcher.close();
  return hello;
}
