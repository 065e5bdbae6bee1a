/** Texts of servers and visitors at the terminal of the agent's user. */
import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { printConnectJson, printConnectLines } from "../../../../agent/output/connect.ts";
import { printHttpJson, printHttpLines } from "../../../../agent/output/http.ts";
import { createLogLines, LOG_JSON } from "../../../../agent/output/management/logs.ts";
import { printRejectionJson, printRejectionLines } from "../../../../agent/output/output.ts";
import { printTcpJson, printTcpLines } from "../../../../agent/output/tcp.ts";
import { VpnJson, VpnLines, VpnScreen } from "../../../../agent/output/vpn.ts";
import { printWebhooksJson, printWebhooksLines } from "../../../../agent/output/webhooks.ts";
import { printReports, printReportsJson } from "../../../../agent/output/doctor.ts";
import { TunnelList } from "../../../../agent/screen/tunnel-list.ts";
import { RejectionError } from "../../../../agent/rejection-error.ts";

/** A title, a cleared screen in 7 and in 8 bits, a line of its own, and a reversed direction. */
const HOSTILE = "\u001b]0;title\u0007\u001b[2J\u009b2J\rfake\u202e";
/** As each of the outputs has to print it. */
const ESCAPED = String.raw`\x1b]0;title\x07\x1b[2J\x9b2J\x0dfake\u{202e}`;

let printed: string;
beforeEach(() => {
  printed = "";
  vi.stubEnv("NO_COLOR", "1");
  for (const name of ["stdout", "stderr"] as const) {
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      printed += String(text);
      return true;
    });
  }
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

/** @returns a tunnel or another source of events, with the texts of a hostile server. */
function createSource<Source>(more: object = {}): EventEmitter & Source {
  const findConnectProblem = () => Promise.resolve(null);
  const origin = { findConnectProblem };
  return Object.assign(new EventEmitter(), { origin, findConnectProblem, ...more }) as never;
}

const url = `http://shop.example/${HOSTILE}`;
const visit = { method: HOSTILE, path: HOSTILE, status: 200, durationMs: 1, requestId: HOSTILE };
const target = { origin: "http://localhost:3000" } as never;
const rejection = new RejectionError(HOSTILE, HOSTILE, { subcode: HOSTILE, renewal: HOSTILE });
const device = { name: HOSTILE, assigned_ip: HOSTILE } as never;
const capture = { ...visit, timestamp: HOSTILE, request_size: 1, response_size: 1, error: HOSTILE };

const OUTPUTS: Record<string, () => unknown> = {
  http() {
    const tunnel = createSource<Parameters<typeof printHttpLines>[0]>();
    printHttpLines(tunnel, target, "debug");
    tunnel.emit("ready", { url });
    tunnel.emit("request", { ...visit, problem: HOSTILE });
    tunnel.emit("stopped", HOSTILE, HOSTILE);
    tunnel.emit("notice", HOSTILE);
    tunnel.emit("reconnected", { url });
  },
  tcp() {
    const tunnel = createSource<Parameters<typeof printTcpLines>[0]>();
    printTcpLines(tunnel, "localhost:22", "info");
    tunnel.emit("ready", { url, name: HOSTILE });
    tunnel.emit("connection", { address: HOSTILE, problem: HOSTILE });
    tunnel.emit("disconnected", HOSTILE);
  },
  connect() {
    const port = createSource<Parameters<typeof printConnectLines>[0]>();
    printConnectLines(port, HOSTILE, "info");
    port.emit("ready", { address: "127.0.0.1:22" });
    port.emit("connection", { durationMs: 1, problem: HOSTILE });
  },
  webhooks() {
    const forwarder = createSource<Parameters<typeof printWebhooksLines>[0]>();
    printWebhooksLines(forwarder, "localhost:3000", "info");
    forwarder.emit("ready", { url });
    forwarder.emit("attempt", { id: HOSTILE, receivedAt: HOSTILE, outcome: "delivered" });
  },
  vpn() {
    const agent = createSource();
    const session = createSource<Parameters<VpnLines["attach"]>[0]>({ agent });
    new VpnLines("info").attach(session);
    agent.emit("ready", { network: { name: HOSTILE, cidr: HOSTILE }, endpoint: HOSTILE });
    session.emit("device", device, HOSTILE, HOSTILE);
    session.emit("notice", HOSTILE);
  },
  "the end of vpn": () => new VpnScreen().end(rejection),
  logs: () => createLogLines(true).request(capture as never, HOSTILE),
  doctor() {
    const texts = { tried: HOSTILE, result: HOSTILE, advice: HOSTILE };
    return printReports([Promise.resolve({ check: "dns", status: "problem", ...texts } as never)]);
  },
  "a rejection": () => printRejectionLines(rejection),
};

test.each(Object.entries(OUTPUTS))(
  "those in the output of %s don't control it",
  async (_, print) => {
    await print();
    expect(printed).toContain(ESCAPED);
    expect(printed).not.toMatch(/(?!\n)\p{C}/u);
  },
);

/** Also what `JSON.stringify` leaves as it is: DEL, an isolate, a separator, and a tag beyond the basic plane. */
const HOSTILE_IN_JSON = `${HOSTILE}\u007f\u2066\u2028\u{e0001}`;
const json = { message: HOSTILE_IN_JSON, method: HOSTILE_IN_JSON, path: HOSTILE_IN_JSON };

const JSON_OUTPUTS: Record<string, () => unknown> = {
  http() {
    const tunnel = createSource<Parameters<typeof printHttpJson>[0]>();
    printHttpJson(tunnel, target, HOSTILE_IN_JSON);
    tunnel.emit("ready", { url: HOSTILE_IN_JSON });
    tunnel.emit("request", json);
    tunnel.emit("notice", HOSTILE_IN_JSON);
    tunnel.emit("disconnected", HOSTILE_IN_JSON);
  },
  tcp() {
    const tunnel = createSource<Parameters<typeof printTcpJson>[0]>();
    printTcpJson(tunnel, "localhost:22");
    tunnel.emit("ready", { url: HOSTILE_IN_JSON });
    tunnel.emit("connection", { address: HOSTILE_IN_JSON, problem: HOSTILE_IN_JSON });
  },
  connect() {
    const port = createSource<Parameters<typeof printConnectJson>[0]>();
    printConnectJson(port, "db");
    port.emit("notice", HOSTILE_IN_JSON);
  },
  webhooks() {
    const forwarder = createSource<Parameters<typeof printWebhooksJson>[0]>();
    printWebhooksJson(forwarder, "localhost:3000");
    forwarder.emit("ready", { id: "1", url: HOSTILE_IN_JSON });
  },
  vpn() {
    const agent = createSource();
    const session = createSource<Parameters<VpnJson["attach"]>[0]>({ agent });
    new VpnJson().attach(session);
    session.emit("device", { name: HOSTILE_IN_JSON }, "key", null);
  },
  logs: () => LOG_JSON.request(json as never, "shop"),
  doctor: () => printReportsJson([Promise.resolve({ result: HOSTILE_IN_JSON } as never)]),
  "a rejection": () => printRejectionJson(new RejectionError("forbidden", HOSTILE_IN_JSON)),
};

test.each(Object.entries(JSON_OUTPUTS))(
  "those in the JSON output of %s don't control it, and programs read them unchanged",
  async (_, print) => {
    await print();
    expect(printed).not.toMatch(/(?!\n)[\p{C}\p{Zl}\p{Zp}]/u);
    const values = printed.startsWith("[") ? [printed] : printed.trimEnd().split("\n");
    const texts = values.flatMap((value) => collectTexts(JSON.parse(value)));
    expect(texts).toContain(HOSTILE_IN_JSON);
  },
);

/** The texts of a JSON value, without names of members. */
function collectTexts(value: unknown): string[] {
  if (typeof value === "string") return [value];
  return value !== null && typeof value === "object"
    ? Object.values(value).flatMap(collectTexts)
    : [];
}

test("the URL on the screen doesn't control it", () => {
  const tunnel = createSource<Parameters<TunnelList["add"]>[0]>();
  const view = new TunnelList(() => undefined).add(tunnel, "localhost:3000", "shop");
  tunnel.emit("ready", { url });
  expect(view.url).toBe(`http://shop.example/${ESCAPED}`);
  tunnel.emit("reconnected", { url });
  expect(view.url).toBe(`http://shop.example/${ESCAPED}`);
});
