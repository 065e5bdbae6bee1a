/**
 * This version's server on the data directory of an earlier version, with the providers it uses and two of its users
 * logged in. A record holds that version's rows, object storage, keys and API answers.
 */
import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { AccountSummary, MfaRequired } from "../../../protocol/schemas/accounts/accounts.ts";
import { createCaller, startApi, type Caller, type TestApi } from "./api.ts";
import { startOAuthProvider, type OAuthProvider } from "../fakes/oauth-provider.ts";
import { createOldDataDir, type OldData, type OldRecord } from "./old-data.ts";
import { startPaymentProvider, type PaymentProvider } from "../fakes/payments.ts";
import { startResolver, type Resolver } from "../fakes/resolver.ts";
import { generateCode } from "../browser/second-factor.ts";

/** Replaces the origin of the sign-in provider in the recorded rows. */
const PROVIDER = "https://idp.example";
/** The old server's address, which is in its answers and in captured requests. */
const OLD_HOST = "localhost:10799";

export type TokenName =
  | "laptop"
  | "webOnly"
  | "master"
  | "staging"
  | "revoked"
  | "rotatedAway"
  | "rotated"
  | "spent";

export interface ServerRecord extends OldRecord {
  /** Secrets of its users, machines and vendors. The rows contain at most their hashes. */
  notes: {
    password: string;
    ids: Record<"org" | "web" | "gated" | "signIn" | "tcp" | "reserved", string>;
    tokens: Record<TokenName, string>;
    refreshCookies: { ada: string };
    totpSecret: string;
    recoveryCodes: string[];
    challenge: string;
    invitationToken: string;
    code: string;
    resetToken: string;
    devices: { approved: string; waiting: string; waitingUserCode: string };
    receiverSecret: string;
    /** The current secret of the receiver `generic_hmac_sha256`, whose secret was replaced. */
    rotatedReceiverSecret: string;
    /** The sums of the time series over its day. */
    sums: Record<"requests" | "bytes_in" | "bytes_out", number>;
  };
  /** By person and path. */
  answers: Record<"ada" | "ben", Record<string, unknown>>;
}

export interface UpgradedServer {
  api: TestApi;
  data: OldData;
  oauth: OAuthProvider;
  payments: PaymentProvider;
  resolver: Resolver;
  ada: Caller;
  ben: Caller;
  callerWith(bearer: string): Caller;
  /** An API answer with the port and the timestamps of the record, to be compared with the recorded one. */
  asRecorded(answer: unknown): unknown;
  stop(): Promise<void>;
}

export function readRecord(recordDir: string): ServerRecord {
  return JSON.parse(readFileSync(join(recordDir, "record.json"), "utf8")) as ServerRecord;
}

export async function startUpgraded(recordDir: string, old: ServerRecord): Promise<UpgradedServer> {
  const [oauth, payments, resolver] = await Promise.all([
    startOAuthProvider(),
    startPaymentProvider(),
    startResolver(),
  ]);
  const origin = new URL(oauth.settings.IDP_B_API_URL!).origin;
  const data = await createOldDataDir(recordDir, old, { [PROVIDER]: origin });
  const api = await startApi({
    dataDir: data.dataDir,
    relay: true,
    env: {
      ...oauth.settings,
      ...payments.settings,
      IDP_A_ISSUER: PROVIDER,
      IDP_A_CLIENT_ID: "client",
      IDP_A_CLIENT_SECRET: "secret",
      DNS_OVER_HTTPS_URL: resolver.url,
      DEFAULT_PLAN: "enterprise",
    },
  });
  const callerWith = (bearer: string) =>
    createCaller(api.server, { authorization: `Bearer ${bearer}` });

  return {
    api,
    data,
    oauth,
    payments,
    resolver,
    ada: callerWith(await logInWithSecondFactor(api, "ada@example.com", old)),
    ben: await api.logIn("ben@example.com", old.notes.password),
    callerWith,
    asRecorded(answer) {
      const text = JSON.stringify(answer).replaceAll(`localhost:${api.server.port}`, OLD_HOST);
      return shiftBack(JSON.parse(text), data.shiftMs, new Date(old.recordedAt).getTime());
    },
    async stop() {
      await api.stop();
      await rm(data.dataDir, { recursive: true, force: true });
      for (const provider of [oauth, payments, resolver]) await provider[Symbol.asyncDispose]();
    },
  };
}

/** With a password, and with the code of an authenticator that was set up at the old server. */
async function logInWithSecondFactor(
  { anonymous }: TestApi,
  email: string,
  { notes }: ServerRecord,
) {
  const { password, totpSecret } = notes;
  const { body: challenge } = await anonymous.post<MfaRequired>("/auth/login", { email, password });
  const { status, body } = await anonymous.post<AccountSummary>("/auth/login/mfa", {
    challenge_token: challenge.challenge_token,
    code: generateCode(totpSecret),
  });
  if (status !== 200) throw new Error(`no second factor: ${JSON.stringify(body)}`);
  return body.access_token;
}

/** Timestamps in columns were shifted; those in object storage and inside JSON columns were not. */
function shiftBack(value: unknown, shiftMs: number, recordedMs: number): unknown {
  if (Array.isArray(value)) return value.map((one) => shiftBack(one, shiftMs, recordedMs));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(
      Object.entries(value).map(([name, one]) => [
        name,
        name === "metadata" ? (one as unknown) : shiftBack(one, shiftMs, recordedMs),
      ]),
    );
  }
  if (typeof value !== "string" || !/^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return value;
  const ms = new Date(value).getTime();
  return new Date(ms > recordedMs ? ms - shiftMs : ms).toISOString();
}
