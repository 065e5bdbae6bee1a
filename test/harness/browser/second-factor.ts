/** A person's authenticator app and recovery codes. */
import { TOTP } from "otpauth";
import type { MfaRequired } from "../../../protocol/schemas/accounts/accounts.ts";
import type { MfaEnabled, TotpEnrollment } from "../../../protocol/schemas/accounts/mfa.ts";
import type { z } from "zod";
import {
  createCaller,
  getFirstCookie,
  type Person,
  type Reply,
  type TestApi,
} from "../server/api.ts";

export interface SecondFactor {
  secret: string;
  recoveryCodes: string[];
  /** The code that confirmed the enrollment; it can't be used again. */
  spentCode: string;
}

/** The code that the authenticator shows now, or so many 30-second steps later. */
export function generateCode(secret: string, steps = 0): string {
  return new TOTP({ secret }).generate({ timestamp: Date.now() + steps * 30_000 });
}

/** Six digits that the authenticator does not show at any time near now. */
export function generateWrongCode(secret: string): string {
  const shown = new Set([-2, -1, 0, 1, 2, 3].map((steps) => generateCode(secret, steps)));
  return ["000000", "000001", "000002", "000003", "000004", "000005", "000006"].find(
    (code) => !shown.has(code),
  )!;
}

export interface Enrollment {
  secret: string;
  uri: string;
  /** `underpass-mfa=…`, as a browser sends it back. */
  cookie: string;
  /** With its attributes. */
  setCookie: string;
}

export async function enroll(person: Person): Promise<Enrollment> {
  const { body, headers } = await person.post<z.infer<typeof TotpEnrollment>>("/auth/mfa/enroll");
  return {
    secret: body.secret_base32,
    uri: body.otpauth_uri,
    cookie: getFirstCookie(headers),
    setCookie: headers.getSetCookie()[0] ?? "",
  };
}

export function confirm(
  api: TestApi,
  { accessToken }: Person,
  cookie: string,
  body: object,
): Promise<Reply<z.infer<typeof MfaEnabled>>> {
  const headers = { authorization: `Bearer ${accessToken}`, cookie };
  return createCaller(api.server, headers).post("/auth/mfa/enroll/verify", body);
}

/** Confirms with the current code, so the next valid code is that of the next step. */
export async function enableSecondFactor(api: TestApi, person: Person): Promise<SecondFactor> {
  const { secret, cookie } = await enroll(person);
  const code = generateCode(secret);
  const { status, body } = await confirm(api, person, cookie, { code });
  if (status !== 200) throw new Error(`no second factor: ${JSON.stringify(body)}`);
  return { secret, recoveryCodes: body.recovery_codes, spentCode: code };
}

/** Signs in with the password. @returns the token for the second step. */
export async function startChallenge(api: TestApi, { email, password }: Person): Promise<string> {
  const { body } = await api.anonymous.post<MfaRequired>("/auth/login", { email, password });
  return body.challenge_token;
}
