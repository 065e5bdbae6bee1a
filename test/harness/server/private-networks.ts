/** Creates private networks through the API. */
import { randomBytes } from "node:crypto";
import type { DeviceEnrollment, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import type { z } from "zod";
import type { Caller } from "./api.ts";

export type Enrolled = z.infer<typeof DeviceEnrollment>;

/** A key in the format of `wg pubkey`: 32 bytes in base64. */
export function newKey(): string {
  return randomBytes(32).toString("base64");
}

let networks = 0;

export async function createNetwork(
  by: Caller,
  change: { name?: string; cidr?: string } = {},
): Promise<PrivateNetwork> {
  networks += 1;
  const body = { name: `network ${networks}`, cidr: "10.88.0.0/24", ...change };
  const reply = await by.post<PrivateNetwork>("/private-networks", body);
  if (reply.status !== 201) throw new Error(`no network: ${JSON.stringify(reply.body)}`);
  return reply.body;
}

export async function registerServer(
  by: Caller,
  id: string,
  change: Record<string, unknown> = {},
): Promise<PrivateNetwork> {
  const body = { server_public_key: newKey(), server_listen_port: 51820, ...change };
  const reply = await by.put<PrivateNetwork>(`/private-networks/${id}/server`, body);
  if (reply.status !== 200) throw new Error(`no server: ${JSON.stringify(reply.body)}`);
  return reply.body;
}

export async function enroll(
  by: Caller,
  id: string,
  change: { name?: string; public_key?: string } = {},
): Promise<Enrolled> {
  const body = { name: "phone", public_key: newKey(), ...change };
  const reply = await by.post<Enrolled>(`/private-networks/${id}/devices`, body);
  if (reply.status !== 201) throw new Error(`no device: ${JSON.stringify(reply.body)}`);
  return reply.body;
}
