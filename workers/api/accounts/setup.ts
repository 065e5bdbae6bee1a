/** /setup: creates the owner's account of a server, with the code that only its operator sees. */
import { EMAIL_MAX_CHARS } from "../../../protocol/limits.ts";
import { Setup, SetupResult, SetupState } from "../../../protocol/schemas/accounts/devices.ts";
import { ApiError } from "../../errors.ts";
import { normalizeSetupCode, randomPassword } from "../../identity/accounts/codes.ts";
import { normalizeEmail } from "../../identity/accounts/emails.ts";
import { toBase64 } from "../../../shared/bytes.ts";
import { newCliToken, signTokenRow } from "../../identity/tokens/minting.ts";
import { getFirstOrganizationTerms } from "../../identity/organization-terms.ts";
import { hashPassword } from "../../identity/accounts/password-hashing.ts";
import { getPasswordError } from "../../identity/accounts/passwords.ts";
import { equalInConstantTime } from "../../../shared/constant-time.ts";
import { sha256Hex } from "../../identity/encryption.ts";
import { createOwner, hasOwner } from "../../store/accounts/accounts.ts";
import { insertToken } from "../../store/tokens/tokens.ts";
import { createRouter, getHashCaller, invalidField, jsonResponse, route } from "../route.ts";
import { pollRateLimited, rateLimited } from "../rate-limit.ts";

export const setup = createRouter();

setup.openapi(
  route({
    operationId: "getSetupState",
    method: "get",
    path: "/setup",
    summary: "Get whether a server has its owner's account, and how it sends mail",
    guard: pollRateLimited,
    responses: { 200: jsonResponse("Whether `POST /setup` is possible.", SetupState) },
  }),
  async (c) => {
    const { config, db } = c.var;
    const needed = config.SETUP_CODE_HASH !== undefined && !(await hasOwner(db));
    return c.json({ needed, mail: config.MAIL_DELIVERY }, 200);
  },
);

setup.openapi(
  route({
    operationId: "setUpServer",
    method: "post",
    path: "/setup",
    summary: "Create the owner's account of a server",
    description:
      "With the code that a self-hosted server prints. It works until the owner's account exists, even if other accounts have signed up.",
    guard: rateLimited,
    body: Setup,
    responses: {
      201: jsonResponse("The owner's account, and a token for the machine.", SetupResult),
    },
    failures: ["invalid_code", "not_found", "duplicate_name", "unavailable"],
  }),
  async (c) => {
    const { config, db, address } = c.var;
    const { code, label, ...chosen } = c.req.valid("json");
    if (config.SETUP_CODE_HASH === undefined || (await hasOwner(db))) throw alreadySetUp();
    if (!equalInConstantTime(await sha256Hex(normalizeSetupCode(code)), config.SETUP_CODE_HASH)) {
      throw new ApiError(
        "invalid_code",
        "The setup code is wrong. Enter the code that the server has printed on its console.",
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

    const passwordHash = await hashPassword(getHashCaller(c, email), password);
    // The operator, who has the setup code, approves the organizations of others.
    const terms = { ...getFirstOrganizationTerms(config), approvalStatus: "approved" as const };
    const token = await db.transaction(async (change) => {
      const owner = await createOwner(change, { email, passwordHash, ip: address, terms });
      if (typeof owner === "string") return owner;
      const actor = { ...owner, role: "owner" as const, ip: address };
      return label === null ? "no_token" : insertToken(change, actor, newCliToken(label));
    });
    if (token === "has_owner") throw alreadySetUp();
    if (token === "address_taken") {
      const message = "This address has an account already. Choose another address for the owner.";
      throw new ApiError("duplicate_name", message);
    }
    const account = { email, ...(chosen.password === undefined && { password }) };
    if (token === "no_token" || label === null) return c.json(account, 201);
    const wire_bytes_b64 = toBase64(await signTokenRow(config, token));
    return c.json({ ...account, wire_bytes_b64, label }, 201);
  },
);

function alreadySetUp(): ApiError {
  const message =
    "This server has an owner already, so its setup code is no longer valid. Log in with `underpass login` instead.";
  return new ApiError("not_found", message);
}
