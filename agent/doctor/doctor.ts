/**
 * The checks of `underpass doctor` in their order: those of the server one after another, as far as each needs the one
 * before; all others at the same time.
 */
import type { Target } from "../origin/target.ts";
import {
  CHECK_LABELS,
  runAfter,
  runBounded,
  skipped,
  type CheckName,
  type Outcome,
  type Report,
} from "./check.ts";
import { checkDns } from "./dns-check.ts";
import { checkClock, checkHttp, checkVersion, createFetch } from "./http-check.ts";
import { checkLocalServer } from "./local-check.ts";
import { checkNode, checkOpenFiles } from "./machine-checks.ts";
import { checkProxy } from "./proxy-check.ts";
import { checkRelays } from "./relay-check.ts";
import { checkSettings, type SettingsOptions } from "./settings-check.ts";
import { checkLatency, checkThroughput } from "./speed-checks.ts";
import { checkTcp } from "./tcp-check.ts";
import { checkTls } from "./tls-check.ts";
import { checkToken } from "./token-check.ts";
import { checkWebSocket } from "./websocket-check.ts";
import { PROGRAM } from "../program.ts";

/** The most that a check may take, if it waits for anything. */
const MAX_MS = {
  settings: 2_000,
  local: 5_000,
  proxy: 4_000,
  dns: 4_000,
  tcp: 3_000,
  tls: 4_000,
  http: 5_000,
  websocket: 5_000,
  token: 5_000,
  relay: 5_000,
  latency: 3_000,
  throughput: 3_000,
} satisfies Partial<Record<CheckName, number>>;

interface DoctorOptions extends SettingsOptions {
  /** The local server; undefined: that check is skipped. */
  target: Target | undefined;
}

/** Starts all checks. @returns their reports in the order of the output, each as soon as it is known. */
export function startChecks({ target, ...options }: DoctorOptions): Promise<Report>[] {
  const fetch = createFetch(options.authorities);
  const settings = runBounded(MAX_MS.settings, () => checkSettings(options));
  const proxy = runAfter(settings, "there is no server to reach", (value) =>
    runBounded(MAX_MS.proxy, (signal) => checkProxy(value, signal)),
  );
  const dns = runAfter(proxy, "the proxy does not work", (route) =>
    runBounded(MAX_MS.dns, () => checkDns(route)),
  );
  const tcp = runAfter(dns, "the server's name leads to no address", (route) =>
    runBounded(MAX_MS.tcp, (signal) => checkTcp(route, signal)),
  );
  const tls = runAfter(tcp, "the server accepts no connection", (route) =>
    runBounded(MAX_MS.tls, (signal) => checkTls(route, signal)),
  );
  const http = runAfter(tls, "the TLS handshake does not succeed", (route) =>
    runBounded(MAX_MS.http, (signal) => checkHttp(route, fetch, signal)),
  );
  const noApi = "the server's API does not answer";
  const websocket = runAfter(http, noApi, (route) =>
    runBounded(MAX_MS.websocket, (signal) => checkWebSocket(route, signal)),
  );
  const token = runAfter(http, noApi, (route) =>
    runBounded(MAX_MS.token, (signal) => checkToken(route, fetch, signal)),
  );
  const relay = runAfter(token, "the token can't be used", ({ relays }) =>
    runBounded(MAX_MS.relay, (signal) => checkRelays(options, relays, signal)),
  );
  const latency = runAfter(http, noApi, async (route) => {
    // Others would share the connection, and the processor.
    await Promise.all([websocket, token, relay]);
    return runBounded(MAX_MS.latency, (signal) => checkLatency(route, fetch, signal));
  });
  const throughput = runAfter(websocket, "no WebSocket can be opened", async ({ connection }) => {
    await latency;
    return runBounded(MAX_MS.throughput, () => checkThroughput(connection));
  });
  const version = runAfter(http, noApi, async (route) =>
    checkVersion(route, (await websocket).value?.isVersionRefused ?? false),
  );
  const outcomes: Record<CheckName, Promise<Outcome>> = {
    settings,
    node: Promise.resolve(checkNode()),
    files: Promise.resolve(checkOpenFiles()),
    local: target
      ? runBounded(MAX_MS.local, (signal) => checkLocalServer(target, signal))
      : Promise.resolve(skipped(`no port was given; for example: ${PROGRAM} doctor 3000`)),
    proxy,
    dns,
    tcp,
    tls,
    http,
    clock: runAfter(http, noApi, (route) => Promise.resolve(checkClock(route))),
    websocket,
    version,
    token,
    relay,
    latency,
    throughput,
  };
  return (Object.keys(CHECK_LABELS) as CheckName[]).map(async (check) => {
    const { status, tried, result, advice } = await outcomes[check];
    return { check, status, tried, result, advice };
  });
}
