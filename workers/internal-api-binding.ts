/**
 * The methods of the Worker's `InternalApi` entry point (`workers/internal-api/`) for requests that last as long as a
 * connection.
 */
import type { z } from "zod";
import type { InternalApi } from "../durable-objects/rpc.ts";
import type { AgentAdmission, ClientAdmission } from "../durable-objects/tunnel/admission.ts";
import type { AgentGates } from "../protocol/schemas/tunnels/agent-gates.ts";
import type { AgentConnectQuery } from "../protocol/schemas/tunnels/tunnels.ts";
import type { CloseRefusal } from "../protocol/wire/close-reason.ts";

export interface AgentRequest {
  /** The capability token, in base64. */
  bearer: string;
  query: z.output<typeof AgentConnectQuery>;
  gates: AgentGates;
  address: string;
}

export type AgentVerdict = { admission: AgentAdmission } | CloseRefusal;

export interface ClientRequest {
  /** The capability token, in base64. */
  bearer: string;
  /** A tunnel's id, or its subdomain. */
  tunnel: string;
  address: string;
}

export interface AdmittedClient {
  admission: ClientAdmission;
  orgId: string;
}

export type ClientVerdict = AdmittedClient | CloseRefusal;

export interface PresentedTicket {
  ticket: string;
  tunnelId: string;
  host: string;
  /** SHA-256 of the nonce in the browser's cookie. null without one. */
  browser: string | null;
}

export interface RedeemedTicket {
  pass: string;
  /** A path of the tunnel. */
  target: string;
}

export interface InternalApiBinding extends InternalApi, Rpc.WorkerEntrypointBranded {
  admitAgent(request: AgentRequest): Promise<AgentVerdict>;
  admitClient(request: ClientRequest): Promise<ClientVerdict>;
  recheckClient(admitted: AdmittedClient): Promise<void>;
  recheckAdmission(admission: AgentAdmission): Promise<void>;
  withdrawAdmission(admission: AgentAdmission): Promise<void>;
  redeemVisitorTicket(ticket: PresentedTicket): Promise<RedeemedTicket | null>;
}
