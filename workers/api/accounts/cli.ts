/**
 * The device flow (RFC 8628): a command line asks, a person approves in the browser, the command line
 * collects a token of 90 days, once.
 */
import { DEVICE_CODE_MAX_MS } from "../../limits.ts";
import {
  DeviceCode,
  DeviceQuery,
  DeviceToken,
  StartDevice,
  DeviceAuthorization,
  PendingDevice,
} from "../../../protocol/schemas/accounts/devices.ts";
import { ApiError } from "../../errors.ts";
import {
  randomSecret,
  randomUserCode,
  readUserCode,
  showUserCode,
} from "../../identity/accounts/codes.ts";
import { toBase64 } from "../../../shared/bytes.ts";
import { newMachineToken, wireBytesOf } from "../../identity/tokens/minting.ts";
import { sha256Hex } from "../../identity/sealing.ts";
import {
  approveDevice,
  findWaitingDevice,
  insertDevice,
  pollDevice,
  type DeviceName,
} from "../../store/accounts/devices.ts";
import { allow } from "../guard.ts";
import { getMemberActor, jsonResponse, createRouter, route } from "../route.ts";
import { rateLimited } from "../rate-limit.ts";

const DEVICE_POLL_INTERVAL_SECONDS = 2;

export const cli = createRouter();

cli.openapi(
  route({
    method: "post",
    path: "/auth/cli/start",
    summary: "A machine asks to be let in",
    guard: rateLimited,
    body: StartDevice,
    responses: {
      200: jsonResponse("Show the user code and the URI, then poll.", DeviceAuthorization),
    },
  }),
  async (c) => {
    const deviceCode = randomSecret();
    const userCode = randomUserCode();
    const { label } = c.req.valid("json");
    const device = { deviceCodeHash: await sha256Hex(deviceCode), userCode, label };
    if (!(await insertDevice(c.var.db, device))) {
      throw new ApiError("unavailable", "Try again.", { retryAfterSeconds: 1 });
    }
    const page = `${c.var.config.publicOrigin}/activate`;
    return c.json(
      {
        device_code: deviceCode,
        user_code: showUserCode(userCode),
        verification_uri: page,
        verification_uri_complete: `${page}?code=${showUserCode(userCode)}`,
        interval: DEVICE_POLL_INTERVAL_SECONDS,
        expires_in: DEVICE_CODE_MAX_MS / 1000,
      },
      200,
    );
  },
);

cli.openapi(
  route({
    method: "post",
    path: "/auth/cli/poll",
    summary: "The machine asks whether it was approved",
    body: DeviceCode,
    responses: { 200: jsonResponse("It was. The token is handed over this once.", DeviceToken) },
    failures: ["authorization_pending", "slow_down", "expired"],
  }),
  async (c) => {
    const { device_code: deviceCode } = c.req.valid("json");
    const poll = await pollDevice(c.var.db, await sha256Hex(deviceCode));
    switch (poll.state) {
      case "approved": {
        const wireBytes = await wireBytesOf(c.var.config, poll.token);
        return c.json({ wire_bytes_b64: toBase64(wireBytes), label: poll.label }, 200);
      }
      case "over":
        throw new ApiError("expired", "The request is over, or its token was collected already.");
      case "waiting": {
        if (isTooSoon(poll.lastPolledAt)) {
          throw new ApiError("slow_down", "You ask too often.", {
            retryAfterSeconds: DEVICE_POLL_INTERVAL_SECONDS,
          });
        }
        throw new ApiError("authorization_pending", "Nobody has approved it yet.");
      }
    }
  },
);

cli.openapi(
  route({
    method: "get",
    path: "/auth/cli/request",
    summary: "Which machine waits under a code",
    guard: allow("tokens:write"),
    query: DeviceQuery,
    responses: { 200: jsonResponse("What approving it would let in.", PendingDevice) },
    failures: ["invalid_code"],
  }),
  async (c) => {
    const device = await findWaitingDevice(c.var.db, await toDeviceName(c.req.valid("query").code));
    if (!device) throw unknownCode();
    return c.json({ label: device.label, user_code: showUserCode(device.userCode) }, 200);
  },
);

cli.openapi(
  route({
    method: "post",
    path: "/auth/cli/authorize",
    summary: "Let a machine in",
    description: "`device_code` is the machine's own code or the one that it shows to its person.",
    guard: allow("tokens:write"),
    body: DeviceCode,
    responses: { 200: jsonResponse("The machine collects the same token.", DeviceToken) },
    failures: ["invalid_code"],
  }),
  async (c) => {
    const device = await toDeviceName(c.req.valid("json").device_code);
    const token = await approveDevice(c.var.db, getMemberActor(c), device, newMachineToken);
    if (token === "not_found") throw unknownCode();
    const wireBytes = await wireBytesOf(c.var.config, token);
    return c.json({ wire_bytes_b64: toBase64(wireBytes), label: token.name }, 200);
  },
);

async function toDeviceName(code: string): Promise<DeviceName> {
  return { deviceCodeHash: await sha256Hex(code), userCode: readUserCode(code) };
}

function unknownCode(): ApiError {
  return new ApiError("invalid_code", "No machine waits under this code, or no longer.");
}

/** Clocks and networks jitter: what is nearly on time is on time. */
function isTooSoon(lastPolledAt: Date | null): boolean {
  const tolerated = DEVICE_POLL_INTERVAL_SECONDS * 1000 * 0.75;
  return lastPolledAt !== null && Date.now() - lastPolledAt.getTime() < tolerated;
}
