/** The schemas that the document names, so that a client generated from it has a type for each. */
import { z, type ZodType } from "zod";
import { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { SetBasicAuth, BasicAuthState } from "../../../protocol/schemas/access/basic-auth.ts";
import {
  SetIdentityGate,
  IdentityGateState,
} from "../../../protocol/schemas/access/identity-gate.ts";
import { SetIpAllowlist, IpAllowlist } from "../../../protocol/schemas/access/ip-allowlist.ts";
import {
  StartMaintenance,
  MaintenanceState,
} from "../../../protocol/schemas/access/maintenance.ts";
import {
  PolicyAction,
  TrafficPolicy,
  TunnelPolicy,
} from "../../../protocol/schemas/access/policies.ts";
import { DryRunPolicy, PolicyDryRun } from "../../../protocol/schemas/access/policy-dry-run.ts";
import {
  Credentials,
  SignUp,
  EmailAddress,
  EmailCode,
  Status,
  AccountSummary,
  MfaRequired,
  Entitlements,
  Me,
  AccessToken,
  Session,
  SessionList,
  PasswordReset,
} from "../../../protocol/schemas/accounts/accounts.ts";
import {
  StartDevice,
  DeviceAuthorization,
  DeviceCode,
  PendingDevice,
  DeviceToken,
  Setup,
  SetupResult,
  SetupState,
} from "../../../protocol/schemas/accounts/devices.ts";
import {
  TotpEnrollment,
  ConfirmTotpEnrollment,
  MfaEnabled,
  DisableMfa,
  VerifyMfaChallenge,
} from "../../../protocol/schemas/accounts/mfa.ts";
import { Providers } from "../../../protocol/schemas/accounts/providers.ts";
import {
  StartCheckout,
  CheckoutSession,
  PortalSession,
  OverLimit,
  Billing,
} from "../../../protocol/schemas/billing.ts";
import {
  ClaimDomain,
  BindDomain,
  CustomDomain,
} from "../../../protocol/schemas/domains/domains.ts";
import {
  ReserveSubdomain,
  ReservedSubdomain,
} from "../../../protocol/schemas/domains/reserved-subdomains.ts";
import {
  CaptureSummary,
  CapturedMessage,
  CapturedSseEvent,
  CaptureDetail,
  CaptureSettings,
  TunnelCaptureSettings,
} from "../../../protocol/schemas/inspector/captures.ts";
import { Archive } from "../../../protocol/schemas/inspector/inspector.ts";
import {
  ReplayRequest,
  Difference,
  Comparison,
  ReplayResult,
} from "../../../protocol/schemas/inspector/replays.ts";
import {
  Breakdown,
  Metrics,
  SeriesPoint,
  OrganizationUsage,
} from "../../../protocol/schemas/metrics.ts";
import {
  CreateNetwork,
  RegisterServer,
  NetworkRelay,
  PrivateNetwork,
  EnrollDevice,
  Device,
  DeviceEnrollment,
  NetworkConfig,
  RelayAccess,
} from "../../../protocol/schemas/networks.ts";
import { AuditAction } from "../../../protocol/schemas/organizations/audit-actions.ts";
import { AuditEvent, PersonalEvent } from "../../../protocol/schemas/organizations/audit.ts";
import {
  Organization,
  CreateOrganization,
  RenameOrganization,
  Member,
  ChangeRole,
  Invitation,
  Invite,
  AcceptInvitation,
} from "../../../protocol/schemas/organizations/organizations.ts";
import {
  Project,
  CreateProject,
  RenameProject,
} from "../../../protocol/schemas/organizations/projects.ts";
import { Ok } from "../../../protocol/schemas/scalars.ts";
import {
  MintToken,
  MintMasterKey,
  MintProjectToken,
  Token,
  MintedToken,
  Budget,
  BudgetResult,
} from "../../../protocol/schemas/tokens.ts";
import { PresentedToken } from "../../../protocol/schemas/tunnels/diagnostics.ts";
import { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import {
  CreateTunnel,
  TunnelShards,
  TunnelShardsResult,
  TunnelStatusResult,
  Tunnel,
} from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  CreateReceiver,
  RotateReceiverSecret,
  Receiver,
  ReceiverState,
  Delivery,
  DeliveryPage,
  Acknowledgement,
} from "../../../protocol/schemas/webhooks.ts";
import {
  MintedVisitorToken,
  MintVisitorToken,
} from "../../../protocol/schemas/access/visitor-tokens.ts";
import { Reauthenticate } from "../../../protocol/schemas/accounts/accounts.ts";
import { PollDevice } from "../../../protocol/schemas/accounts/devices.ts";
import { RequestMfaRemoval } from "../../../protocol/schemas/accounts/mfa.ts";
import { MfaRemovalToken } from "../../../protocol/schemas/accounts/mfa.ts";

/** By name in the document. */
const COMPONENTS: Readonly<Record<string, ZodType>> = {
  Error: ErrorBody,
  MfaRemovalToken,
  RequestMfaRemoval,
  PollDevice,
  Reauthenticate,
  MintVisitorToken,
  MintedVisitorToken,
  SetBasicAuth,
  BasicAuthState,
  SetIdentityGate,
  IdentityGateState,
  SetIpAllowlist,
  IpAllowlist,
  StartMaintenance,
  MaintenanceState,
  PolicyAction,
  TrafficPolicy,
  TunnelPolicy,
  DryRunPolicy,
  PolicyDryRun,
  Credentials,
  SignUp,
  EmailAddress,
  EmailCode,
  Status,
  AccountSummary,
  MfaRequired,
  Entitlements,
  Me,
  AccessToken,
  Session,
  SessionList,
  PasswordReset,
  StartDevice,
  DeviceAuthorization,
  DeviceCode,
  PendingDevice,
  DeviceToken,
  Setup,
  SetupResult,
  SetupState,
  TotpEnrollment,
  ConfirmTotpEnrollment,
  MfaEnabled,
  DisableMfa,
  VerifyMfaChallenge,
  Providers,
  StartCheckout,
  CheckoutSession,
  PortalSession,
  OverLimit,
  Billing,
  ClaimDomain,
  BindDomain,
  CustomDomain,
  ReserveSubdomain,
  ReservedSubdomain,
  CaptureSummary,
  CapturedMessage,
  CapturedSseEvent,
  CaptureDetail,
  CaptureSettings,
  TunnelCaptureSettings,
  Archive,
  ReplayRequest,
  Difference,
  Comparison,
  ReplayResult,
  Metrics,
  SeriesPoint,
  Breakdown,
  OrganizationUsage,
  CreateNetwork,
  RegisterServer,
  NetworkRelay,
  PrivateNetwork,
  EnrollDevice,
  Device,
  DeviceEnrollment,
  NetworkConfig,
  RelayAccess,
  AuditAction,
  AuditEvent,
  PersonalEvent,
  Organization,
  CreateOrganization,
  RenameOrganization,
  Member,
  ChangeRole,
  Invitation,
  Invite,
  AcceptInvitation,
  Project,
  CreateProject,
  RenameProject,
  Ok,
  MintToken,
  MintMasterKey,
  MintProjectToken,
  Token,
  PresentedToken,
  MintedToken,
  Budget,
  BudgetResult,
  Connection,
  CreateTunnel,
  TunnelShards,
  TunnelShardsResult,
  TunnelStatusResult,
  Tunnel,
  CreateReceiver,
  RotateReceiverSecret,
  Receiver,
  ReceiverState,
  Delivery,
  DeliveryPage,
  Acknowledgement,
};

/** Gives the schemas their names, which `z.toJSONSchema` reads. */
export function nameComponents(): void {
  for (const [id, schema] of Object.entries(COMPONENTS)) {
    z.globalRegistry.add(schema, { ...z.globalRegistry.get(schema), id });
  }
}
