/** POST /setup: creates the first account of a self-hosted server, with the code that is printed on its console. */
import { EMAIL_MAX_CHARS } from "../../../protocol/limits.ts";
import { Setup, SetupResult } from "../../../protocol/schemas/accounts/devices.ts";
import { ApiError } from "../../errors.ts";
import { randomPassword } from "../../identity/accounts/codes.ts";
import { normalizeEmail } from "../../identity/accounts/emails.ts";
import { toBase64 } from "../../../shared/bytes.ts";
import { newCliToken, signTokenRow } from "../../identity/tokens/minting.ts";
import { getFirstOrganizationTerms } from "../../identity/new-organization.ts";
import { hashPassword, getPasswordError } from "../../identity/accounts/passwords.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
import { sha256Hex } from "../../identity/encryption.ts";
import { hasAccounts, createFirstAccount } from "../../store/accounts/accounts.ts";
import { insertToken } from "../../store/tokens/tokens.ts";
import { createRouter, invalidField, jsonResponse, notFound, route } from "../route.ts";
import { rateLimited } from "../rate-limit.ts";

export const setup = createRouter();

setup.openapi(
  route({
    method: "post",
    path: "/setup",
    summary: "Create the first account of a self-hosted server",
    guard: rateLimited,
    body: Setup,
    responses: {
      201: jsonResponse("The owner's account, and a token for this machine.", SetupResult),
    },
    failures: ["invalid_code", "not_found"],
  }),
  async (c) => {
    const { config, db, address } = c.var;
    const { code, label, ...chosen } = c.req.valid("json");
    if (config.SETUP_CODE_HASH === undefined || (await hasAccounts(db))) throw notFound();
    if (!equalInConstantTime(await sha256Hex(code.trim()), config.SETUP_CODE_HASH)) {
      throw new ApiError(
        "invalid_code",
        "The code is not the one that the server has printed on its console.",
      );
    }
    const email = normalizeEmail(chosen.email ?? `owner@${config.SERVICE_DOMAIN}`);
    // Unlike at sign-up, no email is sent, so that `owner@localhost` is accepted.
    if (!/^[^\s\p{Cc}@]+@[^\s\p{Cc}@]+$/u.test(email) || email.length > EMAIL_MAX_CHARS) {
      throw invalidField("email", "must be an email address");
    }
    const password = chosen.password ?? randomPassword();
    const passwordError = getPasswordError(password, email);
    if (passwordError !== null) throw invalidField("password", passwordError);

    const account = { email, passwordHash: hashPassword(password), ip: address };
    const terms = getFirstOrganizationTerms(config);
    const token = await db.transaction(async (change) => {
      const owner = await createFirstAccount(change, { ...account, terms });
      if (!owner) return "not_first";
      const actor = { ...owner, role: "owner" as const, ip: address };
      return insertToken(change, actor, newCliToken(label));
    });
    if (typeof token === "string") throw notFound();
    const wireBytes = await signTokenRow(config, token);
    const done = { email, wire_bytes_b64: toBase64(wireBytes), label };
    return c.json(chosen.password === undefined ? { ...done, password } : done, 201);
  },
);
