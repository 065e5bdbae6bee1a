/**
 * The device flow (RFC 8628): a command line requests a token, a person approves or denies the request in a browser, and
 * the command line collects the token, which is valid for 90 days, once.
 */
import { DEVICE_CODE_MAX_MS } from "../../limits.ts";
import { Status } from "../../../protocol/schemas/accounts/accounts.ts";
import {
  DeviceCode,
  DeviceQuery,
  PollDevice,
  DeviceToken,
  StartDevice,
  DeviceAuthorization,
  PendingDevice,
} from "../../../protocol/schemas/accounts/devices.ts";
import { ApiError } from "../../errors.ts";
import {
  randomSecret,
  randomUserCode,
  parseUserCode,
  formatUserCode,
} from "../../identity/accounts/codes.ts";
import { getAddressGroup } from "../../../shared/address-group.ts";
import { toBase64 } from "../../../shared/bytes.ts";
import { newCliToken, signTokenRow } from "../../identity/tokens/minting.ts";
import { sha256Hex } from "../../identity/encryption.ts";
import {
  approveDeviceAuthorization,
  denyDeviceAuthorization,
  findPendingAuthorization,
  insertDeviceAuthorization,
  pollDeviceAuthorization,
  type DeviceSelector,
  type PollResult,
} from "../../store/accounts/device-authorizations.ts";
import { allow } from "../guard.ts";
import { createRouter, getMemberActor, jsonResponse, route, type ApiContext } from "../route.ts";
import { pollRateLimited, rateLimited, userCodeRateLimited } from "../rate-limit.ts";
import { announceDecision, waitForDecision } from "./waiting-polls.ts";

const DEVICE_POLL_INTERVAL_SECONDS = 2;

export const deviceAuthorizations = createRouter();

deviceAuthorizations.openapi(
  route({
    operationId: "startDeviceAuthorization",
    method: "post",
    path: "/auth/cli/start",
    summary: "Request a token for a machine",
    guard: rateLimited,
    optionalBody: StartDevice,
    responses: {
      200: jsonResponse(
        "Show the user code and the URI to the user, then poll.",
        DeviceAuthorization,
      ),
    },
  }),
  async (c) => {
    const deviceCode = randomSecret();
    const userCode = randomUserCode();
    const { label } = c.req.valid("json");
    const ip = c.var.address || null;
    const device = { deviceCodeHash: await sha256Hex(deviceCode), userCode, label, ip };
    if (!(await insertDeviceAuthorization(c.var.db, device))) {
      throw new ApiError("unavailable", "No unused user code was found. Request a token again.", {
        retryAfterSeconds: 1,
      });
    }
    const page = `${c.var.config.publicOrigin}/activate`;
    return c.json(
      {
        device_code: deviceCode,
        user_code: formatUserCode(userCode),
        verification_uri: page,
        verification_uri_complete: `${page}?code=${formatUserCode(userCode)}`,
        interval: DEVICE_POLL_INTERVAL_SECONDS,
        expires_in: DEVICE_CODE_MAX_MS / 1000,
      },
      200,
    );
  },
);

deviceAuthorizations.openapi(
  route({
    operationId: "pollDeviceAuthorization",
    method: "post",
    path: "/auth/cli/poll",
    summary: "Wait until the request was approved or denied",
    description:
      "Answers as soon as the request was approved or denied, and otherwise after `wait` seconds. Wait `interval` seconds before the next poll.",
    guard: pollRateLimited,
    body: PollDevice,
    responses: { 200: jsonResponse("Approved. The token is handed out only once.", DeviceToken) },
    failures: ["authorization_pending", "slow_down", "access_denied", "expired"],
  }),
  async (c) => {
    const { device_code: deviceCode, wait } = c.req.valid("json");
    const { db, address } = c.var;
    const deviceCodeHash = await sha256Hex(deviceCode);
    const first = await pollDeviceAuthorization(db, deviceCodeHash);
    if (first.state !== "waiting") return answerPoll(c, first);
    if (isTooSoon(first.sincePollMs)) throw slowDown();
    const poll = {
      deviceId: first.deviceId,
      source: getAddressGroup(address),
      waitMs: wait * 1000,
      signal: c.req.raw.signal,
    };
    const ended = await waitForDecision(poll, async () => {
      const now = await pollDeviceAuthorization(db, deviceCodeHash);
      return now.state === "waiting" ? undefined : now;
    });
    if (ended === "busy") throw slowDown();
    if (!ended) {
      throw new ApiError("authorization_pending", "The request has not been approved yet.");
    }
    return answerPoll(c, ended);
  },
);

deviceAuthorizations.openapi(
  route({
    operationId: "getDeviceAuthorization",
    method: "get",
    path: "/auth/cli/request",
    summary: "Get the pending request for a user code",
    guard: [allow("tokens:write"), userCodeRateLimited],
    query: DeviceQuery,
    responses: {
      200: jsonResponse("The machine, and the code that it shows to its user.", PendingDevice),
    },
    failures: ["invalid_code"],
  }),
  async (c) => {
    const device = await findPendingAuthorization(
      c.var.db,
      await toDeviceSelector(c.req.valid("query").code),
    );
    if (!device) throw unknownCode();
    const { label, userCode, ip, createdAt } = device;
    return c.json(
      {
        label,
        user_code: formatUserCode(userCode),
        requested_from: ip,
        requested_at: createdAt.toISOString(),
      },
      200,
    );
  },
);

deviceAuthorizations.openapi(
  route({
    operationId: "approveDeviceAuthorization",
    method: "post",
    path: "/auth/cli/authorize",
    summary: "Approve the request of a machine",
    description:
      "`device_code` is the device code of the machine, or the code that it shows to its user.",
    guard: [allow("tokens:write"), userCodeRateLimited],
    body: DeviceCode,
    responses: { 200: jsonResponse("Approved. The machine collects the same token.", DeviceToken) },
    failures: ["invalid_code", "conflict"],
  }),
  async (c) => {
    const device = await toDeviceSelector(c.req.valid("json").device_code);
    const approval = await approveDeviceAuthorization(
      c.var.db,
      getMemberActor(c),
      device,
      newCliToken,
    );
    if (approval === "not_found") throw unknownCode();
    const { token, deviceId } = approval;
    announceDecision(deviceId);
    const wireBytes = await signTokenRow(c.var.config, token);
    return c.json({ wire_bytes_b64: toBase64(wireBytes), label: token.name }, 200);
  },
);

deviceAuthorizations.openapi(
  route({
    operationId: "denyDeviceAuthorization",
    method: "post",
    path: "/auth/cli/deny",
    summary: "Deny the request of a machine",
    description: "`device_code` is the same as for the approval.",
    guard: [allow("tokens:write"), userCodeRateLimited],
    body: DeviceCode,
    responses: { 200: jsonResponse("Denied: the machine gets `access_denied`.", Status) },
    failures: ["invalid_code"],
  }),
  async (c) => {
    const device = await toDeviceSelector(c.req.valid("json").device_code);
    const deniedId = await denyDeviceAuthorization(c.var.db, getMemberActor(c), device);
    if (deniedId === null) throw unknownCode();
    announceDecision(deniedId);
    return c.json({ status: "denied" }, 200);
  },
);

async function toDeviceSelector(code: string): Promise<DeviceSelector> {
  return { deviceCodeHash: await sha256Hex(code), userCode: parseUserCode(code) };
}

async function answerPoll(c: ApiContext, poll: Exclude<PollResult, { state: "waiting" }>) {
  switch (poll.state) {
    case "approved": {
      const wireBytes = await signTokenRow(c.var.config, poll.token);
      return c.json({ wire_bytes_b64: toBase64(wireBytes), label: poll.label }, 200);
    }
    case "denied":
      throw new ApiError("access_denied", "A user denied the request.");
    case "ended":
      throw new ApiError(
        "expired",
        "The request has expired, or its token was collected or revoked already.",
      );
  }
}

function slowDown(): ApiError {
  return new ApiError(
    "slow_down",
    `You poll too often. Wait ${DEVICE_POLL_INTERVAL_SECONDS} seconds between polls, and send one poll at a time.`,
    { retryAfterSeconds: DEVICE_POLL_INTERVAL_SECONDS },
  );
}

function unknownCode(): ApiError {
  return new ApiError("invalid_code", "The code is wrong, was used already, or has expired.");
}

/** Clocks and networks jitter, so a poll that is slightly early is accepted. */
function isTooSoon(sincePollMs: number | null): boolean {
  const tolerated = DEVICE_POLL_INTERVAL_SECONDS * 1000 * 0.75;
  return sincePollMs !== null && sincePollMs < tolerated;
}
